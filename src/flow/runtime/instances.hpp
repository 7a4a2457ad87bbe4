// The instances this runtime has in memory: their coroutines between turns, and the input of their
// next turns. One turn of an instance runs at a time; what arrives meanwhile waits for the next.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/local_bus.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/flow/provider.hpp>
#include <holdfast/flow_engine/execution.hpp>

namespace holdfast::flow {

// The input of one turn.
struct TurnInput {
    std::optional<ClaimedInstance> claim;  // Claimed in the store, with its mail.
    std::vector<ActivityEnd> answers;      // Of activities that ran here.
    bool mail = false;                     // There may be mail in the store.
    detail::FirstTurnDuty first{};         // It does not exist yet: the turn starts it.

    [[nodiscard]] bool empty() const noexcept {
        return !claim && answers.empty() && !mail && !first;
    }
};

struct Instance {
    std::string id;
    Uuid token;  // The token in the store, as far as known here.
    ExecutionId number = 0;
    std::string version{};
    std::unique_ptr<Execution> execution{};  // Empty: to be built from the history.
    std::uint64_t turns = 0;

    // Under the table's lock:
    TurnInput waiting{};
    bool busy = false;            // A turn runs or is being committed.
    bool queued = false;          // Waits for a thread.
    Steady claimed_at{};          // When the claim in hand was taken or renewed.
    std::optional<Uuid> lease{};  // Of the claim in hand.
    bool claimed = false;         // A claim waits here, or the turn in hand has one.
    std::size_t bytes = 0;
    std::list<Instance*>::iterator used{};
};

struct InstanceTableOptions {
    std::size_t instances_max = 10'000;
    std::size_t bytes_max = 20U << 20U;
};

// Safe to share between threads.
class InstanceTable {
public:
    explicit InstanceTable(InstanceTableOptions options) : options_(options) {}

    // --- input of turns
    // About to be created with this token: it need not be claimed. Until add_started or call_off.
    void expect(const std::string& id, const Uuid& token);
    void call_off(const std::string& id);
    // False: it is here already.
    bool add_started(const std::string& id, const Uuid& token);
    bool add_first_turn(const std::shared_ptr<detail::FirstTurn>& turn);
    void add_claim(ClaimedInstance claim);
    // False: it is not here.
    bool add_mail(const std::string& id);
    // The same after a poll of the store. False: it is busy or queued already.
    bool add_found_mail(const std::string& id);
    bool add_answer(const ActivityEnd& end);
    // Whether it is here with this token: then it need not be claimed.
    [[nodiscard]] bool holds(std::string_view id, const Uuid& token) const;
    [[nodiscard]] bool has(const std::string& id) const;

    // --- turns
    // The next instance that has input, and the input. It belongs to the caller until `done` or
    // `forget`. Null: nothing (try_next), or stopped.
    Instance* next(const std::stop_token& stop, TurnInput& input);
    Instance* try_next(TurnInput& input);
    // The turn was committed, or there was nothing to do. The instance is kept if there is room.
    void done(Instance& instance, std::size_t bytes);
    // What is in memory is outdated or over. Returns the input that was still waiting.
    TurnInput forget(Instance& instance);
    // Renews the lease of this claim from now on.
    void hold_lease(Instance& instance, const Uuid& token, Steady now);
    void drop_lease(Instance& instance);

    // --- for the keepers
    struct Lease {
        std::string id;
        Uuid token;
        Steady since;
    };
    [[nodiscard]] std::vector<Lease> leases_older_than(Steady when);
    void renewed(const std::string& id, Steady when);
    [[nodiscard]] std::size_t backlog() const;  // Instances that wait for a thread or have one.
    // Waits until the backlog is empty, at most this long.
    void wait_idle(std::chrono::nanoseconds most);
    [[nodiscard]] std::size_t size() const;
    // Claims that wait and have not been looked at.
    [[nodiscard]] std::vector<ClaimedInstance> take_waiting_claims();
    // Claims that wait or that a turn works on: what this process would take down with it.
    [[nodiscard]] std::size_t claims() const;
    void wake_all();

private:
    void note_claim(Instance& instance, bool claimed);
    Instance& find_or_add(const std::string& id);
    void queue(Instance& instance);
    Instance* take(TurnInput& input);
    void make_room();
    void left_turn();
    void erase(Instance& instance);

    InstanceTableOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable_any work_;
    std::condition_variable idle_;
    std::unordered_map<std::string, std::unique_ptr<Instance>> instances_;
    std::unordered_map<std::string, Uuid> expected_;
    std::deque<Instance*> ready_;
    std::list<Instance*> used_;  // Idle ones, the longest unused first.
    std::size_t busy_ = 0;
    std::size_t claims_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace holdfast::flow

// The parts of a runtime and the threads that move work between them:
//
//   store -> poller -> instances -> turn threads -> commit lanes -> store
//                                        ^               |
//                                        +-- activities <+
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "runtime/activity_pool.hpp"
#include "runtime/database_clock.hpp"
#include "runtime/instances.hpp"
#include "runtime/lease_length.hpp"
#include "runtime/local_bus.hpp"
#include "runtime/meters.hpp"
#include "runtime/turns.hpp"
#include "runtime/unserved.hpp"

#include <holdfast/flow/runtime.hpp>

namespace holdfast::flow {

// Whether the database failed in a way that may pass: what was computed waits for it.
[[nodiscard]] bool may_pass(const Error& error);

class Runtime::State final : public detail::LocalRuntime {
public:
    State(Store& store, Registry registry, RuntimeOptions options);
    ~State() override;

    DrainReport drain(milliseconds deadline);
    int run_until_idle();
    [[nodiscard]] RuntimeStats stats() const;

    // --- LocalRuntime
    void expect(const std::string& instance, const Uuid& token) override;
    void call_off(const std::string& instance) override;
    bool offer_start(std::string_view workflow,
                     const std::string& instance,
                     const Uuid& token) override;
    bool offer_first_turn(const std::shared_ptr<detail::FirstTurn>& turn) override;
    bool offer_mail(const std::string& instance) override;
    [[nodiscard]] bool runs(std::string_view workflow) const override;
    [[nodiscard]] bool has(const std::string& instance) const override;
    void look_for_mail() override;
    void look_for_activities() override;

private:
    // What waits for a commit.
    struct Outbox {
        std::vector<PreparedTurn> turns;
        std::vector<ActivityEnd> ends;
        [[nodiscard]] bool empty() const noexcept { return turns.empty() && ends.empty(); }
    };

    // A claim that is to be given back because its turn could not be read or committed.
    struct Owed {
        ClaimedInstance claim;
        Steady due;
    };

    void start_threads();
    // --- turns
    void turn_loop(const std::stop_token& stop);
    void take_turn(Instance& instance, TurnInput input);
    // --- commits
    void commit_loop(const std::stop_token& stop);
    [[nodiscard]] Outbox take_outbox();
    void commit(Outbox outbox);
    void commit_turns(std::vector<PreparedTurn> turns);
    void commit_one_by_one(std::vector<PreparedTurn> turns, std::vector<TurnCommit> commits);
    void expect_starts(PreparedTurn& turn);
    // Removes turns that are also a start and that `unwanted` selects.
    template <class Unwanted>
    void drop_first_turns(std::vector<PreparedTurn>& turns, Unwanted&& unwanted);
    void call_off(const PreparedTurn& turn);
    void forget_first_turn(PreparedTurn& turn);
    void commit_ends(const std::vector<ActivityEnd>& ends);
    void settle(PreparedTurn& turn, const TurnCommit& commit, Committed result);
    void settle_committed(PreparedTurn& turn, const TurnCommit& commit);
    void settle_lost(PreparedTurn& turn, const TurnCommit& commit, Committed result);
    void settle_too_large(PreparedTurn& turn, const TurnCommit& commit);
    void tell(const PreparedTurn& turn, const TurnCommit& commit);
    void post(PreparedTurn turn);
    void post(std::vector<ActivityEnd> ends);
    void ended(ActivityEnd end);
    void give_back(const ClaimedInstance& claim, milliseconds delay, bool ignore_attempt) noexcept;
    void give_back_claims();
    [[nodiscard]] static ClaimedInstance receipt_of(const std::string& instance,
                                                    const Uuid& token,
                                                    const std::vector<InboxMessage>& mail);
    void owe(ClaimedInstance claim);
    bool give_back_owed(Steady until);
    // --- polling
    void poll_loop(const std::stop_token& stop);
    struct Found {
        int count = 0;      // Found, and not busy here.
        bool more = false;  // There may be more right now.
    };
    Found poll_instances();
    Found claim_instances(bool alone);
    int poll_activities();
    void hear_clock();
    void wake_at(std::int64_t moment_ms);
    [[nodiscard]] Steady next_look(bool found);
    // --- keeping
    void keep_loop(const std::stop_token& stop);
    void retry_blocked() noexcept;
    void keep(Steady now);
    void keep_sessions(Steady now);
    void sweep(Steady now);
    void forget_old();
    void measure(Steady now);
    [[nodiscard]] bool quiet() const;
    Logger& log() const;
    [[nodiscard]] Steady steady_now() const { return options_.clock->steady_now(); }

    Store& store_;
    Provider& provider_;
    const Registry registry_;
    const RuntimeOptions options_;
    const std::string worker_id_;
    std::shared_ptr<Meters> meters_ = std::make_shared<Meters>(options_.metrics);
    std::shared_ptr<Unserved> unserved_ = std::make_shared<Unserved>(options_);
    DatabaseClock clock_{*options_.clock};
    LeaseLength workflow_lease_{options_.workflow_lease};
    InstanceTable instances_;
    ActivityPool activities_;
    TurnRunner runner_;

    std::mutex outbox_mutex_;
    std::condition_variable_any outbox_filled_;
    std::deque<PreparedTurn> turns_out_;
    std::deque<ActivityEnd> ends_out_;

    std::mutex poll_mutex_;
    std::condition_variable_any poll_wanted_;
    bool want_instances_ = true;
    bool want_activities_ = true;
    Steady timer_at_ = Steady::max();  // When the next known timer fires.
    std::chrono::milliseconds poll_pause_{5};
    bool claim_alone_ = false;  // An instance waits that is to be claimed alone,
    bool holds_alone_ = false;  // or was, and nothing else is claimed until its turn has ended.

    std::mutex owed_mutex_;
    std::vector<Owed> owed_;

    Steady sessions_kept_{};
    Steady swept_{};
    Steady measured_{};
    std::atomic<bool> draining_ = false;
    std::stop_source pauses_;  // Stopped when draining begins: no pause between attempts lasts on.
    std::atomic<bool> heard_clock_ = false;  // The store's; before that nothing may start here.
    bool drained_ = false;
    DrainReport report_;
    std::mutex drain_mutex_;
    std::vector<std::jthread> threads_;
};

}  // namespace holdfast::flow

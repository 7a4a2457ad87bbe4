// Runs activities: a queue of claimed ones, threads, their leases, and how they end.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "runtime/lease_length.hpp"
#include "runtime/meters.hpp"
#include "runtime/unserved.hpp"

#include <holdfast/flow/provider.hpp>
#include <holdfast/flow/registry.hpp>
#include <holdfast/flow/runtime.hpp>

namespace holdfast::flow {

class ActivityPool {
public:
    struct Hooks {
        // An attempt has ended; that is to be committed, and then `settled` to be called.
        std::function<void(ActivityEnd)> ended;
        // A transactional one has committed its answer as mail.
        std::function<void(const std::string& instance)> mailed;
        // There is room for more.
        std::function<void()> room;
    };

    ActivityPool(Provider& provider,
                 const Registry& registry,
                 const RuntimeOptions& options,
                 std::shared_ptr<Meters> meters,
                 std::shared_ptr<Unserved> unserved,
                 Hooks hooks);
    // Requires: stop() was called.
    ~ActivityPool();
    ActivityPool(const ActivityPool&) = delete;
    ActivityPool& operator=(const ActivityPool&) = delete;

    // Whether this process takes the activity; then a place is kept for it until `add` or
    // `unreserve`, and a thread if it must begin at once.
    [[nodiscard]] bool reserve(const ActivityTask& task);
    void unreserve(const ActivityTask& task);
    // Requires: a reserved place, or room. One that must begin at once and finds no free thread
    // goes back to the store.
    void add(ClaimedActivity claim, bool reserved);
    // How long the lease of an activity is to be.
    [[nodiscard]] milliseconds lease() const;
    // How many more may be claimed from the store; 0 while draining.
    [[nodiscard]] int room() const;
    // How many can begin at once.
    [[nodiscard]] int free_threads() const;
    // Sessions of this process with activities in hand.
    [[nodiscard]] std::size_t sessions() const;
    // Its result is not needed any more.
    void cancel(const ActivityKey& key);
    // Its end is stored, or void: the lease need not be renewed.
    void settled(const ActivityKey& key, const Uuid& token);

    // Renews leases, detects cancellations, gives up on activities that do not end.
    void tick(Steady now);
    // When the next running attempt reaches its time limit.
    [[nodiscard]] Steady next_limit() const;
    // Manual: runs one on the caller's thread. False: there was none.
    bool run_one();

    void close();  // Takes nothing new.
    [[nodiscard]] bool idle() const;
    void wait_idle(std::chrono::nanoseconds most);
    // Asks all to stop and waits up to `grace`; what has not ended is given back to others. Then
    // the threads end. Idempotent.
    DrainReport stop(milliseconds grace);

private:
    struct Job;
    struct Shared;

    static void work(const std::shared_ptr<Shared>& shared);
    static void run(Shared& shared, const std::shared_ptr<Job>& job);
    [[nodiscard]] static std::optional<FailureInfo> refusal(Shared& shared,
                                                            const ClaimedActivity& claim);
    [[nodiscard]] static ActivityEnd end_of(const Shared& shared,
                                            const Job& job,
                                            std::variant<Payload, FailureInfo> result);
    [[nodiscard]] static std::optional<ActivityEnd> end_of_run(Shared& shared, Job& job);
    static void leave(Shared& shared, const ClaimedActivity& claim);
    static void beat(Shared& shared, Job& job, const Payload& progress);
    static void finish(Shared& shared,
                       const std::shared_ptr<Job>& job,
                       std::optional<ActivityEnd> end,
                       bool threw);
    void end_what_overran(Steady now);
    void spawn();
    void give_up_on_stuck(Steady now);

    std::shared_ptr<Shared> shared_;    // Outlives this object while an activity does not end.
    std::vector<std::thread> threads_;  // Under the lock of what they share.
};

}  // namespace holdfast::flow

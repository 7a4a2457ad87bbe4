// Task queues: they bring waiting workers and waiting tasks together.
//
// Everything here is in memory. What must not be lost is stored by the engine: a task is listed in
// a row until its run has started it, and a new owner of the row adds it here again. A task that
// comes twice is refused by its run the second time.
//
// A poll is in one place only: it waits in a queue, or one Reservation owns it. So a task is never
// given to a worker that has left, and two tasks are never given to one poll.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/alarms.hpp"
#include "matching/task.hpp"

#include <holdfast/base/clock.hpp>

namespace holdfast::server::matching {

class Queue;
struct Parked;

// A poll that was taken out of its queue for one task. It ends in one of two ways: the task was
// started and committed, then take() and deliver; or it is destroyed, and the poll waits again, as
// the first of its queue, or is answered empty if its time is over by then. While it is reserved
// the poll neither expires nor is answered.
class Reservation {
public:
    Reservation(Reservation&&) noexcept = default;
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation();

    [[nodiscard]] const PollInfo& info() const noexcept;
    [[nodiscard]] const QueueKey& queue() const noexcept;

    // True if the caller has left: a task that is started for it now would be lost.
    [[nodiscard]] bool over() const;

    // The poll leaves its queue. Call it once.
    [[nodiscard]] Poll take() &&;

private:
    friend class Queue;
    explicit Reservation(std::shared_ptr<Parked> parked) noexcept;

    std::shared_ptr<Parked> parked_;  // Empty once it is taken or moved from.
};

// Starts tasks in their runs. It delivers the task, or drops it because it is void, and lets
// the reservation go in both cases; if it cannot tell now, it calls put_back().
class TaskStarter {
public:
    TaskStarter() = default;
    TaskStarter(const TaskStarter&) = delete;
    TaskStarter& operator=(const TaskStarter&) = delete;
    virtual ~TaskStarter() = default;

    // Called without a lock held, from any thread. Must not block.
    virtual void start(const QueueKey& queue, QueuedTask task, Reservation poller) = 0;
};

struct MatchingLimits {
    std::chrono::nanoseconds poll_max = std::chrono::seconds{60};
    std::chrono::nanoseconds poll_margin =
        std::chrono::seconds{1};  // Before the caller's deadline.
    // A sticky queue without a poll for this long has lost its worker.
    std::chrono::nanoseconds sticky_gone_after = std::chrono::seconds{10};
    std::chrono::nanoseconds pollers_kept = std::chrono::minutes{5};
    std::chrono::nanoseconds put_back_pause = std::chrono::milliseconds{100};
};

struct PollerView {
    std::string identity;
    Wall last_access{};
    std::optional<double> tasks_per_second;
    std::optional<temporal::api::common::v1::WorkerVersionStamp> worker_version{};
};

struct QueueView {
    std::vector<PollerView> pollers;
    std::size_t backlog = 0;
    std::chrono::nanoseconds backlog_age{};  // Of the oldest task.
    double add_rate = 0;                     // Per second, over the last 30 s.
    double dispatch_rate = 0;
    std::vector<std::size_t> backlog_by_priority;  // Of 1 to 5, at 0 to 4.
    std::optional<double> worker_rate{};           // What the last poll asked for.
    std::optional<double> configured_rate{};       // See limit_rate().
    bool rate_limited = false;                     // Tasks waited for the rate in the last 30 s.
};

// Of all queues.
struct MatchingTotals {
    std::size_t queues = 0;
    std::size_t polls = 0;  // That wait.
    std::size_t backlog = 0;
    std::chrono::nanoseconds backlog_age{};  // Of the oldest task.
};

enum class OfferId : std::uint64_t {};

// Safe to share between threads. A Reservation may outlive it.
class Matching {
public:
    // Requires: `clock` and `alarms` outlive this object, and the starter that connect() names
    // lives until stop() has returned.
    Matching(const Clock& clock, Alarms& alarms, MatchingLimits limits = {});
    ~Matching();
    Matching(const Matching&) = delete;
    Matching& operator=(const Matching&) = delete;

    // Before the first call of anything else.
    void connect(TaskStarter& starter);

    // Gives the poll the first waiting task, or parks it until there is one. It is answered empty
    // at the end of its time, or when the server stops. A caller that leaves takes its poll with
    // it.
    void poll(Poll poll);

    // A waiting poll for a task that a transition is about to make; nothing if none waits, or if
    // tasks wait that are before it.
    [[nodiscard]] std::optional<Reservation> reserve(const QueueKey& queue, int priority);

    // A task that is committed and found no poll.
    void add(const QueueKey& queue, QueuedTask task);
    // A task that could not be started for a passing reason: the first of its queue again, after a
    // pause.
    void put_back(const QueueKey& queue, QueuedTask task);

    // Calls `taken` once with the next poll, before tasks of default priority; at once if one
    // waits. For work that is not stored, such as a query. `taken` must not block.
    OfferId offer(const QueueKey& queue, std::function<void(Reservation)> taken);
    // False if it was taken.
    bool withdraw(OfferId offer);

    // Whether the worker of a sticky queue is there: a poll waits, or one ended a moment ago.
    [[nodiscard]] bool polled_recently(const QueueKey& queue) const;

    // The worker of a sticky queue stops: its polls are answered empty, and polled_recently() is
    // false.
    void unload(const QueueKey& queue);
    // Answers the polls of one worker on these queues empty, and its next ones for a while.
    void end_polls(const std::string& worker_instance_key, std::span<const QueueKey> queues);

    // Drops the queues of a namespace with all that waits in them; polls are answered empty.
    void forget(const std::string& namespace_id);

    [[nodiscard]] QueueView view(const QueueKey& queue) const;

    // Looks at every queue: for an operator, not for a call.
    [[nodiscard]] MatchingTotals totals() const;

    // How many tasks a second an activity queue gives away, instead of what its workers ask for; 0
    // for none at all, nothing to leave it to the workers.
    void limit_rate(const QueueKey& queue, std::optional<double> tasks_per_second);
    // Weights of fairness keys, instead of what their tasks say, for the tasks that come.
    void set_weights(const QueueKey& queue, std::map<std::string, double> weights);

    // Answers all polls empty, and all that come. After it no task is started and no offer called;
    // it waits for those under way. Requires: not called by the starter or an offer.
    void stop();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace holdfast::server::matching

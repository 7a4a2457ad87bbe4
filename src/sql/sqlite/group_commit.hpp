// Many transactions, one flush.
//
// SQLite has one writer, and a durable commit costs a flush of the disk. So writers form a queue.
// The first of the queue leads: it takes the write lock, runs its own body, then the bodies that
// arrived meanwhile, each in a savepoint, and one physical commit carries them all. While it waits
// for the disk the next queue forms; no writer waits for others to come. When its batch is answered
// the leader hands the queue to the longest waiter and returns to its caller.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "driver.hpp"
#include "sqlite/connection.hpp"
#include "sqlite/hub.hpp"
#include "sqlite/session.hpp"
#include "sqlite/wakeup.hpp"

namespace holdfast::sql::sqlite {

// Safe to share between threads. A body may run on another caller's thread, and more than once.
class GroupCommit {
public:
    using Body = std::function<void(Session&)>;

    // A batch ends at whichever comes first; then other processes get their turn.
    static constexpr std::size_t batch_requests_max = 256;
    static constexpr std::chrono::milliseconds batch_time_max{20};

    // Requires: `connection` is a writer without another user.
    GroupCommit(Connection& connection, DatabaseClock& clock, Hub& hub, Counters& counters) noexcept
        : connection_(connection), session_(connection, clock), hub_(hub), counters_(counters) {}
    GroupCommit(const GroupCommit&) = delete;
    GroupCommit& operator=(const GroupCommit&) = delete;

    // Returns when the work is committed; throws when it is not. A request that has not been
    // started leaves the line at its deadline or stop; one that has is answered with its batch.
    void attempt(const AttemptOptions& options, const Body& body);

    // Requests in line, without those whose bodies run or have run.
    [[nodiscard]] std::size_t waiting() const;
    [[nodiscard]] bool busy() const;

    // Refuses newcomers from now on.
    void close();
    // After `close`: waits until the line is empty. At the deadline the requests that are still in
    // it are refused and a running statement is interrupted; false if a body runs on even so.
    [[nodiscard]] bool drain(Deadline deadline);
    // Waits for a body that runs on after `drain`.
    void wait_until_idle();

private:
    struct Request;

    // A line of requests, which live on their callers' stacks.
    class Line {
    public:
        [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
        [[nodiscard]] std::size_t size() const noexcept { return size_; }
        void push_back(Request& request) noexcept;
        // The other line's requests keep their order and come before ours.
        void push_front(Line& other) noexcept;
        [[nodiscard]] Request* pop_front() noexcept;  // Null if there is none.
        void remove(Request& request) noexcept;

    private:
        Request* first_ = nullptr;
        Request* last_ = nullptr;
        std::size_t size_ = 0;
    };

    // True if the request has to lead, at once or after a wait; false if it has been answered.
    bool stand_in_line(Request& request);
    bool wait_in_line(Request& request);
    bool leave_line(Request& request);
    [[noreturn]] void throw_left_line(const Request& request) const;

    void lead(Request& own);
    bool run_batch(Request& own, std::size_t requests_max, Line& answered);
    bool begin(Request& own) noexcept;
    void run_others(std::size_t requests_max, Line& batch, Line& answered);
    void run_in_savepoint(Request& request) noexcept;
    bool run_body(Request& request) noexcept;
    void roll_back() noexcept;
    void commit(Request& own, Line& batch, Line& answered) noexcept;
    void publish(Request& request);

    [[nodiscard]] Request* take_next();
    void return_to_line(Line& batch);
    void hand_over();

    // The leader's.
    Connection& connection_;
    SqliteSession session_;
    bool company_ = false;  // The last batch had more than one body, or left one behind.

    Hub& hub_;
    Counters& counters_;

    mutable std::mutex mutex_;
    std::condition_variable idle_;
    Line line_;
    bool led_ = false;  // A caller leads; always so while the line is not empty.
    bool closed_ = false;
};

}  // namespace holdfast::sql::sqlite

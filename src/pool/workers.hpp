// A few threads that work through a queue of connections to open, or to close.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include <holdfast/pool/machine.hpp>

namespace holdfast::pool {

// Safe to share between threads. The queue needs no bound of its own: the machine never has more
// connections in one state than its bound.
class Workers {
public:
    using Work = std::function<void(ConnectionId, const std::stop_token&)>;

    // Threads start one by one, when there is more work than idle threads, up to `threads_max`.
    Workers(int threads_max, Work work);
    ~Workers() { join(); }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // False if there is no thread, and none can be started: then nothing was queued.
    [[nodiscard]] bool push(ConnectionId connection);

    // Tells the work under way, and all that comes, to be short.
    void request_stop() { stop_.request_stop(); }

    // Works off the queue, then ends all threads. Requires: nobody pushes any more.
    void join();

private:
    void run();

    const std::size_t threads_max_;
    const Work work_;
    std::stop_source stop_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<ConnectionId> queue_;
    std::size_t idle_ = 0;
    bool ending_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace holdfast::pool

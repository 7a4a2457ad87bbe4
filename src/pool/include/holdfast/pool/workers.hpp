// A few threads that work through a queue: connections to open or to close, questions to a store.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::pool {

// Safe to share between threads. The queue needs no bound of its own: the machine that fills it
// never asks for more than its own bound.
template <class Item>
class Workers {
public:
    using Work = std::function<void(const Item&, const std::stop_token&)>;

    // Threads start one by one, when there is more work than idle threads, up to `threads_max`.
    Workers(int threads_max, Work work)
        : threads_max_(static_cast<std::size_t>(threads_max)), work_(std::move(work)) {}
    ~Workers() { join(); }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // False if there is no thread, and none can be started: then nothing was queued.
    [[nodiscard]] bool push(Item item) {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(item));
        if (queue_.size() > idle_ && threads_.size() < threads_max_) {
            try {
                threads_.emplace_back([this] { run(); });
                return true;
            } catch (const std::system_error&) {
                if (threads_.empty()) {
                    queue_.pop_back();
                    return false;
                }
            }
        }
        changed_.notify_one();
        return true;
    }

    // Fires the stop token of the work under way and of all later work.
    void request_stop() { stop_.request_stop(); }

    // Finishes the queue, then ends all threads. Requires: no more pushes.
    void join() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        changed_.notify_all();
        for (std::thread& thread : threads_) {
            thread.join();
        }
        threads_.clear();
    }

private:
    void run() {
        for (;;) {
            std::unique_lock lock(mutex_);
            ++idle_;
            changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
            --idle_;
            if (queue_.empty()) {
                return;
            }
            const Item next = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            work_(next, stop_.get_token());
        }
    }

    const std::size_t threads_max_;
    const Work work_;
    std::stop_source stop_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Item> queue_;
    std::size_t idle_ = 0;
    bool ending_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace holdfast::pool

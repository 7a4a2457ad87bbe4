#include "workers.hpp"

#include <system_error>
#include <utility>

namespace holdfast::pool {

Workers::Workers(int threads_max, Work work)
    : threads_max_(static_cast<std::size_t>(threads_max)), work_(std::move(work)) {}

bool Workers::push(ConnectionId connection) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(connection);
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

void Workers::join() {
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

void Workers::run() {
    for (;;) {
        std::unique_lock lock(mutex_);
        ++idle_;
        changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
        --idle_;
        if (queue_.empty()) {
            return;
        }
        const ConnectionId next = queue_.front();
        queue_.pop_front();
        lock.unlock();
        work_(next, stop_.get_token());
    }
}

}  // namespace holdfast::pool

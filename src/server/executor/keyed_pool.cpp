#include "executor/keyed_pool.hpp"

#include <utility>

#include <holdfast/base/assert.hpp>

namespace holdfast::server {

KeyedPool::KeyedPool(std::size_t threads) {
    HOLDFAST_ASSERT(threads > 0);
    threads_.reserve(threads);
    for (std::size_t i = 0; i < threads; ++i) {
        threads_.emplace_back([this] { work(); });
    }
}

KeyedPool::~KeyedPool() {
    stop(Deadline::after(drain_max));
}

void KeyedPool::post(const std::string& key, Job job) {
    {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            return;  // The caller's own copy of `job` is destroyed without the lock.
        }
        const auto place = lines_.try_emplace(key).first;
        Line& line = place->second;
        const bool first = line.jobs.empty() && !line.running;
        line.jobs.push_back(std::move(job));
        if (!first) {
            return;
        }
        ready_.push_back(&*place);
    }
    changed_.notify_one();
}

void KeyedPool::stop(Deadline drain) {
    {
        const std::lock_guard lock(mutex_);
        drain_ = drain_ ? drain_->earlier(drain) : drain;
    }
    changed_.notify_all();
    const std::lock_guard joining(joining_);
    for (std::thread& thread : threads_) {
        thread.join();
    }
    threads_.clear();
    Lines left;  // Destroyed without the lock: jobs may own what posts or answers.
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        ready_.clear();
        left = std::exchange(lines_, {});
    }
}

bool KeyedPool::abandoned() const {
    return drain_ && drain_->passed();
}

bool KeyedPool::finished() const {
    return drain_ && ((ready_.empty() && running_ == 0) || drain_->passed());
}

void KeyedPool::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return !ready_.empty() || finished(); });
        if (ready_.empty() || abandoned()) {
            return;
        }
        run_next(lock);
        if (finished()) {
            changed_.notify_all();
        }
    }
}

void KeyedPool::run_next(std::unique_lock<std::mutex>& lock) {
    Lines::value_type* const turn = ready_.front();
    ready_.pop_front();
    Line& line = turn->second;
    std::list<Job> taken;
    taken.splice(taken.begin(), line.jobs, line.jobs.begin());
    line.running = true;
    ++running_;

    lock.unlock();
    std::move(taken.front())();
    taken.clear();
    lock.lock();

    --running_;
    line.running = false;
    if (line.jobs.empty()) {
        lines_.erase(turn->first);
    } else {
        ready_.push_back(turn);  // This thread takes the next turn; no other one need wake.
    }
}

}  // namespace holdfast::server

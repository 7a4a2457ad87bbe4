// The threads of a server that run transitions.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "executor/executor.hpp"

#include <holdfast/base/clock.hpp>

namespace holdfast::server {

// Keys that have jobs take turns, one job each, so that a busy key does not hold up the others.
// Safe to share between threads.
class KeyedPool final : public Executor {
public:
    // Requires: at least one thread.
    explicit KeyedPool(std::size_t threads);
    // Stops it, with drain_max.
    ~KeyedPool() override;

    static constexpr std::chrono::nanoseconds drain_max = std::chrono::seconds{10};

    void post(const std::string& key, Job job) override;

    // Runs what was posted and what these jobs post, for they may hold replies, and joins the
    // threads. Once `drain` has passed no other job begins, and what is left is destroyed unrun. So
    // is a job that is posted after the return. Requires: not called by a job.
    void stop(Deadline drain);

private:
    struct Line {
        std::list<Job> jobs;  // Without the one that runs.
        bool running = false;
    };
    using Lines = std::unordered_map<std::string, Line>;

    void work();
    [[nodiscard]] bool finished() const;
    [[nodiscard]] bool abandoned() const;
    void run_next(std::unique_lock<std::mutex>& lock);

    std::mutex mutex_;
    std::condition_variable changed_;
    Lines lines_;  // Keys with a job that waits or runs.
    // Keys with a job that waits and none that runs, in the order of their turns.
    std::deque<Lines::value_type*> ready_;
    std::size_t running_ = 0;
    std::optional<Deadline> drain_;  // Set by stop().
    bool closed_ = false;

    std::mutex joining_;
    std::vector<std::thread> threads_;
};

}  // namespace holdfast::server

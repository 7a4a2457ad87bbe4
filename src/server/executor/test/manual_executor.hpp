// Runs jobs when it is told to, on the calling thread: for tests, and for simulations, where the
// seed decides which key goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "executor/executor.hpp"

#include <holdfast/base/assert.hpp>
#include <holdfast/base/random.hpp>

namespace holdfast::server::tests {

// Jobs may be posted by any thread; one thread runs them.
class ManualExecutor final : public Executor {
public:
    // With a seed, each step takes the first job of a key drawn at random; without, jobs run in the
    // order in which they were posted.
    explicit ManualExecutor(std::optional<std::uint64_t> seed = std::nullopt) {
        if (seed) {
            order_.emplace(*seed);
        }
    }

    void post(const std::string& key, Job job) override {
        const std::lock_guard lock(mutex_);
        waiting_.push_back({key, std::move(job)});
    }

    // False if no job waits. Requires: not called by a job, which would run two at once.
    bool run_one() {
        std::list<Posted> taken;
        {
            const std::lock_guard lock(mutex_);
            HOLDFAST_ASSERT(!running_);
            if (waiting_.empty()) {
                return false;
            }
            taken.splice(taken.begin(), waiting_, next());
            running_ = true;
        }
        std::move(taken.front().job)();
        taken.clear();
        const std::lock_guard lock(mutex_);
        running_ = false;
        return true;
    }

    // Runs until no job waits, and says how many ran. More than `at_most` is taken for jobs that
    // post one another for ever.
    std::size_t run_all(std::size_t at_most = 1'000'000) {
        std::size_t ran = 0;
        while (run_one()) {
            ++ran;
            HOLDFAST_ASSERT(ran <= at_most);
        }
        return ran;
    }

    [[nodiscard]] std::size_t waiting() const {
        const std::lock_guard lock(mutex_);
        return waiting_.size();
    }

    // As when the process dies: what waits never runs.
    void drop_all() {
        std::list<Posted> dropped;
        const std::lock_guard lock(mutex_);
        dropped.swap(waiting_);
    }

private:
    struct Posted {
        std::string key;
        Job job;
    };

    std::list<Posted>::iterator next() {
        if (!order_) {
            return waiting_.begin();
        }
        const auto number = static_cast<std::ptrdiff_t>(order_->below(waiting_.size()));
        const auto drawn = std::next(waiting_.begin(), number);
        auto first = waiting_.begin();
        while (first->key != drawn->key) {
            ++first;
        }
        return first;
    }

    mutable std::mutex mutex_;
    std::optional<Random> order_;
    std::list<Posted> waiting_;
    bool running_ = false;
};

}  // namespace holdfast::server::tests

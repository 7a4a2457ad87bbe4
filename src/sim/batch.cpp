#include <holdfast/sim/batch.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include <holdfast/base/error.hpp>
#include <holdfast/sim/simulation.hpp>

namespace holdfast::sim {
namespace {

Outcome run_one(const Job& job, const std::stop_token& stop) {
    Watch watch;
    watch.stop = stop;
    Result result = simulate(*job.scenario, job.seed, watch);
    return {.seed = job.seed,
            .events = result.events,
            .figures = figures_of(*job.scenario, result),
            .violations = std::move(result.violations)};
}

// Threads take the next job until there is none or one has failed.
class Batch {
public:
    Batch(std::span<const Job> jobs, const BatchOptions& options)
        : jobs_(jobs), options_(options), outcomes_(jobs.size(), Outcome{.finished = false}) {}

    std::vector<Outcome> run() {
        const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
        const std::size_t wanted =
            options_.threads == 0 ? cores : std::min(options_.threads, threads_max);
        {
            std::vector<std::jthread> threads;
            for (std::size_t i = 1; i < std::min(wanted, jobs_.size()); ++i) {
                threads.emplace_back([this] { work(); });
            }
            work();
        }
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        return std::move(outcomes_);
    }

private:
    void work() {
        for (std::size_t i = next_++; i < jobs_.size(); i = next_++) {
            if (options_.stop.stop_requested()) {
                return;  // Short simulations do not check the stop token themselves.
            }
            try {
                outcomes_[i] = run_one(jobs_[i], options_.stop);
            } catch (...) {
                const std::scoped_lock lock(mutex_);
                if (!options_.stop.stop_requested()) {
                    failure_ = failure_ ? failure_ : std::current_exception();
                }
                next_ = jobs_.size();
                return;
            }
            const std::scoped_lock lock(mutex_);
            ++done_;
            if (options_.progress) {
                options_.progress(done_);
            }
        }
    }

    std::span<const Job> jobs_;
    const BatchOptions& options_;
    std::vector<Outcome> outcomes_;
    std::atomic<std::size_t> next_ = 0;
    std::mutex mutex_;
    std::size_t done_ = 0;
    std::exception_ptr failure_;
};

}  // namespace

std::vector<Outcome> run_batch(std::span<const Job> jobs, const BatchOptions& options) {
    return Batch(jobs, options).run();
}

}  // namespace holdfast::sim

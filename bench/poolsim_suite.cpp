#include "poolsim_suite.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <holdfast/sim/batch.hpp>
#include <holdfast/sim/scenario.hpp>
#include <holdfast/sim/simulation.hpp>

namespace holdfast::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t queue_length = 200;  // About what waits in a simulated fleet of 44.

double seconds_since(Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
}

// Calls `once`, which says how many operations it did, until the time is over; at least once.
template <class Once>
Work repeat(std::chrono::nanoseconds time, const std::stop_token& stop, Once once) {
    Work work;
    double calls = 0;
    const Clock::time_point from = Clock::now();
    while (calls == 0 || (Clock::now() - from < time && !stop.stop_requested())) {
        work.operations += once();
        ++calls;
    }
    work.seconds = seconds_since(from);
    work.figures.push_back({"seconds_per_run", work.seconds / calls});
    return work;
}

// The limit of any simulator: a queue of events whose handling costs nothing.
double bare_queue(std::uint64_t events) {
    using Entry = std::pair<std::int64_t, std::uint64_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    for (std::uint64_t i = 0; i < queue_length; ++i) {
        queue.emplace(static_cast<std::int64_t>(i * 7919 % 1000), i);
    }
    for (std::uint64_t i = 0; i < events; ++i) {
        const Entry next = queue.top();
        queue.pop();
        queue.emplace(next.first + 1000, queue_length + i);
    }
    return static_cast<double>(events);
}

class PoolsimSuite final : public Suite {
public:
    std::vector<Pair> pairs() override {
        return {events("poolsim.events.default", sim::Profile::standard),
                events("poolsim.events.compat", sim::Profile::compat_r),
                seeds(1),
                seeds(2)};
    }

    // Nothing is written, so nothing can be lost.
    Durability prepare(std::span<const Pair> /*chosen*/) override { return {}; }

private:
    // ecs-400wps: 44 processes, 22,000 connections, half an hour.
    Pair events(const char* name, sim::Profile profile) {
        const sim::Scenario& scenario = load("ecs-400wps", profile);
        static constexpr std::uint64_t count = 1'000'000;
        return {.name = name,
                .unit = "events/s",
                .ours =
                    [&scenario](auto time, const auto& stop) {
                        return repeat(time, stop, [&] {
                            const sim::Result result = sim::simulate(scenario, scenario.seed);
                            return static_cast<double>(result.events);
                        });
                    },
                .limit =
                    [](auto time, const auto& stop) {
                        return repeat(time, stop, [] { return bare_queue(count); });
                    },
                .floor = {}};
    }

    // ecs-150wps, seed by seed, against the same on one thread without a batch around it.
    Pair seeds(unsigned threads) {
        const sim::Scenario& scenario = load("ecs-150wps", sim::Profile::standard);
        const std::vector<sim::Job> jobs{
            {&scenario, 1}, {&scenario, 2}, {&scenario, 3}, {&scenario, 4}};
        return {.name = fmt::format("poolsim.seeds.t{}", threads),
                .unit = "seeds/s",
                .ours =
                    [jobs, threads](auto time, const auto& stop) {
                        return repeat(time, stop, [&] {
                            const auto all = sim::run_batch(jobs, {.threads = threads});
                            return static_cast<double>(all.size());
                        });
                    },
                .limit =
                    [jobs](auto time, const auto& stop) {
                        return repeat(time, stop, [&] {
                            for (const sim::Job& job : jobs) {
                                (void)sim::simulate(*job.scenario, job.seed);
                            }
                            return static_cast<double>(jobs.size());
                        });
                    },
                .floor = {}};
    }

    const sim::Scenario& load(const std::string& name, sim::Profile profile) {
        return *scenarios_.emplace_back(std::make_unique<sim::Scenario>(
            sim::load_scenario(name, {.profile = profile}).scenario));
    }

    std::vector<std::unique_ptr<sim::Scenario>> scenarios_;  // The arms refer to them.
};

}  // namespace

std::unique_ptr<Suite> make_poolsim_suite(const Place& /*place*/) {
    return std::make_unique<PoolsimSuite>();
}

}  // namespace holdfast::bench

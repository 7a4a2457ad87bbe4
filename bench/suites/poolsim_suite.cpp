#include "suites/poolsim_suite.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sys/resource.h>

#include <holdfast/sim/batch.hpp>
#include <holdfast/sim/scenario.hpp>
#include <holdfast/sim/simulation.hpp>

namespace holdfast::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t queue_length = 200;  // About what waits in a simulated fleet of 44.

constexpr double memory_promised_mb = 200;

double peak_megabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;  // In kilobytes, on Linux.
}

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
                seeds(2),
                run_promise("poolsim.run.default", sim::Profile::standard),
                run_promise("poolsim.run.compat", sim::Profile::compat_r),
                seeds_promise(),
                memory_promise()};
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

    // What is promised in seconds and megabytes is a ratio too: ours by the promise, at least 1.
    static Arm promise(double operations, double seconds) {
        return [=](auto, const auto&) {
            return Work{.operations = operations, .seconds = seconds, .counts = {}};
        };
    }

    // ecs-400wps in less than 2 s.
    Pair run_promise(const char* name, sim::Profile profile) {
        const sim::Scenario& scenario = load("ecs-400wps", profile);
        return {.name = name,
                .unit = "runs/s",
                .ours =
                    [&scenario](auto time, const auto& stop) {
                        return repeat(time, stop, [&] {
                            (void)sim::simulate(scenario, scenario.seed);
                            return 1.0;
                        });
                    },
                .limit = promise(1, 2),
                .floor = 1};
    }

    // 200 seeds of ecs-150wps within 240 s on 2 cores.
    Pair seeds_promise() {
        Pair pair = seeds(2);
        pair.name = "poolsim.seeds.200";
        pair.limit = promise(200, 240);
        pair.floor = 1;
        return pair;
    }

    // Less than 200 MB, for the whole process and all that it has simulated so far.
    Pair memory_promise() {
        const sim::Scenario& scenario = load("ecs-400wps", sim::Profile::standard);
        return {.name = "poolsim.memory",
                .unit = "of 200 MB",
                .ours =
                    [&scenario](auto, const auto&) {
                        (void)sim::simulate(scenario, scenario.seed);
                        const double used = peak_megabytes();
                        return Work{.operations = memory_promised_mb / used,
                                    .seconds = 1,
                                    .counts = {},
                                    .figures = {{"peak_mb", used}}};
                    },
                .limit = promise(1, 1),
                .floor = 1};
    }

    const sim::Scenario& load(const std::string& name, sim::Profile profile) {
        return *scenarios_.emplace_back(std::make_unique<sim::Scenario>(
            sim::load_scenario(name, {.profile = profile}).scenario));
    }

    std::vector<std::unique_ptr<sim::Scenario>> scenarios_;  // The arms refer to them.
};

}  // namespace

std::unique_ptr<Suite> make_poolsim_suite(const WaitTicket& /*place*/) {
    return std::make_unique<PoolsimSuite>();
}

}  // namespace holdfast::bench

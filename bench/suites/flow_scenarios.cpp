#include "suites/flow_scenarios.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "suites/flow_workloads.hpp"
#include "workers.hpp"
#include <fmt/core.h>
#include <malloc.h>
#include <sys/resource.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/bench/latencies.hpp>
#include <holdfast/bench/report.hpp>

namespace holdfast::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr milliseconds patience{120'000};
constexpr flow::EventId long_history = 5'000;
constexpr flow::EventId too_long_history = 20'000;
constexpr int pokes_per_round_max = 1'000;
constexpr int naps_max = 10'000;
constexpr int naps_min = 64;

// What the database and the runtime were asked to do, from its construction on.
class Counted {
public:
    Counted(flow::Store& store, const flow::Runtime& runtime)
        : db_(store.database()), runtime_(runtime), before_(db_.driver_stats()) {}

    [[nodiscard]] std::vector<Count> counts() const {
        const sql::DriverStats now = db_.driver_stats();
        const flow::RuntimeStats stats = runtime_.stats();
        const auto number = [](std::int64_t value) { return static_cast<double>(value); };
        return {{"activities", number(stats.activities)},
                {"commits", number(now.commits - before_.commits)},
                {"statements", number(now.statements - before_.statements)},
                {"round_trips", number(now.round_trips - before_.round_trips)},
                {"events_replayed", number(stats.events_replayed)},
                {"history_bytes_read", number(stats.history_bytes_read)}};
    }

private:
    sql::Database& db_;
    const flow::Runtime& runtime_;
    sql::DriverStats before_;
};

double megabytes(std::int64_t bytes) {
    return static_cast<double>(bytes) / 1e6;
}

double seconds_since(Steady began) {
    return std::chrono::duration<double>(steady_clock::now() - began).count();
}

double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <auto W, class... A>
int run_one(flow::Client& client, const std::string& id, int activities, A... args) {
    client.start<W>(id, args...);
    if (!client.result<W>(id, patience)) {
        throw Error(Code::internal, Outcome::not_applied, "a measured workflow failed");
    }
    return activities;
}

// k clients start workflows and wait for them.
Work run_loop(const Scenario& scenario,
              const FlowStage& phase,
              nanoseconds time,
              const std::stop_token& stop) {
    static std::atomic<std::int64_t> next_id = 0;
    flow::Runtime runtime(phase.store, workloads(), scenario.options);
    flow::Client client(phase.store);
    const std::string run = make_token();
    Latencies latencies;
    std::atomic<std::int64_t> activities = 0;
    const double worked = worked_seconds();
    const Counted counted(phase.store, runtime);
    Work work = run_workers(scenario.in_flight, time, stop, [&](Random&) {
        const Steady began = steady_clock::now();
        activities += scenario.one(client, fmt::format("{}-{}", run, ++next_id));
        latencies.add(steady_clock::now() - began);
    });
    work.counts = counted.counts();
    const double resident_mb = megabytes(resident_memory_bytes());
    runtime.drain(milliseconds{10'000});
    latencies.add_to(work.figures);
    work.figures.push_back(
        {"activities_per_s", static_cast<double>(activities.load()) / work.seconds});
    work.figures.push_back({"resident_mb", resident_mb});
    if (phase.commit_us > 0) {
        work.figures.push_back({"latency_in_commits", latencies.at(0.5) / phase.commit_us});
    }
    if (scenario.ceiling > 0) {
        work.figures.push_back({"of_ceiling", work.operations / work.seconds / scenario.ceiling});
        const double slots = scenario.options.activity_threads;
        work.figures.push_back({"slots_busy", (worked_seconds() - worked) / work.seconds / slots});
    }
    return work;
}

// --- timers
// ----------------------------------------------------------------------------------------

// Starts so many that sleep until then.
void start_naps(flow::Client& client, const std::string& run, int count, std::int64_t until_ms) {
    constexpr int starters = 32;
    std::atomic<int> next = 0;
    std::vector<std::jthread> threads;
    threads.reserve(starters);
    for (int i = 0; i < starters; ++i) {
        threads.emplace_back([&] {
            for (int n = next++; n < count; n = next++) {
                client.start<&nap>(fmt::format("{}-{}-{}", run, until_ms, n), until_ms);
            }
        });
    }
}

// What the process does while everybody sleeps.
std::optional<double> cpu_at_rest(std::chrono::system_clock::time_point until) {
    constexpr std::chrono::milliseconds settling{300};
    constexpr std::chrono::milliseconds shortest{500};
    std::this_thread::sleep_for(settling);
    if (std::chrono::system_clock::now() + shortest > until) {
        return std::nullopt;
    }
    const Steady began = steady_clock::now();
    const double before = cpu_seconds();
    std::this_thread::sleep_until(until);
    return (cpu_seconds() - before) / seconds_since(began) * 100;
}

// Throws if the workflows have not come so far in time; returns early when the token fires.
template <class Done>
void wait_until(const std::stop_token& stop, Done done) {
    const Steady until = steady_clock::now() + patience;
    while (!done() && !stop.stop_requested()) {
        if (steady_clock::now() > until) {
            throw Error(Code::deadline, Outcome::not_applied, "measured workflows do not go on");
        }
        std::this_thread::sleep_for(milliseconds{1});
    }
}

Work run_timers(const Scenario& scenario,
                const FlowStage& phase,
                nanoseconds time,
                const std::stop_token& stop) {
    using std::chrono::system_clock;
    const double share = std::chrono::duration<double>(time).count();
    const int count = std::clamp(static_cast<int>(share * naps_max), naps_min, naps_max);
    const auto in_ms = [](system_clock::time_point moment) {
        return std::chrono::floor<milliseconds>(moment.time_since_epoch()).count();
    };
    flow::Runtime runtime(phase.store, workloads(), scenario.options);
    flow::Client client(phase.store);
    const Counted counted(phase.store, runtime);
    const std::string run = make_token();

    // A few, to see how long the rest will take: all have to sleep before the first wakes up.
    const Steady began = steady_clock::now();
    start_naps(client, run, naps_min, in_ms(system_clock::now()));
    const double probe = seconds_since(began);
    const double wait = probe / naps_min * count * 2 + std::min(share, 1.0) * 2;
    const auto due = system_clock::now() + std::chrono::duration_cast<system_clock::duration>(
                                               std::chrono::duration<double>(wait));
    wait_until(stop, [] { return awake().count() >= naps_min; });
    (void)awake().take();

    Work work{.operations = static_cast<double>(count), .counts = {}};
    const Steady starting = steady_clock::now();
    start_naps(client, run, count, in_ms(due));
    const double started = seconds_since(starting);
    const std::optional<double> rest = cpu_at_rest(due - milliseconds{50});
    const double resident_mb = megabytes(resident_memory_bytes());
    std::this_thread::sleep_until(due);
    wait_until(stop, [count] { return awake().count() >= static_cast<std::size_t>(count); });
    work.seconds = std::chrono::duration<double>(system_clock::now() - due).count();
    runtime.drain(milliseconds{30'000});
    work.counts = counted.counts();
    std::vector<double> late_us = awake().take();
    if (late_us.empty()) {  // Stopped before the first of them woke up.
        return work;
    }
    std::ranges::sort(late_us);
    work.figures = {{"started_per_s", count / started},
                    {"late_p50_ms", late_us[late_us.size() / 2] / 1e3},
                    {"late_p99_ms", late_us[late_us.size() * 99 / 100] / 1e3},
                    {"asleep", static_cast<double>(count)},
                    {"asleep_resident_mb", resident_mb}};
    if (rest) {
        work.figures.push_back({"asleep_cpu_percent", *rest});
    }
    return work;
}

// --- long histories
// ----------------------------------------------------------------------------------

nanoseconds poke(flow::Client& client, const std::string& id) {
    const Steady began = steady_clock::now();
    (void)client.update(id, patience, poke_update, std::int64_t{1});
    return steady_clock::now() - began;
}

// An instance with a history of that length, by this name or by the next.
std::string long_one(flow::Client& client, const std::stop_token& stop) {
    for (int number = 0;; ++number) {
        const std::string id = fmt::format("bench-endless-{}", number);
        std::optional<flow::InstanceInfo> info = client.info(id);
        if (info && info->last_event > too_long_history) {
            continue;
        }
        if (!info) {
            client.start<&endless>(id);
            for (flow::EventId events = 0; events < long_history; events += 2) {
                client.signal(id, pokes, std::int64_t{1});
            }
        }
        wait_until(stop, [&] {
            info = client.info(id);
            return info && info->last_event >= long_history;
        });
        return id;
    }
}

Work run_long_history(const Scenario& scenario,
                      const FlowStage& phase,
                      nanoseconds time,
                      const std::stop_token& stop) {
    flow::Client client(phase.store);
    std::string id;
    {
        const flow::Runtime builder(phase.store, workloads(), scenario.options);
        id = long_one(client, stop);
    }
    const flow::Runtime runtime(phase.store, workloads(), scenario.options);
    const std::string short_id = "bench-short-" + make_token();
    client.start<&endless>(short_id);
    const double cold_us = static_cast<double>(poke(client, id).count()) / 1e3;
    (void)poke(client, short_id);

    Latencies of_long;
    Latencies of_short;
    const Counted counted(phase.store, runtime);
    Work work{.operations = 0, .counts = {}};
    const Steady began = steady_clock::now();
    do {
        const nanoseconds took = poke(client, id);
        of_long.add(took);
        ++work.operations;
        work.seconds += std::chrono::duration<double>(took).count();
        of_short.add(poke(client, short_id));
    } while (steady_clock::now() - began < time && work.operations < pokes_per_round_max &&
             !stop.stop_requested());
    work.counts = counted.counts();
    of_long.add_to(work.figures);
    of_short.add_to(work.figures, "short_");
    work.figures.push_back({"cold_us", cold_us});
    client.terminate(short_id, "measured");
    return work;
}

// --- all of them
// -------------------------------------------------------------------------------------

flow::RuntimeOptions threads(int workflows, int activities) {
    flow::RuntimeOptions options;
    options.workflow_threads = workflows;
    options.activity_threads = activities;
    return options;
}

Scenario chain_of(std::string_view name, std::int64_t steps, int in_flight) {
    return {.name = name,
            .in_flight = in_flight,
            .options = threads(2, 8),
            .one = [steps](flow::Client& client, const std::string& id) {
                return run_one<&chain>(client, id, static_cast<int>(steps), steps);
            }};
}

Scenario parallel_on(int slots, std::string_view variant) {
    constexpr int tasks = 5;
    constexpr double tasks_per_second = 100;
    return {.name = "parallel",
            .in_flight = 20,
            .variant = variant,
            .options = threads(slots, slots),
            .one =
                [](flow::Client& client, const std::string& id) {
                    return run_one<&parallel_slow>(client, id, tasks, std::int64_t{tasks});
                },
            .ceiling = slots * tasks_per_second / tasks};
}

}  // namespace

std::vector<Scenario> flow_scenarios() {
    std::vector<Scenario> all{chain_of("chain1", 1, 1),
                              chain_of("chain1", 1, 16),
                              chain_of("chain1", 1, 64),
                              chain_of("chain5", 5, 16),
                              chain_of("chain5", 5, 64),
                              parallel_on(1, ".s1"),
                              parallel_on(2, ".s2")};
    all[1].postgres_floor = 0.10;
    all[2].sqlite_floor = 0.6;
    all[3].postgres_floor = 0.035;
    all[4].sqlite_floor = 0.2;
    all.push_back({.name = "parallel0",
                   .in_flight = 200,
                   .options = threads(8, 32),
                   .one =
                       [](flow::Client& client, const std::string& id) {
                           return run_one<&parallel>(client, id, 5, std::int64_t{5});
                       },
                   .sqlite_floor = 0.25});
    all.push_back({.name = "fanout",
                   .options = threads(2, 8),
                   .one = [](flow::Client& client, const std::string& id) {
                       return run_one<&fanout>(client, id, 1000, std::int64_t{1000});
                   }});
    all.push_back({.name = "timers", .options = threads(2, 8), .round = &run_timers});
    all.push_back({.name = "longhistory", .options = threads(2, 8), .round = &run_long_history});
    all.push_back({.name = "largepayload",
                   .in_flight = 5,
                   .options = threads(1, 1),
                   .one = [](flow::Client& client,
                             const std::string& id) { return run_one<&large>(client, id, 40); },
                   .ceiling = 5});
    return all;
}

Work run_scenario(const Scenario& scenario,
                  const FlowStage& phase,
                  nanoseconds time,
                  const std::stop_token& stop) {
    ::malloc_trim(0);  // What earlier rounds have left is not this one's.
    return scenario.round ? scenario.round(scenario, phase, time, stop)
                          : run_loop(scenario, phase, time, stop);
}

}  // namespace holdfast::bench

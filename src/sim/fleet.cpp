#include "fleet.hpp"

#include <algorithm>

#include "latency.hpp"

namespace holdfast::sim {
namespace {

constexpr Time reap_every = std::chrono::minutes{1};

pool::PermitConfig permits_of(const Scenario& scenario) {
    pool::PermitConfig config{.per_second = scenario.limit_per_second,
                              .burst = scenario.limiter.burst,
                              .wait_max = scenario.limiter.wait_max};
    if (scenario.limiter.kind == LimiterKind::counter) {
        config.algorithm = pool::PermitAlgorithm::counter;
    } else if (scenario.limiter.kind == LimiterKind::bucket) {
        config.algorithm = pool::PermitAlgorithm::bucket;
    }
    return config;
}

}  // namespace

Fleet::Part::Part() = default;

Fleet::Process::Process(const Service& which, std::uint32_t index, std::uint64_t seed)
    : service(which),
      number(index),
      target(which.target),
      holds(seed_of(seed, which.name, "holds")),
      arrivals(seed_of(seed, which.name, "arrivals")),
      network(seed_of(seed, which.name, "network")),
      permits(seed_of(seed, which.name, "permits")) {
    part.emplace();
}

Fleet::Fleet(const Scenario& scenario, std::uint64_t seed, const Watch& watch)
    : scenario_(scenario),
      seed_(seed),
      watch_(watch),
      agenda_(scenario.duration),
      door_(scenario.cluster),
      shared_(scenario.limit_per_second, scenario.limiter.burst),
      table_(scenario.table, scenario.slots, scenario.cluster.ceiling),
      permits_(permits_of(scenario)),
      progress_(scenario.faults.size()),
      chance_(seed_of(seed, "cluster", "chance")) {
    const auto count = static_cast<double>(scenario.services.size());
    for (const Service& service : scenario.services) {
        const auto number = static_cast<std::uint32_t>(processes_.size());
        Process& process = processes_.emplace_back(service, number, seed);
        process.bucket.set(scenario.limit_per_second / count,
                           std::max(1.0, scenario.limiter.burst / count));
        Random clock(seed_of(seed, service.name, "clock"));
        process.skew = draw_part(2 * scenario.table.skew, clock) - scenario.table.skew;
        at(service.start_delay, Step::start, process);
    }
    for (std::uint32_t i = 0; i < scenario.faults.size(); ++i) {
        if (scenario.faults[i].kind != FaultKind::cold_start) {
            agenda_.at(scenario.faults[i].at, {.step = Step::fault, .process = i});
        }
    }
    if (scenario.slots.kind == SlotsKind::leases && scenario.slots.reap) {
        agenda_.at(reap_every, {.step = Step::reap});
    }
    agenda_.at(scenario.sample_every, {.step = Step::sample});
    if (watch.explain_at) {
        agenda_.at(*watch.explain_at, {.step = Step::explain});
    }
}

Result Fleet::run() {
    run_agenda(agenda_, watch_, [this](const What& what) { handle(what); });
    result_.events = agenda_.executed();
    result_.last = row(scenario_.duration);
    Observations& seen = result_.seen;
    seen.total_max = door_.most();
    seen.leaked = door_.inside();
    for (const Process& process : processes_) {
        seen.leaked -= process.owned + process.admitted;
        seen.filled.push_back(process.filled.value_or(Time::max()));
    }
    seen.table_counted = table_.counted();
    seen.table_throttled = table_.throttled();
    if (degraded_ > 0) {
        seen.degraded += scenario_.duration - degraded_since_;
    }
    std::ranges::sort(seen.waits);
    std::ranges::sort(seen.idles);
    std::ranges::sort(seen.ages);
    std::ranges::sort(seen.short_spells);
    return std::move(result_);
}

void Fleet::at(Time when, Step step, const Process& process, pool::ConnectionId connection) {
    agenda_.at(
        when,
        {.step = step, .process = process.number, .life = process.life, .connection = connection});
}

void Fleet::handle(const What& what) {
    switch (what.step) {
        case Step::fault:
            return strike(what.process);
        case Step::fault_end:
            return relent(what.process);
        case Step::sample:
            return sample();
        case Step::explain:
            return explain();
        case Step::reap:
            if (!table_away_) {
                table_.reap(now(), limits_);
            }
            return agenda_.after(reap_every, {.step = Step::reap});
        default:
            break;
    }
    Process& process = processes_[what.process];
    switch (what.step) {  // Also if the process is gone that asked.
        case Step::answer:
            return answer(process, what);
        case Step::call:
            return reach_table(process, what);
        case Step::reply:
            return hear_table(process, what);
        default:
            break;
    }
    if (what.life == process.life) {
        handle(process, what);
    }
}

void Fleet::handle(Process& process, const What& what) {
    switch (what.step) {
        case Step::start:
            return start(process);
        case Step::wake:
            if (process.wake == now()) {
                process.wake = Time::max();
                tell(process, pool::Tick{});
            }
            return;
        case Step::connect:
            return connect(process, what.connection);
        case Step::age_out: {
            Connection& connection = process.connections[what.connection.slot];
            if (connection.open && connection.birth == what.connection.birth) {
                lose(process, connection);
            }
            return;
        }
        case Step::probe:
            return probe(process);
        case Step::arrive:
            return arrive(process);
        case Step::again: {
            const Request request = process.requests.at(what.request);
            process.requests.erase(what.request);
            return ask(process, request);
        }
        case Step::give_back:
            return give_back(process, what.connection);
        case Step::pause_end: {
            const auto& request = process.part->requests.at(what.connection.slot);
            return pursue(process, what.connection, request->next(moment(process)));
        }
        case Step::no_slot:
            return end_waiting(process, what.connection);
        case Step::forgo:
            return fail_opening(process, what.connection, what.outcome);
        case Step::tend:
            return tend(process);
        default:
            return;
    }
}

Steady Fleet::steady(Time time) const noexcept {
    return Steady{std::chrono::hours{1} + time};  // The machine takes zero for long ago.
}

Result simulate_fleet(const Scenario& scenario, std::uint64_t seed, const Watch& watch) {
    return Fleet(scenario, seed, watch).run();
}

}  // namespace holdfast::sim

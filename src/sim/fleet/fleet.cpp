#include "fleet/fleet.hpp"

#include <algorithm>

#include "fleet/latency.hpp"

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

Fleet::Part::Part(Bucket whole, Bucket fair) : own(std::move(whole)), share(std::move(fair)) {}

Fleet::Host::Host(const std::string& process, std::uint32_t index, std::uint64_t seed)
    : name(process), number(index), permits(seed_of(seed, process, "permits")) {}

Fleet::Pool::Pool(const Service& which, Host& process, std::uint32_t index, std::uint64_t seed)
    : service(which),
      host(process),
      number(index),
      target(which.target),
      holds(seed_of(seed, which.name, "holds")),
      arrivals(seed_of(seed, which.name, "arrivals")),
      network(seed_of(seed, which.name, "network")) {}

Fleet::Fleet(const Scenario& scenario, std::uint64_t seed, const Watch& watch)
    : scenario_(scenario),
      seed_(seed),
      watch_(watch),
      events_(scenario.duration),
      door_(scenario.cluster),
      shared_(scenario.limit_per_second, scenario.limiter.burst),
      table_(scenario.table, scenario.slots, scenario.cluster.ceiling),
      permits_(permits_of(scenario)),
      progress_(scenario.faults.size()),
      turns_(scenario.faults.size()),
      chance_(seed_of(seed, "cluster", "chance")) {
    for (const Service& service : scenario.services) {
        if (hosts_.empty() || hosts_.back().name != service.process) {
            const auto number = static_cast<std::uint32_t>(hosts_.size());
            Host& host = hosts_.emplace_back(service.process, number, seed);
            Random clock(seed_of(seed, service.process, "clock"));
            host.skew = draw_part(2 * scenario.table.skew, clock) - scenario.table.skew;
            at(service.start_delay, Step::start, host);
        }
        const auto number = static_cast<std::uint32_t>(pools_.size());
        hosts_.back().pools.push_back(&pools_.emplace_back(service, hosts_.back(), number, seed));
    }
    share_out(scenario.limit_per_second);
    for (Host& host : hosts_) {
        host.part = new_part();
    }
    for (std::uint32_t i = 0; i < scenario.faults.size(); ++i) {
        if (scenario.faults[i].kind != FaultKind::cold_start) {
            events_.at(scenario.faults[i].at, {.step = Step::fault, .number = i});
        }
    }
    if (scenario.slots.kind == SlotsKind::leases && scenario.slots.reap) {
        events_.at(reap_every, {.step = Step::reap});
    }
    events_.at(scenario.sample_every, {.step = Step::sample});
    if (watch.explain_at) {
        events_.at(*watch.explain_at, {.step = Step::explain});
    }
}

Result Fleet::run() {
    run_events(events_, watch_, [this](const What& what) { handle(what); });
    result_.events = events_.executed();
    for (Pool& pool : pools_) {
        for (const auto& waiting : pool.requests) {  // In any order: what is noted is sorted.
            note_unserved(pool, waiting.second);
        }
    }
    result_.last = row(scenario_.duration);
    Observations& seen = result_.seen;
    seen.total_max = door_.most();
    seen.leaked = door_.inside();
    for (const Pool& pool : pools_) {
        seen.leaked -= pool.owned + pool.admitted;
        seen.filled.push_back(pool.filled.value_or(Time::max()));
    }
    seen.table_counted = table_.counted();
    for (const Owner& owner : table_.lease_owners()) {
        const Host& host = hosts_[owner.process];
        if (owner.life != host.life) {
            seen.orphans.push_back({scenario_.duration, host.pools.front()->number});
        }
    }
    seen.table_throttled = table_.throttled();
    seen.table_conflicts = table_.conflicts();
    if (degraded_ > 0) {
        seen.degraded += scenario_.duration - degraded_since_;
    }
    std::ranges::sort(seen.waits);
    std::ranges::sort(seen.idles);
    std::ranges::sort(seen.ages);
    std::ranges::sort(seen.short_spells);
    return std::move(result_);
}

// Each process has its part of what all may open, whatever the number of its pools.
void Fleet::share_out(double per_second) {
    const Limiter& limiter = scenario_.limiter;
    const int count = static_cast<int>(hosts_.size());
    share_ = per_second / count;
    share_burst_ = std::max(1, limiter.burst / count);
    if (limiter.kind != LimiterKind::local) {  // Where the share stands in for the table.
        share_ = std::min(share_, limiter.own_per_second);
        share_burst_ = std::min(share_burst_, limiter.own_burst);
    }
    for (Host& host : hosts_) {
        if (host.part) {
            host.part->share.rate = share_;
        }
    }
}

std::unique_ptr<Fleet::Part> Fleet::new_part() const {
    return std::make_unique<Part>(
        Bucket(scenario_.limiter.own_per_second, scenario_.limiter.own_burst),
        Bucket(share_, share_burst_));
}

void Fleet::at(Time when, Step step, const Host& host) {
    events_.at(when, {.step = step, .number = host.number, .life = host.life});
}

void Fleet::at(Time when, Step step, const Pool& pool, pool::ConnectionId connection) {
    events_.at(
        when,
        {.step = step, .number = pool.number, .life = pool.host.life, .connection = connection});
}

void Fleet::handle(const What& what) {
    switch (what.step) {
        case Step::fault:
            return strike(what.number);
        case Step::fault_end:
            return relent(what.number);
        case Step::sample:
            return sample();
        case Step::explain:
            return explain();
        case Step::reap:
            if (!table_away_) {
                table_.reap(now(), limits_);
            }
            return events_.after(reap_every, {.step = Step::reap});
        default:
            break;
    }
    switch (what.step) {  // Also if the host is gone that asked.
        case Step::answer:
            return answer(pools_[what.number], what);
        case Step::call:
            return reach_table(hosts_[what.number], what);
        case Step::reply:
            return hear_table(hosts_[what.number], what);
        case Step::start:
        case Step::tend:
        case Step::shed:
        case Step::serve:
            return handle(hosts_[what.number], what);
        default:
            break;
    }
    Pool& pool = pools_[what.number];
    if (what.life == pool.host.life) {
        handle(pool, what);
    }
}

void Fleet::handle(Host& host, const What& what) {
    if (what.life != host.life) {
        return;
    }
    switch (what.step) {
        case Step::start:
            return start(host);
        case Step::tend:
            return tend(host);
        case Step::serve:
            return serve(host);
        default:
            return shed(host);
    }
}

void Fleet::handle(Pool& pool, const What& what) {
    switch (what.step) {
        case Step::wake:
            if (pool.wake == now()) {
                pool.wake = Time::max();
                tell(pool, pool::Tick{});
            }
            return;
        case Step::begin:
            --pool.unnoticed;
            return seek_slot(pool, what.connection);
        case Step::connect:
            return connect(pool, what.connection);
        case Step::age_out: {
            Connection& connection = pool.connections[what.connection.slot];
            if (connection.open && !connection.dead && connection.birth == what.connection.birth) {
                age_out(pool, what.connection);
            }
            return;
        }
        case Step::probe:
            return probe(pool);
        case Step::arrive:
            return arrive(pool);
        case Step::again: {
            const Request request = pool.requests.at(what.request);
            pool.requests.erase(what.request);
            return ask(pool, request);
        }
        case Step::give_back:
            return give_back(pool, what.connection);
        case Step::pause_end: {
            const auto& request = pool.connections[what.connection.slot].permit;
            return pursue(pool, what.connection, request->next(moment(pool.host)));
        }
        case Step::no_slot:
            return end_waiting(pool, what.connection);
        case Step::forgo:
            return fail_opening(pool, what.connection, what.outcome);
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

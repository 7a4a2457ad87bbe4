#include "scenario/scenario_standard.hpp"

#include <algorithm>
#include <array>

#include "scenario/scenario_words.hpp"
#include "scenario/templates.hpp"
#include <fmt/core.h>

#include <holdfast/base/units.hpp>
#include <holdfast/pool/config.hpp>
#include <holdfast/pool/fleet_limits.hpp>

namespace holdfast::sim {
namespace {

constexpr int in_flight_max = 1'000;
constexpr int block_max = 1'000;
constexpr int pools_max = 100;  // In one process.
constexpr int rate_max = 1'000'000;
constexpr int items_max = 1'000'000;  // Of work, that come at one moment.
constexpr int retries_max = 1'000;
constexpr double factor_max = 1'000;
constexpr double jump_max_s = 366.0 * 86'400;

// What each kind looks at, besides its kind and when it strikes.
constexpr std::array fault_keys{
    Word{"", FaultKind::cold_start},
    Word{"services every batch down stagger order", FaultKind::rolling_restart},
    Word{"services fraction which includeLent", FaultKind::mass_drop},
    Word{"services down stagger", FaultKind::crash},
    Word{"for", FaultKind::outage},
    Word{"for fraction", FaultKind::rejects},
    Word{"for value", FaultKind::slow},
    Word{"for", FaultKind::credentials},
    Word{"services for", FaultKind::partition},
    Word{"value", FaultKind::limit},
    Word{"services value over", FaultKind::scale},
    Word{"value", FaultKind::load},
    Word{"for", FaultKind::table_outage},
    Word{"services value", FaultKind::clock_jump},
};

// A duration, or {uniform: [5ms, 10ms]}, {median: 80ms, p99: 300ms}, {listed: [...]}.
void read_latency(Fields& fields, std::string_view key, Latency& to) {
    const Node& node = fields.below(key);
    if (node.kind == Node::Kind::null) {
        Time known = to.low;
        return fields.read(key, known);  // For the list of keys.
    }
    if (node.kind == Node::Kind::scalar) {
        to = {};
        return fields.read(key, to.low);
    }
    Fields below(node, fields.path_of(key), fields.rules());
    if (below.has("median")) {
        to = {.kind = Latency::Kind::lognormal};
        below.read("median", to.low);
        to.high = to.low;
        below.read("p99", to.high);
        below.require(to.low > Time{0}, "median", "give more than 0");
        below.require(to.high >= to.low, "p99", "give at least the median");
    } else if (below.has("from")) {
        to = {.kind = Latency::Kind::uniform};
        below.read("from", to.low);
        below.read("to", to.high);
        below.require(to.high >= to.low, "to", "give at least what stands at from");
    } else {
        to = {.kind = Latency::Kind::listed};
        const Node& list = below.below("listed");
        below.require(list.kind == Node::Kind::list && !list.items.empty(),
                      "listed",
                      "give a duration, median and p99, from and to, or a list");
        for (const Node& item : list.items) {
            Node entry{.kind = Node::Kind::map};
            entry.fields.emplace_back("listed", item);
            Fields one(entry, fields.path_of(key), fields.rules());
            one.read("listed", to.listed.emplace_back());
        }
    }
    below.finish();
}

void read_share(Fields& fields, std::string_view key, double& to) {
    fields.read(key, to);
    fields.require(to >= 0 && to < 1, key, "give 0 to below 1");
}

// A share, or one for each phase.
void read_failures(Fields& fields, Cluster& cluster) {
    if (const Node& node = fields.below("failures"); node.kind == Node::Kind::scalar) {
        return read_share(fields, "failures", cluster.failures);
    }
    Fields phases(fields.below("failures"), fields.path_of("failures"), fields.rules());
    read_share(phases, "reach", cluster.failures);
    read_share(phases, "login", cluster.login_failures);
    read_share(phases, "session", cluster.session_failures);
    phases.finish();
}

void read_cluster(Fields fields, Cluster& cluster) {
    fields.read("rate", cluster.rate);
    fields.require(cluster.rate > 0 && cluster.rate <= rate_max,
                   "rate",
                   fmt::format("give more than 0, at most {}", rate_max));
    fields.read("burst", cluster.burst);
    fields.require(cluster.burst >= 1, "burst", "give 1 or more");
    fields.read("ceiling", cluster.ceiling);
    fields.require(cluster.ceiling >= 1, "ceiling", "give 1 or more");
    fields.read("maxAge", cluster.age_max);
    fields.require(cluster.age_max > Time{0}, "maxAge", "give more than 0");
    fields.read("ageGrace", cluster.age_grace);
    read_latency(fields, "connect", cluster.connect);
    read_failures(fields, cluster);
    fields.finish();
}

void read_limiter(Fields fields, Limiter& limiter) {
    constexpr std::array kinds{Word{"none", LimiterKind::none},
                               Word{"ideal", LimiterKind::ideal},
                               Word{"local", LimiterKind::local},
                               Word{"counter", LimiterKind::counter},
                               Word{"bucket", LimiterKind::bucket},
                               Word{"reserve", LimiterKind::reserve}};
    read_word(fields, "kind", kinds, limiter.kind);
    fields.read("burst", limiter.burst);
    fields.require(limiter.burst >= 1 && limiter.burst <= rate_max,
                   "burst",
                   fmt::format("give 1 or more, at most {}", rate_max));
    fields.read("maxWait", limiter.wait_max);
    fields.require(limiter.wait_max > Time{0}, "maxWait", "give more than 0");
    fields.read("ownPerSec", limiter.own_per_second);
    fields.require(limiter.own_per_second > 0 && limiter.own_per_second <= 1e6,
                   "ownPerSec",
                   "give more than 0, at most a million");
    fields.read("ownBurst", limiter.own_burst);
    fields.require(limiter.own_burst >= 1, "ownBurst", "give 1 or more");
    fields.finish();
}

void read_table(Fields fields, SharedTable& table) {
    read_latency(fields, "latency", table.latency);
    fields.read("transaction", table.transaction);
    fields.require(table.transaction <= std::chrono::seconds{1}, "transaction", "give at most 1s");
    fields.read("writesPerItem", table.writes_per_item);
    fields.require(table.writes_per_item >= 1, "writesPerItem", "give 1 or more");
    fields.read("retries", table.retries);
    fields.require(table.retries >= 0, "retries", "give 0 or more");
    fields.read("timeout", table.timeout);
    fields.require(table.timeout > Time{0}, "timeout", "give more than 0");
    fields.read("skew", table.skew);
    fields.read("skewCorrected", table.skew_corrected);
    fields.finish();
}

// A word, or a map with more to say.
void read_slots(Fields& top, const Cluster& cluster, Slots& slots) {
    constexpr std::array kinds{Word{"none", SlotsKind::none},
                               Word{"share", SlotsKind::share},
                               Word{"blocks", SlotsKind::blocks},
                               Word{"leases", SlotsKind::leases}};
    const auto fits = [&] {
        return slots.kind != SlotsKind::blocks || slots.block <= cluster.ceiling;
    };
    if (const Node& node = top.below("slots"); node.kind == Node::Kind::scalar) {
        read_word(top, "slots", kinds, slots.kind);
        return top.require(fits(),
                           "slots",
                           fmt::format("a block has {} slots and the ceiling is {}; write {{kind: "
                                       "blocks, block: N}} with fewer",
                                       slots.block,
                                       cluster.ceiling));
    }
    Fields fields(top.below("slots"), "slots", top.rules());
    read_word(fields, "kind", kinds, slots.kind);
    fields.read("block", slots.block);
    fields.require(slots.block >= 1 && slots.block <= block_max && fits(),
                   "block",
                   fmt::format("give 1 to {}, and no more than the ceiling", block_max));
    fields.read("ttl", slots.ttl);
    fields.read("renewEvery", slots.renew_every);
    fields.require(slots.renew_every > Time{0}, "renewEvery", "give more than 0");
    fields.require(slots.ttl >= 3 * slots.renew_every, "ttl", "give three times renewEvery");
    // As in the product: a slot whose lease is about to end is not used any more.
    const Time unused = std::max<Time>(pool::FleetLimits{}.block_safety_min, slots.ttl / 6);
    fields.require(slots.kind != SlotsKind::blocks || slots.ttl - unused > slots.renew_every,
                   "ttl",
                   fmt::format("a block is not used in its last {}, so it would be lost before it "
                               "is renewed; give more",
                               format_duration(unused)));
    fields.read("localCap", slots.local_cap);
    fields.require(slots.local_cap >= 0, "localCap", "give 0 or more");
    fields.read("reap", slots.reap);
    fields.finish();
}

void require_value(const Fields& fields, const Fault& fault) {
    const auto within = [&](double least, double most) {
        fields.require(fault.value >= least && fault.value <= most,
                       "value",
                       fmt::format("give {:.10g} to {:.10g}", least, most));
    };
    switch (fault.kind) {
        case FaultKind::slow:
        case FaultKind::load:
            return within(1 / factor_max, factor_max);
        case FaultKind::limit:
            return within(1e-3, rate_max);
        case FaultKind::scale:
            return within(1, pool::target_max);
        case FaultKind::clock_jump:
            fields.require(fields.has("value"), "value", "say by how many seconds");
            return within(-jump_max_s, jump_max_s);
        default:
            return;
    }
}

Fault read_fault(Fields fields, const Scenario& scenario) {
    constexpr std::array order{Word{"oldest", Which::oldest},
                               Word{"newest", Which::newest},
                               Word{"random", Which::random}};
    constexpr std::array turns{Word{"listed", Order::listed}, Word{"random", Order::random}};
    Fault fault;
    fields.require(fields.has("kind"), "kind", "give the kind of fault");
    read_word(fields, "kind", fault_words, fault.kind);
    fields.read("at", fault.at);
    if (fault.at > scenario.duration && fault.kind != FaultKind::cold_start) {
        fields.warn("at", "after the end, so it never happens");
    }
    fields.read("for", fault.lasts);
    fields.read("every", fault.every);
    fields.require(fault.every >= tick_min, "every", "give 1ms or more");
    fields.read("down", fault.down);
    fields.read("stagger", fault.stagger);
    read_word(fields, "order", turns, fault.order);
    fields.read("batch", fault.batch);
    fields.require(fault.batch >= 1, "batch", "give 1 or more");
    fields.read("fraction", fault.fraction);
    fields.require(
        fault.fraction > 0 && fault.fraction <= 1, "fraction", "give more than 0, at most 1");
    fields.read("includeLent", fault.include_lent);
    read_word(fields, "which", order, fault.which);
    fields.read("services", fault.services);
    const bool hits = std::ranges::any_of(scenario.services, [&](const Service& one) {
        return one.name.starts_with(fault.services);
    });
    fields.require(hits, "services", "no service has a name that begins so");
    fields.read("value", fault.value);
    fields.read("over", fault.over);
    require_value(fields, fault);
    refuse_unheard(fields,
                   to_string(fault.kind),
                   word_of(fault_keys, fault.kind),
                   {"for",
                    "every",
                    "down",
                    "stagger",
                    "order",
                    "batch",
                    "fraction",
                    "includeLent",
                    "which",
                    "services",
                    "value",
                    "over"});
    fields.finish();
    return fault;
}

void require_tick(const Fields& fields, std::string_view key, Time every) {
    fields.require(every == Time{0} || every >= tick_min, key, "give 1ms or more, or 0s for never");
}

// A fleet that is never asked for anything would hold whatever is promised.
void require_arrivals(const Fields& fields, const Workload& work) {
    const bool closed = work.arrivals == Arrivals::closed;
    fields.require(work.in_use_max >= 0 && work.in_use_max <= items_max,
                   "maxInUse",
                   fmt::format("give 0 to {}", items_max));
    fields.require(work.burst >= 1 && work.burst <= items_max,
                   "arrivalBurst",
                   fmt::format("give 1 to {}", items_max));
    fields.require(!closed || !fields.has("rate"),
                   "rate",
                   "arrivals that are closed have none; choose poisson, steady or bursts");
    fields.require(!work.enabled || !closed || work.in_use_max > 0,
                   "maxInUse",
                   "say how much is at work at a time, or choose other arrivals");
    fields.require(!work.enabled || work.arrivals != Arrivals::trace || !work.trace.empty(),
                   "trace",
                   "list what arrives, or name a traceFile");
    fields.require(!work.enabled || work.trace.empty() || work.arrivals == Arrivals::trace,
                   "trace",
                   "say arrivals: trace, or leave it out");
    if (!fields.has("enabled") && fields.any()) {
        fields.warn("enabled", "missing, so nothing comes; say true or false");
    }
}

}  // namespace

std::string_view to_string(FaultKind kind) noexcept {
    return word_of(fault_words, kind);
}

void read_standard(Fields& top, Scenario& scenario) {
    read_cluster(Fields(top.below("cluster"), "cluster", top.rules()), scenario.cluster);
    read_limiter(Fields(top.below("limiter"), "limiter", top.rules()), scenario.limiter);
    read_table(Fields(top.below("dynamodb"), "dynamodb", top.rules()), scenario.table);
    read_slots(top, scenario.cluster, scenario.slots);
    read_list(top, "faults", [&](Fields one) {
        scenario.faults.push_back(read_fault(std::move(one), scenario));
    });
    read_assertions(top, scenario);
}

void read_standard_service(Fields& fields, Service& service) {
    fields.read("inFlight", service.in_flight);
    fields.require(service.in_flight >= 1 && service.in_flight <= in_flight_max,
                   "inFlight",
                   fmt::format("give 1 to {}", in_flight_max));
    fields.read("lead", service.lead);
    fields.require(service.lead < service.life - service.guard,
                   "lead",
                   "must be shorter than baseLifetime without guardWindow");
    const bool leads = service.lead > Time{0};
    service.overshoot = leads ? pool::reservoir(service.target).overshoot : 0;
    fields.read("overshoot", service.overshoot);
    fields.require(!leads || service.overshoot != 0,
                   "overshoot",
                   "with a lead give 1 or more, or there is no room for a replacement");
    fields.require(service.overshoot >= 0 && service.overshoot <= pool::target_max,
                   "overshoot",
                   fmt::format("give 0 to {}", pool::target_max));
    fields.read("spread", service.spread);
    fields.read("pollEvery", service.poll_every);
    require_tick(fields, "pollEvery", service.poll_every);
    fields.read("countLent", service.count_lent);
    fields.read("probeEvery", service.probe_every);
    require_tick(fields, "probeEvery", service.probe_every);
}

int read_pools(Fields& fields, std::size_t most) {
    int pools = 1;
    fields.read("pools", pools);
    fields.require(
        pools >= 1 && pools <= pools_max, "pools", fmt::format("give 1 to {}", pools_max));
    fields.require(static_cast<std::size_t>(pools) <= most,
                   "pools",
                   fmt::format("at most {} pools in all", services_max));
    return pools;
}

void read_standard_work(Fields& fields, Workload& work) {
    constexpr std::array kinds{Word{"closed", Arrivals::closed},
                               Word{"poisson", Arrivals::poisson},
                               Word{"steady", Arrivals::steady},
                               Word{"bursts", Arrivals::bursts},
                               Word{"trace", Arrivals::trace}};
    read_word(fields, "arrivals", kinds, work.arrivals);
    fields.read("rate", work.rate);
    const bool rated = work.arrivals == Arrivals::poisson || work.arrivals == Arrivals::steady ||
                       work.arrivals == Arrivals::bursts;
    fields.require(!rated || (work.rate >= 1e-3 && work.rate <= 1e6),
                   "rate",
                   "say how many come in a second: 0.001 to a million");
    Latency held{.low = work.hold};
    read_latency(fields, "hold", held);
    if (fields.has("hold")) {
        work.held = held;
    }
    fields.read("on", work.on);
    fields.read("off", work.off);
    fields.require(work.on >= std::chrono::milliseconds{1}, "on", "give 1ms or more");
    fields.read("retries", work.retries);
    fields.require(work.retries >= 0 && work.retries <= retries_max,
                   "retries",
                   fmt::format("give 0 to {}", retries_max));
    fields.read("retryAfter", work.retry_after);
    read_list(fields, "trace", [&](Fields one) {
        Arrival& arrival = work.trace.emplace_back();
        one.read("at", arrival.at);
        one.read("count", arrival.count);
        one.require(arrival.count >= 1 && arrival.count <= items_max,
                    "count",
                    fmt::format("give 1 or more, at most {}", items_max));
        one.require(work.trace.size() < 2 || work.trace[work.trace.size() - 2].at <= arrival.at,
                    "at",
                    "list the arrivals in order of time");
        one.finish();
    });
    require_arrivals(fields, work);
}

}  // namespace holdfast::sim

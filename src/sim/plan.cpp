#include <holdfast/sim/plan.hpp>

#include <algorithm>
#include <cmath>

#include "seconds.hpp"
#include <fmt/core.h>

namespace holdfast::sim {
namespace {

// The older models look for expired connections so often; the machine is woken at the moment.
constexpr double scan_lag_s = 0.5;
// With more of the limit spent on replacement, recovery from a restart or a loss takes too long.
constexpr double replacement_share_max = 0.5;
// Above it a rolling restart, which holds old and new connections, meets the ceiling.
constexpr double ceiling_share_max = 0.8;
constexpr double age_margin_s = 300;
// Larger slot blocks leave some process far from its fair share.
constexpr double block_share_max = 0.1;

struct Facts {
    double connections = 0;
    double largest = 0;  // Target of one process,
    double smallest = 1e18;
    double rate = 0;
    double burst = 0;
    double residency = 0;  // The mean over the fleet, by connection.
    double jitter = 0;
    double longest_life = 0;
    double shortest_useful = 0;  // The first death of a first generation.
    double serial_fill = 0;
    double lag = 0;            // From the end of a connection to its replacement.
    double lent = 0;           // Of those whose pools replace what is lent.
    double use = 0;            // Of its connections by work on average, in the busiest pool.
    double keeper_cohort = 0;  // How long a keeper needs for all that a process has.
};

double mean_of(const Latency& latency) {
    constexpr double p99 = 2.3263478740408408;  // Of the normal distribution, in deviations.
    switch (latency.kind) {
        case Latency::Kind::constant:
            return seconds_of(latency.low);
        case Latency::Kind::uniform:
            return seconds_of(latency.low + latency.high) / 2;
        case Latency::Kind::lognormal: {
            const double deviation =
                std::log(seconds_of(latency.high) / seconds_of(latency.low)) / p99;
            return seconds_of(latency.low) * std::exp(deviation * deviation / 2);
        }
        case Latency::Kind::listed:
            break;
    }
    double sum = 0;
    for (const Time each : latency.listed) {
        sum += seconds_of(each);
    }
    return sum / static_cast<double>(latency.listed.size());
}

// How many connections the work of one pool keeps on average, if it never waits: by Little.
double at_work(const Workload& work) {
    const double hold =
        work.held ? mean_of(*work.held) : seconds_of(work.hold) + seconds_of(work.hold_jitter) / 2;
    if (!work.enabled || work.arrivals == Arrivals::trace) {
        return 0;
    }
    return work.arrivals == Arrivals::closed
               ? std::min<double>(work.in_use_max, work.burst / seconds_of(work.every) * hold)
               : work.rate * hold;
}

Facts facts_of(const Scenario& scenario) {
    const bool standard = scenario.profile == Profile::standard;
    Facts facts;
    facts.rate = scenario.limit_per_second;
    if (standard) {
        const bool limited = scenario.limiter.kind != LimiterKind::none;
        facts.rate = limited ? std::min(facts.rate, scenario.cluster.rate) : scenario.cluster.rate;
        facts.burst = limited ? std::min(scenario.limiter.burst, scenario.cluster.burst)
                              : scenario.cluster.burst;
    }
    facts.shortest_useful = 1e18;
    const double handshake = standard ? seconds_of(scenario.cluster.connect.low) : 0;
    for (const Service& service : scenario.services) {
        const double jitter = std::max(0.0, seconds_of(service.life_jitter));
        const double life = seconds_of(service.life);
        const double guard = scenario.profile == Profile::compat_s ? 0 : seconds_of(service.guard);
        const double residency = life + jitter / 2 - guard + (standard ? 0 : scan_lag_s);
        facts.connections += service.target;
        facts.largest = std::max<double>(facts.largest, service.target);
        facts.smallest = std::min<double>(facts.smallest, service.target);
        facts.residency += residency * service.target;
        facts.jitter += jitter * service.target;
        facts.longest_life = std::max(facts.longest_life, life + jitter);
        facts.shortest_useful = std::min(facts.shortest_useful, life - guard);
        const Workload& work = service.workload;
        const bool replaces = standard ? !service.count_lent : true;
        facts.lent += work.enabled && replaces ? std::min(work.in_use_max, work.burst) : 0;
        facts.lag = std::max(facts.lag, service.lead > Time{0} ? 0 : handshake);
        facts.keeper_cohort =
            std::max(facts.keeper_cohort,
                     service.target / std::max(1.0, static_cast<double>(service.opens_per_tick)) *
                         seconds_of(service.keeper_tick));
        facts.use = std::max(facts.use, standard ? at_work(work) / service.target : 0);
        facts.serial_fill = std::max(facts.serial_fill,
                                     service.target * handshake / std::max(1, service.in_flight));
    }
    facts.lag = standard ? facts.lag : scan_lag_s;
    facts.residency /= facts.connections;
    facts.jitter /= facts.connections;
    return facts;
}

class Plan {
public:
    explicit Plan(const Scenario& scenario) : scenario_(scenario), facts_(facts_of(scenario)) {}

    std::vector<PlanLine> lines() {
        add("connections", facts_.connections, "N = sum of targets", ceiling_trouble());
        add("rate_per_s", facts_.rate, "R, what clients and cluster allow", rate_trouble());
        const double fill = fill_and_waves();
        const double steady = replacement();
        if (facts_.use > 0) {
            add("pool_use_max",
                facts_.use,
                "arrivals x hold / target, busiest pool",
                facts_.use >= 1 ? "work needs more connections than the pool has" : "");
        }
        slots();
        faults(steady, fill);
        return std::move(lines_);
    }

private:
    void add(const char* name, double value, const char* formula, std::string trouble = {}) {
        lines_.push_back({name, value, formula, std::move(trouble)});
    }

    [[nodiscard]] std::string ceiling_trouble() const {
        const double ceiling = scenario_.cluster.ceiling;
        if (scenario_.profile != Profile::standard ||
            facts_.connections <= ceiling_share_max * ceiling) {
            return {};
        }
        return facts_.connections > ceiling
                   ? fmt::format("the cluster takes {} at most", ceiling)
                   : fmt::format("above {:.0f} % of the cluster's {} a rolling restart has no room",
                                 100 * ceiling_share_max,
                                 ceiling);
    }

    [[nodiscard]] std::string rate_trouble() const {
        const bool limited = scenario_.limiter.kind != LimiterKind::none;
        if (scenario_.profile != Profile::standard || !limited ||
            scenario_.limit_per_second <= scenario_.cluster.rate) {
            return {};
        }
        return fmt::format("the clients allow themselves {}, and the cluster refuses what is more",
                           scenario_.limit_per_second);
    }

    // Of the first promise about the fill that it breaks.
    [[nodiscard]] std::string fill_trouble(double fill) const {
        const auto late = [&](std::string_view name, Time limit) {
            return limit >= Time{0} && fill > seconds_of(limit)
                       ? fmt::format("{} allows {:g} s", name, seconds_of(limit))
                       : std::string();
        };
        if (scenario_.profile != Profile::standard) {
            return late("assertConvergeWithin", scenario_.converge_within);
        }
        for (const Assertion& assertion : scenario_.assertions) {
            std::string trouble =
                assertion.kind == AssertionKind::converge_within
                    ? late(assertion.name.empty() ? to_string(assertion.kind) : assertion.name,
                           assertion.limit)
                    : "";
            if (!trouble.empty()) {
                return trouble;
            }
        }
        return {};
    }

    double fill_and_waves() {
        const Facts& f = facts_;
        const double by_rate = std::max(0.0, f.connections - f.burst) / f.rate;
        const double fill = std::max(by_rate, f.serial_fill);
        add("fill_s",
            fill,
            "F = max((N - B) / R, target x handshake / in flight)",
            fill_trouble(fill));
        const double peak = std::min(f.rate, f.connections / std::max({fill, f.jitter, 1e-9}));
        add("first_wave_peak_per_s",
            peak,
            "N / max(F, jitter), at most R, if the first lives are not spread");
        add("first_wave_from_s", f.shortest_useful, "life - G after the fill");
        add("first_wave_plateau_s", std::abs(f.jitter - fill), "|jitter - F|");
        add("first_wave_dip", peak * f.lag, "peak x lag: half a scan, a handshake, 0 with a lead");
        if (f.jitter > 0) {
            add("waves_merge_at_generation",
                std::max(1.0, std::ceil((f.shortest_useful - fill) / f.jitter)),
                "the first g with g x jitter + F >= life - G");
        }
        older_models(fill);
        return fill;
    }

    // What only they can be said of beforehand.
    void older_models(double fill) {
        const Facts& f = facts_;
        if (f.lent > 0 && scenario_.profile != Profile::compat_s) {
            add("waste_opens_per_s",
                std::min(f.rate, f.lent / seconds_of(scenario_.idle_check)),
                "up to lent / idle check, at most R: what is lent is replaced");
        }
        if (scenario_.profile == Profile::compat_s) {
            add("cohort_recovery_s", f.keeper_cohort, "target / opens per tick x tick");
        }
        const double end = seconds_of(scenario_.duration);
        const double generations = std::floor((end - fill) / (f.shortest_useful + f.jitter));
        if (scenario_.profile == Profile::compat_r && generations >= 0 &&
            end < (generations + 1) * f.shortest_useful) {
            add("refills",
                f.connections * (1 + generations),
                "N x (1 + generations that are over)");
        }
    }

    double replacement() {
        const Facts& f = facts_;
        add("residency_s", f.residency, "life + jitter / 2 - G + scan / 2");
        const double steady = f.connections / f.residency;
        std::string trouble;
        if (steady >= f.rate) {
            trouble =
                fmt::format("the limit is {:g} per second: the fleet never stays full", f.rate);
        } else if (steady > replacement_share_max * f.rate) {
            trouble = "more than half of the limit goes into replacement";
        }
        add("replacements_per_s", steady, "N / residency", std::move(trouble));
        add("replacement_every_s", f.residency / f.largest, "residency / target, largest process");
        const double age = seconds_of(scenario_.cluster.age_max);
        add("longest_life_s",
            f.longest_life,
            "life + jitter",
            scenario_.profile == Profile::standard && f.longest_life + age_margin_s > age
                ? fmt::format("the server closes at {:g} s; leave {:g} s", age, age_margin_s)
                : "");
        return steady;
    }

    // Only where there are too few for all do blocks decide who has how many.
    void slots() {
        const double ceiling = scenario_.cluster.ceiling;
        if (scenario_.slots.kind != SlotsKind::blocks || facts_.connections <= ceiling) {
            return;
        }
        const double least = facts_.smallest * ceiling / facts_.connections;
        const double share = scenario_.slots.block / least;
        add("block_of_due",
            share,
            "block / (ceiling x target / N), smallest process",
            share > block_share_max
                ? fmt::format("a process misses a tenth of its share; use blocks of at most {:.0f}",
                              std::max(1.0, std::floor(block_share_max * least)))
                : "");
    }

    void faults(double steady, double fill) {
        const Facts& f = facts_;
        for (const Fault& fault : scenario_.faults) {
            if (fault.kind == FaultKind::mass_drop) {
                add("mass_drop_recovery_s",
                    std::max(0.0, fault.fraction * f.connections - f.burst) / f.rate,
                    "(fraction x N - B) / R");
            } else if (fault.kind == FaultKind::rolling_restart) {
                const double per_second = f.largest * fault.batch / seconds_of(fault.every);
                add("restart_opens_per_s",
                    per_second + steady,
                    "batch x target / every + N / residency",
                    per_second + steady >= f.rate ? "restarts come faster than the limit refills"
                                                  : "");
                add("restart_completion_s",
                    steady < f.rate ? f.largest / (f.rate - steady) : fill,
                    "target / (R - N / residency)");
            }
        }
    }

    const Scenario& scenario_;
    Facts facts_;
    std::vector<PlanLine> lines_;
};

}  // namespace

std::vector<PlanLine> plan_of(const Scenario& scenario) {
    return Plan(scenario).lines();
}

}  // namespace holdfast::sim

#include <holdfast/sim/figures.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model.hpp"
#include "seconds.hpp"

namespace holdfast::sim {
namespace {

double ms_of(Time time) {
    return 1e3 * seconds_of(time);
}

// The lowest share of its target that the fleet had at a sample, once it was full.
double lowest_share(const std::vector<FleetTotal>& totals) {
    double lowest = 1;
    bool full = false;
    for (const FleetTotal& total : totals) {
        full = full || total.owned >= total.target;
        lowest = full ? std::min(lowest, static_cast<double>(total.owned) / total.target) : lowest;
    }
    return full ? lowest : 0;
}

// The longest that a fault left the fleet without some of its target; to the end, if it stayed so.
double longest_recovery(const Scenario& scenario, const Result& result) {
    Time longest{};
    for (const Recovery& recovery : recoveries_of(result)) {
        longest =
            std::max(longest, std::min(recovery.took, scenario.duration - recovery.strike.at));
    }
    return seconds_of(longest);
}

// The first sample at which every service has had its target.
double fill_seconds(const Scenario& scenario, const Result& result) {
    std::vector<Time> reached(scenario.services.size(), scenario.duration);
    for (const Sample& sample : result.samples) {
        if (sample.owned() >= sample.target) {
            reached[sample.service] = std::min(reached[sample.service], sample.at);
        }
    }
    return seconds_of(*std::ranges::max_element(reached));
}

std::int64_t sum(const Result& result, std::int64_t Counters::* member) {
    std::int64_t total = 0;
    for (const Sample& sample : result.last) {
        total += sample.counters.*member;
    }
    return total;
}

// How long the process that waits longest for its permits waits, by what is usual.
double starvation(const Scenario& scenario, const Result& result) {
    std::vector<double> waited(scenario.services.size());
    std::vector<double> count(scenario.services.size());
    double all = 0;
    for (const Permit& permit : result.seen.permits) {
        const double wait = seconds_of(permit.usable - permit.asked);
        waited[permit.service] += wait;
        count[permit.service] += 1;
        all += wait;
    }
    double longest = 0;
    for (std::size_t i = 0; i < waited.size(); ++i) {
        longest = std::max(longest, count[i] > 0 ? waited[i] / count[i] : 0);
    }
    return all > 0 ? longest * static_cast<double>(result.seen.permits.size()) / all : 1;
}

// What the service that is worst off has at the end, and the one that is best off, by what would
// be fair: as much of its target as all have of theirs.
std::pair<double, double> fair_shares(const Result& result) {
    double owned = 0;
    double target = 0;
    std::vector<double> shares;
    for (const Sample& last : result.last) {
        owned += last.owned();
        target += last.target;
        shares.push_back(static_cast<double>(last.owned()) / std::max(1, last.target));
    }
    if (owned == 0) {
        return {1, 1};
    }
    const auto [least, most] = std::ranges::minmax(shares);
    return {least * target / owned, most * target / owned};
}

double percentile(const std::vector<double>& sorted, double part) {
    const double at = part * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Spread spread_of(std::span<const Outcome> outcomes, std::size_t figure) {
    const Figure& first = outcomes.front().figures[figure];
    Spread spread{.name = first.name, .worst = first.value, .worst_seed = outcomes.front().seed};
    std::vector<double> values;
    values.reserve(outcomes.size());
    for (const Outcome& outcome : outcomes) {
        const double value = outcome.figures[figure].value;
        values.push_back(value);
        if (first.more_is_worse ? value > spread.worst : value < spread.worst) {
            spread.worst = value;
            spread.worst_seed = outcome.seed;
        }
    }
    const auto count = static_cast<double>(values.size());
    // Divided once, so that the mean of equal values is that value.
    spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double squares = 0;
    for (const double value : values) {
        squares += (value - spread.mean) * (value - spread.mean);
    }
    spread.deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
    std::ranges::sort(values);
    spread.p5 = percentile(values, 0.05);
    spread.p50 = percentile(values, 0.5);
    spread.p95 = percentile(values, 0.95);
    spread.p99 = percentile(values, 0.99);
    return spread;
}

// What the limits cost that the fleet shares.
void add_shared(const Scenario& scenario, const Result& result, std::vector<Figure>& figures) {
    const Observations& seen = result.seen;
    std::vector<Time> waits;
    waits.reserve(seen.permits.size());
    for (const Permit& permit : seen.permits) {
        waits.push_back(permit.usable - permit.asked);
    }
    std::ranges::sort(waits);
    const std::uint32_t refused_max =
        seen.table_refused.empty() ? 0 : *std::ranges::max_element(seen.table_refused);
    const double permits = std::max<double>(1, static_cast<double>(waits.size()));
    figures.push_back({.name = "permit_wait_p50_ms", .value = ms_of(quantile(waits, 0.5))});
    figures.push_back({.name = "permit_wait_max_ms", .value = ms_of(quantile(waits, 1))});
    figures.push_back({.name = "starvation_index", .value = starvation(scenario, result)});
    figures.push_back({.name = "table_calls_per_permit",
                       .value = static_cast<double>(seen.table_calls) / permits});
    figures.push_back(
        {.name = "table_refused_per_second_max", .value = static_cast<double>(refused_max)});
    figures.push_back(
        {.name = "table_throttled", .value = static_cast<double>(seen.table_throttled)});
    figures.push_back(
        {.name = "table_conflicts", .value = static_cast<double>(seen.table_conflicts)});
    figures.push_back({.name = "degraded_s", .value = seconds_of(seen.degraded)});
    figures.push_back({.name = "shed", .value = static_cast<double>(seen.shed)});
}

}  // namespace

std::vector<Figure> figures_of(const Scenario& scenario, const Result& result) {
    std::vector<Figure> figures;
    const auto add = [&](const char* name, double value, bool more_is_worse = true) {
        figures.push_back({.name = name, .value = value, .more_is_worse = more_is_worse});
    };
    const auto count = [&](const char* name, std::int64_t value) {
        add(name, static_cast<double>(value));
    };
    const std::vector<FleetTotal> totals = totals_of(result);
    add("fill_s", fill_seconds(scenario, result));
    add("lowest_owned_share", lowest_share(totals), false);
    count("opens", sum(result, &Counters::opens));
    count("opens_per_second_max", result.opens_max());
    count("open_failures", sum(result, &Counters::open_failures));
    count("empty_events", sum(result, &Counters::empty));
    count("discards_full", sum(result, &Counters::discard_full));
    if (scenario.profile != Profile::standard) {
        return figures;
    }
    const Observations& seen = result.seen;
    count("server_rejects", seen.rejected());
    count("connections_max", seen.total_max);
    const auto [least, most] = fair_shares(result);
    add("fair_share_least", least, false);
    add("fair_share_most", most);
    count("refused", seen.refused);
    add("wait_p50_ms", ms_of(quantile(seen.waits, 0.5)));
    add("wait_p95_ms", ms_of(quantile(seen.waits, 0.95)));
    add("wait_p99_ms", ms_of(quantile(seen.waits, 0.99)));
    add("wait_max_ms", ms_of(quantile(seen.waits, 1)));
    add("recovery_max_s", longest_recovery(scenario, result));
    add("ready_p50_ms", ms_of(quantile(seen.idles, 0.5)), false);
    add("ready_p99_ms", ms_of(quantile(seen.idles, 0.99)), false);
    add_shared(scenario, result, figures);
    add("below_target_p50_ms", ms_of(quantile(seen.short_spells, 0.5)));
    add("below_target_p99_ms", ms_of(quantile(seen.short_spells, 0.99)));
    add("age_p5_s", seconds_of(quantile(seen.ages, 0.05)), false);
    add("age_p50_s", seconds_of(quantile(seen.ages, 0.5)), false);
    add("age_p95_s", seconds_of(quantile(seen.ages, 0.95)), false);
    return figures;
}

std::vector<Recovery> recoveries_of(const Result& result) {
    const std::vector<FleetTotal> totals = totals_of(result);
    std::vector<Recovery> all;
    all.reserve(result.seen.struck.size());
    for (const Strike& strike : result.seen.struck) {
        all.push_back({.strike = strike, .took = recovery_after(totals, strike.at, 1)});
    }
    return all;
}

std::vector<Spread> spread_of(std::span<const Outcome> outcomes) {
    std::vector<Spread> spreads;
    for (std::size_t i = 0; !outcomes.empty() && i < outcomes.front().figures.size(); ++i) {
        spreads.push_back(spread_of(outcomes, i));
    }
    return spreads;
}

}  // namespace holdfast::sim

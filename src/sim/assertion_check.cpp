// The assertions of the current pool: all are evaluated, and every violation is reported.
#include <algorithm>
#include <cmath>
#include <span>

#include "model.hpp"
#include <fmt/core.h>

#include <holdfast/base/units.hpp>

namespace holdfast::sim {
namespace {

class AssertionCheck {
public:
    AssertionCheck(const Scenario& scenario, const Result& result)
        : scenario_(scenario), result_(result), totals_(totals_of(result)) {}

    std::vector<Violation> check_assertions() {
        for (const Assertion& assertion : scenario_.assertions) {
            check_assertions(assertion);
        }
        return std::move(violations_);
    }

private:
    void violate(const Assertion& assertion, Violation violation) {
        violation.assertion =
            assertion.name.empty() ? std::string(to_string(assertion.kind)) : assertion.name;
        violations_.push_back(std::move(violation));
    }

    void check_assertions(const Assertion& a) {
        const Observations& seen = result_.seen;
        switch (a.kind) {
            case AssertionKind::min_owned_fraction:
                return check_owned(a);
            case AssertionKind::recover_within:
                return check_recovery(a);
            case AssertionKind::max_open_rate_sliding:
                return check_sliding(a, seen.opened, "connections", "were opened");
            case AssertionKind::max_empty_rate:
                return check_sliding(a, asked(), "requests", "were not served at once");
            case AssertionKind::max_server_rejects:
                return check_count(a, seen.rejects, "openings", "were refused by the cluster");
            case AssertionKind::max_total_connections:
                return check_count(a, seen.peaks, "connections", "were open at a time");
            case AssertionKind::max_wasted_opens:
                return check_count(a, seen.wasted, "connections", "were opened without need");
            case AssertionKind::zero_empty:
                return check_count(a, asked(), "requests", "were not served at once");
            case AssertionKind::no_leak:
                return check_leak(a);
            case AssertionKind::max_wait:
                return check_wait(a);
            case AssertionKind::max_discard_full_fraction:
                return check_surplus(a);
            case AssertionKind::max_closures_per_sec:
                return check_closures(a);
            case AssertionKind::steady_open_rate:
                return check_steady(a);
            case AssertionKind::converge_within:
                return check_convergence(a);
            case AssertionKind::stable_for:
                return check_stability(a);
        }
    }

    void check_owned(const Assertion& a) {
        const FleetTotal* worst = nullptr;
        for (const FleetTotal& total : totals_) {
            if (total.at >= a.after && total.at <= a.until &&
                total.owned < a.value * total.target &&
                (worst == nullptr || total.owned < worst->owned)) {
                worst = &total;
            }
        }
        if (worst != nullptr) {
            violate(a,
                    {.service = shortest_at(worst->at),
                     .at = worst->at,
                     .what = fmt::format("{} of {} connections, {:g} % are asked for",
                                         worst->owned,
                                         worst->target,
                                         100 * a.value),
                     .value = static_cast<double>(worst->owned) / worst->target,
                     .limit = a.value,
                     .unit = "share",
                     .fleet = true});
        }
    }

    void check_recovery(const Assertion& a) {
        for (const Strike& strike : result_.seen.struck) {
            const Time took = recovery_after(totals_, strike.at, a.value);
            if (took <= a.limit || a.event.value_or(strike.kind) != strike.kind) {
                continue;
            }
            const bool never = took == Time::max();
            violate(a,
                    {.service = shortest_at(strike.at + a.limit),
                     .at = strike.at,
                     .what = fmt::format("after {} the fleet was back {}, {} are allowed",
                                         to_string(strike.kind),
                                         never ? "never" : "after " + format_duration(took),
                                         format_duration(a.limit)),
                     .value = never ? std::nullopt : std::optional(in_ms(took)),
                     .limit = in_ms(a.limit),
                     .unit = "ms",
                     .fleet = true});
        }
    }

    void check_sliding(const Assertion& a,
                       std::vector<Incident> incidents,
                       const char* unit,
                       const char* what) {
        std::ranges::sort(incidents, {}, in_order);
        std::size_t first = 0;
        std::span<const Incident> most;
        for (std::size_t i = 0; i < incidents.size(); ++i) {
            while (incidents[i].at - incidents[first].at >= a.window) {
                ++first;
            }
            if (i + 1 - first > most.size()) {
                most = std::span(incidents).subspan(first, i + 1 - first);
            }
        }
        if (static_cast<double>(most.size()) > a.value) {
            violate(a,
                    {.service = busiest(most),
                     .at = most.front().at,
                     .what = fmt::format("{} {} {} within {}, {:g} are allowed",
                                         most.size(),
                                         unit,
                                         what,
                                         format_duration(a.window),
                                         a.value),
                     .value = static_cast<double>(most.size()),
                     .limit = a.value,
                     .unit = unit,
                     .fleet = true});
        }
    }

    // Reported with the time and the service of the first that was one too many.
    void check_count(const Assertion& a,
                     const std::vector<Incident>& incidents,
                     const char* unit,
                     const char* what) {
        const auto count = static_cast<double>(incidents.size());
        if (count > a.value) {
            const Incident& first = incidents[static_cast<std::size_t>(a.value)];
            violate(a,
                    {.service = name_of(first.service),
                     .at = first.at,
                     .what = fmt::format(
                         "{} {} {}, {:g} are allowed", incidents.size(), unit, what, a.value),
                     .value = count,
                     .limit = a.value,
                     .unit = unit,
                     .fleet = true});
        }
    }

    // At the end the cluster holds what the processes hold, and the table counts no more than that.
    void check_leak(const Assertion& a) {
        const auto told = [&](std::int64_t count, std::string service, const char* what) {
            if (count > 0) {
                violate(a,
                        {.service = std::move(service),
                         .at = scenario_.duration,
                         .what = fmt::format("{} {}, 0 are allowed", count, what),
                         .value = static_cast<double>(count),
                         .unit = "connections",
                         .fleet = true});
            }
        };
        const std::vector<Incident>& orphans = result_.seen.orphans;
        told(std::abs(result_.seen.leaked), "", "connections have no owner");
        told(std::ssize(orphans),
             orphans.empty() ? "" : busiest(orphans),
             "slots are counted for processes that are gone");
    }

    // Reported with the first request that waited longer.
    void check_wait(const Assertion& a) {
        const Time wait = quantile(result_.seen.waits, a.quantile);
        if (wait <= a.limit) {
            return;
        }
        const Delay* first = nullptr;
        for (const Delay& delay : result_.seen.empties) {
            if (delay.waited > a.limit && (first == nullptr || delay.asked < first->asked)) {
                first = &delay;
            }
        }
        violate(a,
                {.service = first == nullptr ? "" : name_of(first->service),
                 .at = first == nullptr ? scenario_.duration : first->asked,
                 .what = fmt::format("{:g} % of the borrowers waited up to {}, {} are allowed",
                                     100 * a.quantile,
                                     format_duration(wait),
                                     format_duration(a.limit)),
                 .value = in_ms(wait),
                 .limit = in_ms(a.limit),
                 .unit = "ms",
                 .fleet = true});
    }

    void check_surplus(const Assertion& a) {
        double opened = 0;
        double surplus = 0;
        for (const Sample& last : result_.last) {
            opened += static_cast<double>(last.counters.opens);
            surplus += static_cast<double>(last.counters.discard_full);
        }
        if (opened > 0 && surplus / opened > a.value) {
            const auto most = std::ranges::max_element(
                result_.last, {}, [](const Sample& s) { return s.counters.discard_full; });
            violate(a,
                    {.service = name_of(most->service),
                     .at = scenario_.duration,
                     .what = fmt::format(
                         "{:.3g} % of what was opened was one too many, {:g} % are allowed",
                         100 * surplus / opened,
                         100 * a.value),
                     .value = surplus / opened,
                     .limit = a.value,
                     .unit = "share",
                     .fleet = true});
        }
    }

    void check_closures(const Assertion& a) {
        std::vector<Incident> closed;  // In order of time.
        closed.reserve(result_.seen.closed.size());
        for (const Closing& one : result_.seen.closed) {
            closed.push_back({one.at, one.service});
        }
        const auto second = [](const Incident& one) {
            return std::chrono::floor<std::chrono::seconds>(one.at);
        };
        std::span<const Incident> most;
        for (std::size_t first = 0, i = 0; i < closed.size(); ++i) {
            first = second(closed[i]) == second(closed[first]) ? first : i;
            if (i + 1 - first > most.size()) {
                most = std::span(closed).subspan(first, i + 1 - first);
            }
        }
        if (static_cast<double>(most.size()) > a.value) {
            violate(
                a,
                {.service = busiest(most),
                 .at = second(most.front()),
                 .what = fmt::format("{} connections were closed in one second, {:g} are allowed",
                                     most.size(),
                                     a.value),
                 .value = static_cast<double>(most.size()),
                 .limit = a.value,
                 .unit = "connections",
                 .fleet = true});
        }
    }

    void check_steady(const Assertion& a) {
        const std::vector<Incident>& opened = result_.seen.opened;  // In order of time.
        const auto from = std::ranges::lower_bound(opened, a.after, {}, &Incident::at);
        const double seconds = std::chrono::duration<double>(scenario_.duration - a.after).count();
        const auto count = static_cast<double>(opened.end() - from);
        if (seconds > 0 && count / seconds > a.value) {
            violate(
                a,
                {.service = busiest({from, opened.end()}),
                 .at = a.after,
                 .what = fmt::format("{:.3g} connections were opened per second, {:g} are allowed",
                                     count / seconds,
                                     a.value),
                 .value = count / seconds,
                 .limit = a.value,
                 .unit = "per_second",
                 .fleet = true});
        }
    }

    void check_convergence(const Assertion& a) {
        for (std::size_t i = 0; i < scenario_.services.size(); ++i) {
            const Time took = result_.seen.filled[i];
            if (took <= a.limit) {
                continue;
            }
            const bool never = took == Time::max();
            violate(a,
                    {.service = scenario_.services[i].name,
                     .at = scenario_.services[i].start_delay + a.limit,
                     .what = never ? std::string("never had its connections")
                                   : fmt::format("had its connections after {}, {} are allowed",
                                                 format_duration(took),
                                                 format_duration(a.limit)),
                     .value = never ? std::nullopt : std::optional(in_ms(took)),
                     .limit = in_ms(a.limit),
                     .unit = "ms"});
        }
    }

    // The first dip of each process, from when it was full until `limit` later.
    void check_stability(const Assertion& a) {
        std::vector<bool> told(scenario_.services.size());
        for (const Sample& sample : result_.samples) {
            const Service& service = scenario_.services[sample.service];
            const Time filled = result_.seen.filled[sample.service];
            if (filled == Time::max() || told[sample.service]) {
                continue;
            }
            const Time since = sample.at - service.start_delay - filled;
            if (since >= Time{0} && since <= a.limit && sample.owned() < sample.target) {
                told[sample.service] = true;
                violate(
                    a,
                    {.service = service.name,
                     .at = sample.at,
                     .what = fmt::format("{} of {} connections {} after it was full, {} are asked "
                                         "for",
                                         sample.owned(),
                                         sample.target,
                                         format_duration(since),
                                         format_duration(a.limit)),
                     .value = static_cast<double>(sample.owned()),
                     .limit = static_cast<double>(sample.target),
                     .unit = "connections"});
            }
        }
    }

    // When each request came that was not served at once, in order of time.
    [[nodiscard]] std::vector<Incident> asked() const {
        std::vector<Incident> all;
        all.reserve(result_.seen.empties.size());
        for (const Delay& delay : result_.seen.empties) {
            all.push_back({delay.asked, delay.service});
        }
        std::ranges::sort(all, {}, in_order);
        return all;
    }

    [[nodiscard]] const std::string& name_of(std::uint32_t service) const {
        return scenario_.services[service].name;
    }

    // The service with most of them; the first in file order, if several have as many.
    [[nodiscard]] std::string busiest(std::span<const Incident> incidents) const {
        std::vector<std::size_t> counts(scenario_.services.size());
        for (const Incident& one : incidents) {
            ++counts[one.service];
        }
        return scenario_
            .services[static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin())]
            .name;
    }

    // Which service misses most at the first sample from `at` on.
    [[nodiscard]] std::string shortest_at(Time at) const {
        const Sample* worst = nullptr;
        const auto missing = [](const Sample& sample) { return sample.target - sample.owned(); };
        auto sample = std::ranges::lower_bound(result_.samples, at, {}, &Sample::at);
        for (const auto row = sample; sample != result_.samples.end() && sample->at == row->at;
             ++sample) {
            worst = worst == nullptr || missing(*sample) > missing(*worst) ? &*sample : worst;
        }
        return worst == nullptr ? "" : name_of(worst->service);
    }

    static std::pair<Time, std::uint32_t> in_order(const Incident& one) {
        return {one.at, one.service};
    }

    static double in_ms(Time time) {
        return std::chrono::duration<double, std::milli>(time).count();
    }

    const Scenario& scenario_;
    const Result& result_;
    std::vector<FleetTotal> totals_;
    std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> check_assertions(const Scenario& scenario, const Result& result) {
    return AssertionCheck(scenario, result).check_assertions();
}

std::vector<FleetTotal> totals_of(const Result& result) {
    std::vector<FleetTotal> totals;
    for (const Sample& sample : result.samples) {
        if (sample.service == 0) {
            totals.push_back({.at = sample.at});
        }
        totals.back().owned += sample.owned();
        totals.back().target += sample.target;
    }
    return totals;
}

Time recovery_after(const std::vector<FleetTotal>& totals, Time fault, double share) {
    const auto back = std::ranges::find_if(totals, [&](const FleetTotal& total) {
        return total.at > fault && total.owned >= share * total.target;
    });
    return back == totals.end() ? Time::max() : back->at - fault;
}

Time quantile(const std::vector<Time>& sorted, double part) {
    if (sorted.empty()) {
        return Time{0};
    }
    const double rank = std::ceil(part * static_cast<double>(sorted.size()));
    const auto index = static_cast<std::size_t>(std::max(1.0, rank)) - 1;
    return sorted[std::min(index, sorted.size() - 1)];
}

}  // namespace holdfast::sim

// The assertions of the pool that ships: all are evaluated, and every violation is told.
#include <algorithm>
#include <cmath>

#include "model.hpp"
#include <fmt/core.h>

#include <holdfast/base/units.hpp>

namespace holdfast::sim {
namespace {

class Judge {
public:
    Judge(const Scenario& scenario, const Result& result)
        : scenario_(scenario), result_(result), totals_(totals_of(result)) {}

    std::vector<Violation> judge() {
        for (const Assertion& assertion : scenario_.assertions) {
            judge(assertion);
        }
        return std::move(violations_);
    }

private:
    void violate(const Assertion& assertion,
                 Time at,
                 std::string what,
                 const std::string& service = {}) {
        violations_.push_back({.assertion = assertion.name.empty()
                                                ? std::string(to_string(assertion.kind))
                                                : assertion.name,
                               .service = service,
                               .at = at,
                               .what = std::move(what)});
    }

    void judge(const Assertion& a) {
        const Observations& seen = result_.seen;
        switch (a.kind) {
            case AssertionKind::min_owned_fraction:
                return judge_owned(a);
            case AssertionKind::recover_within:
                return judge_recovery(a);
            case AssertionKind::max_open_rate_sliding:
                return judge_sliding(a, seen.opened, "connections were opened");
            case AssertionKind::max_empty_rate:
                return judge_sliding(a, seen.empties, "requests were not served at once");
            case AssertionKind::max_server_rejects:
                return judge_count(a, seen.rejected(), "openings were refused by the cluster");
            case AssertionKind::max_total_connections:
                return judge_count(a, seen.total_max, "connections were open at a time");
            case AssertionKind::max_wasted_opens:
                return judge_count(a, seen.wasted, "connections were opened for nothing");
            case AssertionKind::no_leak:
                return judge_count(a, std::abs(seen.leaked), "connections belong to nobody");
            case AssertionKind::max_wait:
                return judge_wait(a);
            case AssertionKind::max_discard_full_fraction:
                return judge_surplus(a);
            case AssertionKind::max_closures_per_sec:
                return judge_closures(a);
            case AssertionKind::steady_open_rate:
                return judge_steady(a);
            case AssertionKind::converge_within:
                return judge_convergence(a);
            case AssertionKind::stable_for:
                return judge_stability(a);
            case AssertionKind::zero_empty:
                return judge_empty(a);
        }
    }

    void judge_owned(const Assertion& a) {
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
                    worst->at,
                    fmt::format("{} of {} connections, {:g} % are asked for",
                                worst->owned,
                                worst->target,
                                100 * a.value));
        }
    }

    void judge_recovery(const Assertion& a) {
        for (const Strike& strike : result_.seen.struck) {
            const Time took = recovery_after(totals_, strike.at, a.value);
            if (took > a.limit && a.event.value_or(strike.kind) == strike.kind) {
                violate(
                    a,
                    strike.at,
                    fmt::format("after {} the fleet was back {}, {} are allowed",
                                to_string(strike.kind),
                                took == Time::max() ? "never" : "after " + format_duration(took),
                                format_duration(a.limit)));
            }
        }
    }

    void judge_sliding(const Assertion& a, const std::vector<Time>& moments, const char* what) {
        std::vector<Time> sorted = moments;
        std::ranges::sort(sorted);
        std::size_t first = 0;
        std::size_t most = 0;
        Time when{};
        for (std::size_t i = 0; i < sorted.size(); ++i) {
            while (sorted[i] - sorted[first] >= a.window) {
                ++first;
            }
            if (i + 1 - first > most) {
                most = i + 1 - first;
                when = sorted[first];
            }
        }
        if (static_cast<double>(most) > a.value) {
            violate(a,
                    when,
                    fmt::format("{} {} within {}, {:g} are allowed",
                                most,
                                what,
                                format_duration(a.window),
                                a.value));
        }
    }

    void judge_count(const Assertion& a, std::int64_t count, const char* what) {
        if (static_cast<double>(count) > a.value) {
            violate(a,
                    scenario_.duration,
                    fmt::format("{} {}, {:g} are allowed", count, what, a.value));
        }
    }

    // Told with the moment of the first.
    void judge_empty(const Assertion& a) {
        const std::vector<Time>& empties = result_.seen.empties;
        if (!empties.empty()) {
            violate(
                a,
                *std::ranges::min_element(empties),
                fmt::format("{} requests were not served at once, 0 are allowed", empties.size()));
        }
    }

    void judge_wait(const Assertion& a) {
        const Time wait = quantile(result_.seen.waits, a.quantile);
        if (wait > a.limit) {
            violate(a,
                    scenario_.duration,
                    fmt::format("{:g} % of the borrowers waited up to {}, {} are allowed",
                                100 * a.quantile,
                                format_duration(wait),
                                format_duration(a.limit)));
        }
    }

    void judge_surplus(const Assertion& a) {
        double opened = 0;
        double surplus = 0;
        for (const Sample& last : result_.last) {
            opened += static_cast<double>(last.counters.opens);
            surplus += static_cast<double>(last.counters.discard_full);
        }
        if (opened > 0 && surplus / opened > a.value) {
            violate(a,
                    scenario_.duration,
                    fmt::format("{:.3g} % of what was opened was one too many, {:g} % are allowed",
                                100 * surplus / opened,
                                100 * a.value));
        }
    }

    void judge_closures(const Assertion& a) {
        const auto& closures = result_.seen.closures;
        const auto most = std::ranges::max_element(closures);
        if (most != closures.end() && *most > a.value) {
            violate(
                a,
                std::chrono::seconds{most - closures.begin()},
                fmt::format(
                    "{} connections were closed in one second, {:g} are allowed", *most, a.value));
        }
    }

    void judge_steady(const Assertion& a) {
        const auto opens =
            std::ranges::count_if(result_.seen.opened, [&](Time when) { return when >= a.after; });
        const double seconds = std::chrono::duration<double>(scenario_.duration - a.after).count();
        const double rate = seconds > 0 ? static_cast<double>(opens) / seconds : 0;
        if (rate > a.value) {
            violate(
                a,
                a.after,
                fmt::format(
                    "{:.3g} connections were opened per second, {:g} are allowed", rate, a.value));
        }
    }

    void judge_convergence(const Assertion& a) {
        for (std::size_t i = 0; i < scenario_.services.size(); ++i) {
            const Time took = result_.seen.filled[i];
            if (took > a.limit) {
                violate(a,
                        scenario_.services[i].start_delay + a.limit,
                        took == Time::max()
                            ? std::string("never had its connections")
                            : fmt::format("had its connections after {}, {} are allowed",
                                          format_duration(took),
                                          format_duration(a.limit)),
                        scenario_.services[i].name);
            }
        }
    }

    // The first dip of each process, from when it was full until `limit` later.
    void judge_stability(const Assertion& a) {
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
                violate(a,
                        sample.at,
                        fmt::format("{} of {} connections {} after it was full, {} are asked for",
                                    sample.owned(),
                                    sample.target,
                                    format_duration(since),
                                    format_duration(a.limit)),
                        service.name);
            }
        }
    }

    const Scenario& scenario_;
    const Result& result_;
    std::vector<FleetTotal> totals_;
    std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> judge(const Scenario& scenario, const Result& result) {
    return Judge(scenario, result).judge();
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

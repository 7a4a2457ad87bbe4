#include <algorithm>
#include <cmath>
#include <map>

#include "model.hpp"
#include <fmt/core.h>

#include <holdfast/base/units.hpp>

namespace holdfast::sim {
namespace {

using Maybe = std::optional<Violation>;

double in_ms(Time time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

Maybe check_open_rate(const Scenario& scenario, const Result& result) {
    if (scenario.opens_per_second_max < 0) {
        return {};
    }
    const auto most = static_cast<std::uint32_t>(scenario.opens_per_second_max);
    const auto found = std::ranges::find_if(result.opens, [&](auto n) { return n > most; });
    if (found == result.opens.end()) {
        return {};
    }
    return Violation{.assertion = "assertMaxConnectsPerSec",
                     .service = {},
                     .at = std::chrono::seconds{found - result.opens.begin()},
                     .what = fmt::format(
                         "{} connections were opened in one second, {} are allowed", *found, most),
                     .value = static_cast<double>(*found),
                     .limit = static_cast<double>(most),
                     .unit = "connections",
                     .fleet = true};
}

// The samples of one service, in order of time.
std::vector<const Sample*> samples_of(const Result& result, std::uint32_t service) {
    std::vector<const Sample*> found;
    for (const Sample& sample : result.samples) {
        if (sample.service == service) {
            found.push_back(&sample);
        }
    }
    return found;
}

// When it has its target for the first time, from `from` on; end() if it never has.
std::vector<const Sample*>::const_iterator reached_in(const std::vector<const Sample*>& samples,
                                                      Time from) {
    return std::ranges::find_if(samples, [&](const Sample* sample) {
        return sample->at >= from && sample->owned() >= sample->target;
    });
}

Maybe check_convergence(const Scenario& scenario, const Result& result, std::uint32_t number) {
    const Service& service = scenario.services[number];
    const auto late = [&](Time at, std::string what, std::optional<double> took_ms) {
        return Violation{.assertion = "assertConvergeWithin",
                         .service = service.name,
                         .at = at,
                         .what = std::move(what),
                         .value = took_ms,
                         .limit = in_ms(scenario.converge_within),
                         .unit = "ms"};
    };
    const std::vector<const Sample*> samples = samples_of(result, number);
    if (samples.empty()) {
        return late(
            scenario.duration, "no sample was taken; choose a shorter sampleEvery", std::nullopt);
    }
    const Time from = samples.front()->at + service.start_delay;
    const auto reached = reached_in(samples, from);
    if (reached == samples.end()) {
        return late(scenario.duration,
                    fmt::format("never reached {} connections", service.target),
                    std::nullopt);
    }
    const Time when = (*reached)->at;
    if (when > from + scenario.converge_within) {
        return late(when,
                    fmt::format("reached {} connections after {}, {} are allowed",
                                service.target,
                                format_duration(when - from),
                                format_duration(scenario.converge_within)),
                    in_ms(when - from));
    }
    return {};
}

// Of a service that has converged.
Maybe check_stability(const Scenario& scenario, const Result& result, std::uint32_t number) {
    const Service& service = scenario.services[number];
    const std::vector<const Sample*> samples = samples_of(result, number);
    const auto reached = reached_in(samples, samples.front()->at + service.start_delay);
    const Time until = (*reached)->at + scenario.stable_for;
    const auto dip = std::find_if(reached, samples.end(), [&](const Sample* sample) {
        return sample->at <= until && sample->owned() < sample->target;
    });
    if (dip == samples.end()) {
        return {};
    }
    return Violation{
        .assertion = "assertStableFor",
        .service = service.name,
        .at = (*dip)->at,
        .what = fmt::format("fell to {} of {} connections", (*dip)->owned(), service.target),
        .value = static_cast<double>((*dip)->owned()),
        .limit = static_cast<double>(service.target),
        .unit = "connections"};
}

// The "total" of the model is the largest count of one service.
Maybe check_empty(const Scenario& scenario, const Result& result) {
    if (!scenario.zero_empty) {
        return {};
    }
    const Sample* worst = nullptr;
    for (const Sample& sample : result.samples) {
        if (worst == nullptr || sample.counters.empty > worst->counters.empty) {
            worst = &sample;
        }
    }
    if (worst == nullptr || worst->counters.empty == 0) {
        return {};
    }
    return Violation{.assertion = "assertZeroEmptyEvents",
                     .service = scenario.services[worst->service].name,
                     .at = worst->at,
                     .what = fmt::format("no connection was free {} times", worst->counters.empty),
                     .value = static_cast<double>(worst->counters.empty),
                     .limit = 0,
                     .unit = "requests"};
}

Maybe check_closures(const Scenario& scenario, const Result& result) {
    if (scenario.closures_per_second_max < 0) {
        return {};
    }
    std::map<Time, std::int64_t> closed;
    for (const Sample& sample : result.samples) {
        closed[sample.at] += sample.counters.closed_age + sample.counters.closed_server;
    }
    const double every = std::chrono::duration<double>(scenario.sample_every).count();
    std::int64_t before = 0;
    for (const auto& [at, total] : closed) {
        const double rate = std::ceil(static_cast<double>(total - before) / every);
        if (rate > scenario.closures_per_second_max) {
            return Violation{.assertion = "assertMaxClosurePerSec",
                             .service = {},
                             .at = at,
                             .what = fmt::format("{:.0f} connections were closed in one second, {} "
                                                 "are allowed",
                                                 rate,
                                                 scenario.closures_per_second_max),
                             .value = rate,
                             .limit = static_cast<double>(scenario.closures_per_second_max),
                             .unit = "connections",
                             .fleet = true};
        }
        before = total;
    }
    return {};
}

}  // namespace

std::vector<Violation> check_compat(const Scenario& scenario, const Result& result) {
    const auto first_of_services = [&](auto check_assertions) -> Maybe {
        for (std::uint32_t i = 0; i < scenario.services.size(); ++i) {
            if (Maybe bad = check_assertions(scenario, result, i)) {
                return bad;
            }
        }
        return {};
    };
    Maybe bad = check_open_rate(scenario, result);
    if (!bad && scenario.converge_within >= Time{0}) {
        bad = first_of_services(check_convergence);
        if (!bad && scenario.stable_for > Time{0}) {
            bad = first_of_services(check_stability);
        }
    }
    if (!bad) {
        bad = scenario.profile == Profile::compat_s ? check_closures(scenario, result)
                                                    : check_empty(scenario, result);
    }
    return bad ? std::vector{*bad} : std::vector<Violation>{};
}

}  // namespace holdfast::sim

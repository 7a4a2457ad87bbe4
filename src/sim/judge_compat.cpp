#include <algorithm>
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

Maybe judge_open_rate(const Scenario& scenario, const Result& result) {
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

Maybe judge_convergence(const Scenario& scenario, const Result& result, std::uint32_t number) {
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
    const auto reached = std::ranges::find_if(samples, [&](const Sample* sample) {
        return sample->at >= from && sample->owned() >= sample->target;
    });
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
    const auto dip = std::find_if(reached, samples.end(), [&](const Sample* sample) {
        return sample->at <= when + scenario.stable_for && sample->owned() < sample->target;
    });
    if (scenario.stable_for > Time{0} && dip != samples.end()) {
        return Violation{
            .assertion = "assertStableFor",
            .service = service.name,
            .at = (*dip)->at,
            .what = fmt::format("fell to {} of {} connections", (*dip)->owned(), service.target),
            .value = static_cast<double>((*dip)->owned()),
            .limit = static_cast<double>(service.target),
            .unit = "connections"};
    }
    return {};
}

// The "total" of the model is the largest count of one service.
Maybe judge_empty(const Scenario& scenario, const Result& result) {
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
    return Violation{
        .assertion = "assertZeroEmptyEvents",
        .service = scenario.services[worst->service].name,
        .at = worst->at,
        .what = fmt::format("{} times nothing was there to be lent", worst->counters.empty),
        .value = static_cast<double>(worst->counters.empty),
        .limit = 0,
        .unit = "requests"};
}

Maybe judge_closures(const Scenario& scenario, const Result& result) {
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
        const double rate = static_cast<double>(total - before) / every;
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

std::vector<Violation> judge_compat(const Scenario& scenario, const Result& result) {
    if (const Maybe bad = judge_open_rate(scenario, result)) {
        return {*bad};
    }
    if (scenario.converge_within >= Time{0}) {
        for (std::uint32_t i = 0; i < scenario.services.size(); ++i) {
            if (const Maybe bad = judge_convergence(scenario, result, i)) {
                return {*bad};
            }
        }
    }
    const Maybe last = scenario.profile == Profile::compat_s ? judge_closures(scenario, result)
                                                             : judge_empty(scenario, result);
    return last ? std::vector{*last} : std::vector<Violation>{};
}

}  // namespace holdfast::sim

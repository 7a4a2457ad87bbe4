// What the tests read off a result.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/sim/result.hpp>
#include <holdfast/sim/scenario.hpp>
#include <holdfast/sim/simulation.hpp>

namespace holdfast::sim {

inline Scenario shipped(const std::string& name,
                        Profile profile,
                        std::vector<Override> overrides = {}) {
    return load_scenario(name,
                         {.profile = profile, .strict = false, .overrides = std::move(overrides)})
        .scenario;
}

template <class Figure>
auto per_service(const Result& result, Figure figure) {
    std::vector<decltype(figure(result.last.front()))> all;
    for (const Sample& sample : result.last) {
        all.push_back(figure(sample));
    }
    return all;
}

template <class Figure>
double total(const Result& result, Figure figure) {
    double sum = 0;
    for (const Sample& sample : result.last) {
        sum += static_cast<double>(figure(sample));
    }
    return sum;
}

// The sample at which each service first had its target.
inline std::vector<Time> converged(const Scenario& scenario, const Result& result) {
    std::vector<Time> reached(scenario.services.size(), Time::max());
    for (const Sample& sample : result.samples) {
        if (sample.owned() >= sample.target) {
            reached[sample.service] = std::min(reached[sample.service], sample.at);
        }
    }
    return reached;
}

inline Time last_converged(const Scenario& scenario, const Result& result) {
    return std::ranges::max(converged(scenario, result));
}

// The fewest connections of the whole fleet at one sample after `from`.
inline int lowest_total(const Scenario& scenario, const Result& result, Time from) {
    int lowest = std::numeric_limits<int>::max();
    int sum = 0;
    for (const Sample& sample : result.samples) {
        sum = sample.service == 0 ? sample.owned() : sum + sample.owned();
        if (sample.service + 1 == scenario.services.size() && sample.at >= from) {
            lowest = std::min(lowest, sum);
        }
    }
    return lowest;
}

inline std::uint32_t opens_max_after(const Result& result, Time from) {
    std::uint32_t most = 0;
    for (std::size_t i = 0; i < result.opens.size(); ++i) {
        most = std::chrono::seconds{i} >= from ? std::max(most, result.opens[i]) : most;
    }
    return most;
}

}  // namespace holdfast::sim

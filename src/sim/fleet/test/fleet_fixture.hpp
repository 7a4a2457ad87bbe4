// What the tests read off a result.
#pragma once

#include <algorithm>
#include <cmath>
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

// With the current pool.
inline Scenario fleet(const std::string& name, std::vector<Override> overrides = {}) {
    return shipped(name, Profile::standard, std::move(overrides));
}

inline constexpr auto opens = [](const Sample& s) { return s.counters.opens; };
inline constexpr auto discards = [](const Sample& s) { return s.counters.discards(); };
inline constexpr auto owned = [](const Sample& s) { return s.owned(); };

template <class Figure>
auto per_service(const Result& result, Figure figure) {
    std::vector<decltype(figure(result.last.front()))> all;
    all.reserve(result.last.size());
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

// How likely it is that more than `most` of `connections` are replaced in one second, if each is
// with the same chance and none looks at the others: the tail of a binomial law.
inline double chance_above(int most, int connections, double chance) {
    double below = 0;
    for (int k = 0; k <= most; ++k) {
        const double ways =
            std::lgamma(connections + 1) - std::lgamma(k + 1) - std::lgamma(connections - k + 1);
        below += std::exp(ways + k * std::log(chance) + (connections - k) * std::log1p(-chance));
    }
    return std::max(0.0, 1 - below);
}

// What the busiest of so many seconds exceeds with one seed in a million, or fewer.
inline int never_above(int seconds, int connections, double chance) {
    int most = 0;
    while (seconds * chance_above(most, connections, chance) > 1e-6) {
        ++most;
    }
    return most;
}

}  // namespace holdfast::sim

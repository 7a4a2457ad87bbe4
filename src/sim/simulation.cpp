#include <holdfast/sim/simulation.hpp>

#include <algorithm>

#include "model.hpp"

namespace holdfast::sim {

std::uint64_t seed_of(std::uint64_t seed,
                      std::string_view owner,
                      std::string_view purpose) noexcept {
    constexpr std::uint64_t prime = 0x100000001b3;  // FNV-1a; the generator stirs it further.
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto take = [&](std::uint8_t byte) { hash = (hash ^ byte) * prime; };
    for (unsigned shift = 0; shift < 64; shift += 8) {
        take(static_cast<std::uint8_t>(seed >> shift));
    }
    for (const std::string_view text : {owner, purpose}) {
        std::ranges::for_each(text, [&](char c) { take(static_cast<std::uint8_t>(c)); });
        take(0);
    }
    return hash;
}

void count_open(std::vector<std::uint32_t>& opens, Time now) {
    const auto second = static_cast<std::size_t>(now / std::chrono::seconds{1});
    if (opens.size() <= second) {
        opens.resize(second + 1);
    }
    ++opens[second];
}

std::uint32_t Result::opens_max() const noexcept {
    return opens.empty() ? 0 : *std::ranges::max_element(opens);
}

int Scenario::target() const noexcept {
    int sum = 0;
    for (const Service& service : services) {
        sum += service.target;
    }
    return sum;
}

Result simulate(const Scenario& scenario, std::uint64_t seed, const Watch& watch) {
    if (scenario.profile == Profile::standard) {
        Result result = simulate_fleet(scenario, seed, watch);
        result.violations = check_assertions(scenario, result);
        return result;
    }
    Result result = scenario.profile == Profile::compat_s
                        ? simulate_keeper(scenario, seed, watch)
                        : simulate_reservoir(scenario, seed, watch);
    result.violations = check_compat(scenario, result);
    return result;
}

}  // namespace holdfast::sim

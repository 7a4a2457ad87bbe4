#include <holdfast/pool/config.hpp>

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::pool {
namespace {

using std::chrono::nanoseconds;

void require(bool fine, std::string_view what) {
    if (!fine) {
        throw InvalidArgument(fmt::format("the pool's {}", what));
    }
}

}  // namespace

std::string_view to_string(FailureClass failure) noexcept {
    switch (failure) {
        case FailureClass::transport:
            return "transport";
        case FailureClass::auth:
            return "auth";
        case FailureClass::full:
            return "full";
        case FailureClass::rate_limited:
            return "rate_limited";
        case FailureClass::other:
            return "other";
    }
    return "other";
}

Config reservoir(int target) {
    constexpr int part = 50;  // Of the target, and at least one, may be there twice for a moment.
    Config config;
    config.target = target;
    config.min_ready = target;
    config.warm = target;
    config.overshoot = std::max(target / part, 1);
    config.lead = std::chrono::seconds{30};
    config.look_every = std::chrono::seconds{1};
    config.fail_fast = FailFast::at_first;
    return config;
}

void check(const Config& config) {
    require(config.target >= 1 && config.target <= target_max,
            fmt::format("target is {}; give 1 to {}", config.target, target_max));
    require(config.min_ready >= 0, "min_ready is negative; give 0 or more");
    require(config.overshoot >= 0 && config.overshoot <= target_max,
            fmt::format("overshoot is {}; give 0 to {}", config.overshoot, target_max));
    require(config.slots >= 0, "slots are negative; give 0 or more");
    require(config.guard >= nanoseconds{0} && config.guard < config.life,
            "guard must be shorter than life, and not negative");
    require(config.life_jitter >= nanoseconds{0}, "life_jitter is negative; give 0 or more");
    require(config.lead >= nanoseconds{0} && config.lead < config.life - config.guard,
            "lead must be shorter than life without guard, and not negative");
    require(config.look_every >= nanoseconds{0}, "look_every is negative; give 0 or more");
    require(config.warm >= 0 && config.warm <= config.target, "warm must be from 0 to target");
    require(config.warm_up_max >= nanoseconds{0}, "warm_up_max is negative; give 0 or more");
    require(config.idle_max > nanoseconds{0}, "idle_max must be positive");
    require(config.check_after >= nanoseconds{0}, "check_after is negative; give 0 or more");
    require(config.limits.opening_max >= 1, "opening_max must be 1 or more");
    require(config.limits.looks_max >= 1, "looks_max must be 1 or more");
    require(config.limits.closers_max >= 1, "closers_max must be 1 or more");
}

}  // namespace holdfast::pool

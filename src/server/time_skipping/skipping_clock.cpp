#include "time_skipping/skipping_clock.hpp"

namespace holdfast::server::time_skipping {

void SkippingClock::skip_to(Wall when) {
    const std::chrono::microseconds wanted = when - real_.wall_now();
    std::int64_t skipped = skipped_us_.load();
    while (skipped < wanted.count() &&
           !skipped_us_.compare_exchange_weak(skipped, wanted.count())) {
    }
}

Wall SkippingClock::wall_now() const {
    return real_.wall_now() + std::chrono::microseconds{skipped_us_.load()};
}

}  // namespace holdfast::server::time_skipping

#include "fleet/latency.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

namespace holdfast::sim {
namespace {

// Box and Muller; the second of the pair is not kept, so that every draw costs two numbers.
double draw_normal(Random& random) {
    const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
    return radius * std::cos(2 * std::numbers::pi * random.unit());
}

}  // namespace

Time scaled(Time time, double factor) {
    constexpr double longest = std::chrono::duration<double, std::nano>(time_max).count();
    return Time{
        static_cast<Time::rep>(std::min(static_cast<double>(time.count()) * factor, longest))};
}

Time draw(const Latency& latency, Random& random) {
    constexpr double p99 = 2.3263478740408408;  // Of the normal distribution, in deviations.
    switch (latency.kind) {
        case Latency::Kind::constant:
            return latency.low;
        case Latency::Kind::uniform:
            return latency.low + draw_part(latency.high - latency.low, random);
        case Latency::Kind::lognormal: {
            const double ratio = static_cast<double>(latency.high.count()) /
                                 static_cast<double>(latency.low.count());
            return scaled(latency.low, std::exp(std::log(ratio) / p99 * draw_normal(random)));
        }
        case Latency::Kind::listed:
            return latency.listed[random.below(latency.listed.size())];
    }
    return latency.low;
}

Time draw_gap(double rate, Random& random) {
    return scaled(std::chrono::seconds{1}, -std::log(1 - random.unit()) / rate);
}

Time draw_part(Time whole, Random& random) {
    return scaled(whole, random.unit());
}

}  // namespace holdfast::sim

// The two sides of a limit on new connections: what clients grant themselves, and what the cluster
// lets in. They know nothing of each other.
#pragma once

#include <algorithm>
#include <cmath>

#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

// A reservation clock: permits `1 / rate` apart, in the order in which they are asked for, with
// `burst` at once after a pause.
class ReservationClock {
public:
    ReservationClock(double rate, double burst) { set(rate, burst); }

    void set(double rate, double burst) {
        step_ = Time{static_cast<Time::rep>(std::llround(1e9 / rate))};
        early_ = std::max(Time{0}, Time{static_cast<Time::rep>((burst - 1) * 1e9 / rate)});
    }

    // When the next permit could be used,
    [[nodiscard]] Time due(Time now) const { return std::max(now, std::max(next_, now) - early_); }
    // and that one taken.
    [[nodiscard]] Time reserve(Time now) {
        const Time usable = due(now);
        next_ = std::max(next_, now) + step_;
        return usable;
    }

private:
    Time step_{};
    Time early_{};
    Time next_ = Time::min() / 2;  // When the next permit is due by the rate alone.
};

// The cluster's limits on new connections.
class Door {
public:
    enum class Answer { in, too_fast, full };

    explicit Door(const Cluster& cluster) : cluster_(cluster), tokens_(cluster.burst) {}

    [[nodiscard]] Answer knock(Time now) {
        const double seconds = std::chrono::duration<double>(now - refilled_).count();
        tokens_ = std::min<double>(cluster_.burst, tokens_ + seconds * cluster_.rate);
        refilled_ = now;
        if (inside_ >= cluster_.ceiling) {
            return Answer::full;
        }
        // A permit that comes exactly in time must not fail for the last bit of a fraction.
        constexpr double one = 1 - 1e-6;
        if (tokens_ < one) {
            return Answer::too_fast;
        }
        tokens_ -= 1;
        most_ = std::max(most_, ++inside_);
        return Answer::in;
    }
    void leave() noexcept { --inside_; }

    [[nodiscard]] int inside() const noexcept { return inside_; }
    [[nodiscard]] int most() const noexcept { return most_; }

private:
    const Cluster& cluster_;
    double tokens_;
    Time refilled_{};
    int inside_ = 0;
    int most_ = 0;
};

}  // namespace holdfast::sim

// The limiter of the older models: so many permits in each calendar second, nothing carried over.
#pragma once

#include <optional>

#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

class SecondLimiter {
public:
    explicit SecondLimiter(int limit) : limit_(limit) {}

    // Nothing if granted, else how long to wait. Only the present second is remembered: time does
    // not go back.
    [[nodiscard]] std::optional<Time> refusal(Time now, int permits = 1) {
        const auto second = std::chrono::floor<std::chrono::seconds>(now);
        if (second != second_) {
            second_ = second;
            used_ = 0;
        }
        if (used_ + permits <= limit_) {
            used_ += permits;
            return std::nullopt;
        }
        return second + std::chrono::seconds{1} - now + hint_margin;
    }

private:
    static constexpr Time hint_margin = std::chrono::milliseconds{5};

    int limit_;
    std::chrono::seconds second_{-1};
    int used_ = 0;
};

}  // namespace holdfast::sim

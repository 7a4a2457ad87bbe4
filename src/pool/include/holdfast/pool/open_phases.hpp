// The phases of opening a connection, and how long each took.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include <holdfast/base/clock.hpp>

namespace holdfast::pool {

enum class OpenPhase {
    slot,     // The right to have one more connection.
    permit,   // The right to open one now.
    token,    // The credentials.
    resolve,  // The server's name becomes addresses.
    tcp,
    tls,
    auth,
    init,
};
inline constexpr std::size_t open_phase_count = 8;

[[nodiscard]] std::string_view to_string(OpenPhase phase) noexcept;

// Of one opening. Not safe to share between threads. The times of a phase that is entered again on
// a retry add up.
class OpenPhases {
public:
    explicit OpenPhases(const Clock& clock = system_clock()) : clock_(clock) {}

    // Ends the one before.
    void enter(OpenPhase phase) {
        end();
        at_ = last_ = phase;
        since_ = clock_.steady_now();
    }

    // The opening is over, or has failed at the phase entered last.
    void end() {
        if (at_) {
            auto& took = took_[static_cast<std::size_t>(*at_)];
            took = took.value_or(std::chrono::nanoseconds{0}) + (clock_.steady_now() - since_);
            at_.reset();
        }
    }

    // Empty: none was entered.
    [[nodiscard]] std::optional<OpenPhase> last() const noexcept { return last_; }
    // By phase; empty for one that was not entered, or has not ended.
    [[nodiscard]] const std::array<std::optional<std::chrono::nanoseconds>, open_phase_count>&
    took() const noexcept {
        return took_;
    }

private:
    const Clock& clock_;
    std::optional<OpenPhase> at_;
    std::optional<OpenPhase> last_;
    Steady since_{};
    std::array<std::optional<std::chrono::nanoseconds>, open_phase_count> took_{};
};

}  // namespace holdfast::pool

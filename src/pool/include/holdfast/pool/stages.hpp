// The way to a connection, and how long each part of it took.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include <holdfast/base/clock.hpp>

namespace holdfast::pool {

enum class Stage {
    slot,     // The right to have one more connection.
    permit,   // The right to open one now.
    token,    // What to sign in with.
    resolve,  // The server's name becomes addresses.
    tcp,
    tls,
    auth,
    init,
};
inline constexpr std::size_t stage_count = 8;

[[nodiscard]] std::string_view to_string(Stage stage) noexcept;

// Of one opening. Not safe to share between threads. What is entered again, because the opening was
// tried once more, counts together.
class Stages {
public:
    explicit Stages(const Clock& clock = system_clock()) : clock_(clock) {}

    // Ends the one before.
    void enter(Stage stage) {
        end();
        at_ = last_ = stage;
        since_ = clock_.steady_now();
    }

    // The opening is over, or has failed at the stage entered last.
    void end() {
        if (at_) {
            auto& took = took_[static_cast<std::size_t>(*at_)];
            took = took.value_or(std::chrono::nanoseconds{0}) + (clock_.steady_now() - since_);
            at_.reset();
        }
    }

    // Empty: none was entered.
    [[nodiscard]] std::optional<Stage> last() const noexcept { return last_; }
    // By stage; empty for one that was not entered, or has not ended.
    [[nodiscard]] const std::array<std::optional<std::chrono::nanoseconds>, stage_count>& took()
        const noexcept {
        return took_;
    }

private:
    const Clock& clock_;
    std::optional<Stage> at_;
    std::optional<Stage> last_;
    Steady since_{};
    std::array<std::optional<std::chrono::nanoseconds>, stage_count> took_{};
};

}  // namespace holdfast::pool

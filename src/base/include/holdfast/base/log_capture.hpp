// A logger that keeps its lines, for tests.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast {

// Safe to share between threads.
class CapturingLogger final : public Logger {
public:
    // Later lines are dropped, so that a runaway loop does not fill the memory.
    static constexpr std::size_t lines_max = 100'000;

    explicit CapturingLogger(Level level = Level::debug) noexcept : level_(level) {}

    [[nodiscard]] bool enabled(Level level) const noexcept override {
        return level != Level::off && level >= level_;
    }
    void write(Level level, std::string_view event, std::initializer_list<Field> fields) override;

    // As text, but without the time: `level=warn event="slow transaction" operation=pay`.
    [[nodiscard]] std::vector<std::string> lines() const;

    // How many lines contain `part`.
    [[nodiscard]] std::size_t count(std::string_view part) const;

    // Blocks until a line contains `part`; false if the deadline passes first.
    [[nodiscard]] bool wait_for(std::string_view part, Deadline deadline) const;

private:
    [[nodiscard]] std::size_t count_locked(std::string_view part) const;

    Level level_;
    mutable std::mutex mutex_;
    mutable std::condition_variable written_;
    std::vector<std::string> lines_;
};

}  // namespace holdfast

#include "cli/times.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast::app {

using std::chrono::milliseconds;

std::string elapsed(milliseconds duration) {
    const std::int64_t ms = std::max<std::int64_t>(duration.count(), 0);
    constexpr std::int64_t second = 1000;
    constexpr std::int64_t minute = 60 * second;
    constexpr std::int64_t hour = 60 * minute;
    constexpr std::int64_t day = 24 * hour;
    if (ms < second) {
        return fmt::format("{} ms", ms);
    }
    if (ms < minute) {
        return fmt::format("{:.2f} s", static_cast<double>(ms) / second);
    }
    if (ms < hour) {
        return fmt::format("{} min {} s", ms / minute, ms % minute / second);
    }
    if (ms < day) {
        return fmt::format("{} h {} min", ms / hour, ms % hour / minute);
    }
    return fmt::format("{} d {} h", ms / day, ms % day / hour);
}

std::string moment_text(std::chrono::sys_time<milliseconds> moment) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(moment);
    return fmt::format("{:%F %T}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

std::chrono::milliseconds duration_of(std::string_view option, const std::string& text) {
    try {
        return std::chrono::duration_cast<std::chrono::milliseconds>(parse_duration(text));
    } catch (const Error& error) {
        throw InvalidArgument(fmt::format("{}: {}", option, error.what()));
    }
}

}  // namespace holdfast::app

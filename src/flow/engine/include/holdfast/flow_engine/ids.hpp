// Ids, moments and versions.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::flow {

// One run of an instance: 1 for the first, one more each time it continues as new.
using ExecutionId = std::uint64_t;
// A position in one execution's history, from 1 on, strictly increasing; 0 means none.
using EventId = std::uint64_t;

// Moments that are kept and compared: milliseconds since 1970, by the database's clock.
using Moment = std::chrono::sys_time<std::chrono::milliseconds>;
// No timer lies later than this, the end of the year 9999: a wait "for ever" ends then.
inline constexpr Moment last_moment{std::chrono::milliseconds{253'402'300'799'000}};
[[nodiscard]] constexpr Moment later(Moment now, std::chrono::milliseconds wait) noexcept {
    return wait < last_moment - now ? now + wait : last_moment;
}

// A version of the engine, or of a workflow's code.
struct Version {
    int major = 0;
    int minor = 0;
    int patch = 0;

    // "1.2.3". Throws InvalidArgument for anything else.
    [[nodiscard]] static Version parse(std::string_view text);
    [[nodiscard]] std::string text() const;
    friend auto operator<=>(const Version&, const Version&) = default;
};

// What this build writes into histories, and the newest it can replay.
inline constexpr Version engine_version{.major = 0, .minor = 1, .patch = 0};
// The layout of stored events. A history of another format is refused, never guessed at.
inline constexpr int history_format = 1;

}  // namespace holdfast::flow

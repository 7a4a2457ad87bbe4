#include <holdfast/base/snowflake.hpp>

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>

namespace holdfast {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t ms_end = std::int64_t{1} << 41U;
constexpr std::int64_t sequence_max = 4095;
constexpr std::chrono::hours duration_max{1};
constexpr unsigned node_shift = 12;
constexpr unsigned ms_shift = 22;

// Milliseconds since the epoch.
std::int64_t id_time(Wall wall) {
    const auto ms = std::chrono::floor<milliseconds>(wall - Snowflake::epoch).count();
    if (ms < 0 || ms >= ms_end) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    "the machine's clock is outside 2020 to 2089, for which ids exist; set it");
    }
    return ms;
}

}  // namespace

Snowflake::Snowflake(const Clock& clock, SnowflakeOptions options)
    : clock_(clock), options_(options) {
    if (options.node < 0 || options.node > node_max) {
        throw InvalidArgument(
            fmt::format("node id {} is out of range; use 0 to {}", options.node, node_max));
    }
    const auto sane = [](milliseconds d) { return d >= milliseconds{0} && d <= duration_max; };
    if (!sane(options.skew_max) || !sane(options.wait_max)) {
        throw InvalidArgument("the id generator's skew and wait must be between 0 and one hour");
    }
}

std::int64_t Snowflake::next(const std::stop_token& stop) {
    const Deadline deadline = Deadline::at(clock_.steady_now() + options_.wait_max);
    while (true) {
        milliseconds behind;  // By how much the clock must move on before there is an id.
        {
            const std::lock_guard lock(mutex_);
            const std::int64_t now_ms = id_time(clock_.wall_now());
            const std::int64_t latest_ms = std::min(now_ms + options_.skew_max.count(), ms_end - 1);
            const bool sequence_full = sequence_ == sequence_max;
            const std::int64_t same_or_next_ms = sequence_full ? last_ms_ + 1 : last_ms_;
            const std::int64_t id_ms = std::max(now_ms, same_or_next_ms);
            if (id_ms <= latest_ms) {
                sequence_ = id_ms == last_ms_ ? sequence_ + 1 : 0;
                last_ms_ = id_ms;
                return (id_ms << ms_shift) | (std::int64_t{options_.node} << node_shift) |
                       sequence_;
            }
            behind = milliseconds{id_ms - latest_ms};
        }
        // Outside the mutex, so that each caller's own stop token and bound count.
        const Steady now = clock_.steady_now();
        if (deadline.passed(now)) {
            throw Error(Code::unavailable,
                        Outcome::not_applied,
                        fmt::format("the clock is {} ms too far behind the last id to make another "
                                    "one; check the machine's time synchronisation",
                                    behind.count()));
        }
        const Deadline caught_up = Deadline::at(now + behind);
        if (!clock_.sleep_until(caught_up.earlier(deadline).when(), stop)) {
            throw Error(
                Code::cancelled, Outcome::not_applied, "stopped while waiting for the clock");
        }
    }
}

int node_from_host(std::string_view name) {
    constexpr std::uint64_t nodes = Snowflake::node_max + 1;
    if (name.empty()) {
        return static_cast<int>(secure_seed() % nodes);
    }
    std::uint64_t hash = 0;
    for (const char c : name) {
        hash = hash * 31 + static_cast<unsigned char>(c);
    }
    // Its magnitude as a signed number: existing hosts keep the node they always had.
    const bool negative = (hash >> 63U) != 0;
    return static_cast<int>((negative ? 0 - hash : hash) % nodes);
}

}  // namespace holdfast

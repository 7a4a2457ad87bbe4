// Shared by the parts of the SQL provider: how values become columns and back.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "name_check.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/flow/provider.hpp>
#include <holdfast/sql/statement.hpp>
#include <holdfast/sql/value.hpp>

namespace holdfast::flow {

template <std::integral T>
[[nodiscard]] constexpr std::int64_t int64(T value) noexcept {
    return static_cast<std::int64_t>(value);
}
[[nodiscard]] constexpr std::int64_t micros(milliseconds time) noexcept {
    return std::chrono::microseconds{time}.count();
}
// As a column: 0 is at once.
[[nodiscard]] constexpr std::int64_t visible_us(std::int64_t visible_at_ms) noexcept {
    return visible_at_ms <= 0 ? 0 : visible_at_ms * 1000;
}
[[nodiscard]] constexpr std::int64_t micros(Moment moment) noexcept {
    return moment.time_since_epoch().count() * 1000;
}
[[nodiscard]] constexpr Moment moment(std::int64_t time_us) noexcept {
    return std::chrono::floor<std::chrono::milliseconds>(
        std::chrono::sys_time<std::chrono::microseconds>{std::chrono::microseconds{time_us}});
}
// One number that orders versions; each part has room up to a million.
[[nodiscard]] constexpr std::int64_t engine_number(const Version& version) noexcept {
    constexpr std::int64_t room = 1'000'000;
    return (version.major * room + version.minor) * room + version.patch;
}
// Guards the row of an instance by the token that the caller believes current.
[[nodiscard]] sql::Guard instance_guard(std::string_view instance, const Uuid& token);

// Throws Error (internal) for a word that no version of this program has written.
[[nodiscard]] Status stored_status(std::string_view name);
[[nodiscard]] BlockKind stored_block_kind(std::string_view name);

// From a row of position, execution, attempts, body.
[[nodiscard]] InboxMessage inbox_message(const sql::Row& row);
// From a row of read_info or list_instances.
[[nodiscard]] InstanceInfo instance_info(const sql::Row& row);

// Empty for a text that this build cannot read (a damaged row, or one of a newer build): the
// activity runs all the same.
[[nodiscard]] std::optional<ActivityRetry> stored_retry(const std::optional<std::string>& text);
[[nodiscard]] std::optional<FailureInfo> stored_failure(const std::optional<std::string>& text);

// Rotates the items by a random number: concurrent claims that each take a contiguous part collide
// less often than claims that each take the same number of scattered rows.
template <class T>
void begin_anywhere(std::vector<T>& items) {
    if (!items.empty()) {
        const auto first = static_cast<std::ptrdiff_t>(thread_random().below(items.size()));
        std::rotate(items.begin(), items.begin() + first, items.end());
    }
}

// How many rows one claim takes. Where transactions do not wait for each other's rows, a claim that
// loses one row loses all: the next try takes half as many, and a full success doubles the number.
class ClaimSize {
public:
    static constexpr int first = 4;
    static constexpr int most = 128;

    // Requires: `size` outlives this object, which is for one claim.
    ClaimSize(std::atomic<int>& size, bool bounded) : size_(size), bounded_(bounded) {}

    // For the first try, and for each one after a conflict.
    [[nodiscard]] int next_try() {
        if (!bounded_) {
            return std::numeric_limits<int>::max();
        }
        if (++tries_ > 1) {
            size_ = std::max(size_ / 2, 1);
        }
        return size_;
    }
    void won(std::int64_t rows) {
        if (bounded_ && rows >= size_) {
            size_ = std::min(size_ * 2, most);
        }
    }

private:
    std::atomic<int>& size_;
    bool bounded_;
    int tries_ = 0;
};

// How many messages one claim returns at most; the rest comes with the next claim.
inline constexpr int mail_per_claim_max = 1024;
// How often an operation is repeated after its connection broke, if it was not applied.
inline constexpr int broken_connections_max = 4;
// True if the connection broke, whatever the outcome; any other error goes to the caller.
[[nodiscard]] bool connection_broke(const Error& error);

// Positions in a row, which one statement can name.
struct Run {
    std::int64_t first = 0;
    std::int64_t last = 0;
};
[[nodiscard]] std::vector<Run> runs_of(std::vector<std::int64_t> positions);

// The events of one turn, as one or more rows of text.
struct HistoryRow {
    EventId first = 0;
    EventId last = 0;
    std::int64_t count = 0;
    std::string lines;
};
struct HistoryText {
    std::vector<HistoryRow> rows;
    std::int64_t bytes = 0;
};
[[nodiscard]] HistoryText history_text(const std::vector<Event>& events);

}  // namespace holdfast::flow

// The clocks of a database in a file.
//
// The wall clock of the machine dates what happens; it follows every correction. Leases must not:
// they are compared with the time since the machine was started, which is the same in all of its
// processes. The file numbers the starts (boots) that it has seen. A lease time is
//
//     number of the boot * 140,737,488 s + time since that boot, in microseconds
//
// so that every time of an earlier boot, or of the machine that the file came from, is before every
// time of this one: what was leased then has expired, and its holder is gone.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "sqlite/connection.hpp"

#include <holdfast/base/clock.hpp>

namespace holdfast::sql::sqlite {

// Safe to share between threads.
class DatabaseClock {
public:
    struct LeaseTime {
        std::int64_t now_us;
        std::int64_t epoch_us;  // Taken from a lease time, it gives the wall time that is shown.
    };

    explicit DatabaseClock(const Clock& clock) noexcept : clock_(clock) {}

    [[nodiscard]] std::int64_t now_us() const;

    // Requires: a transaction of `connection` is open. The first one of a boot that may write
    // enters the boot into the file.
    [[nodiscard]] LeaseTime lease_time(Connection& connection);

private:
    struct Boot {
        std::int64_t number;
        std::int64_t began_us;  // By the wall clock, when the boot was entered.
    };

    [[nodiscard]] Boot boot_in(Connection& connection);
    [[nodiscard]] std::int64_t began_us() const;

    const Clock& clock_;
    std::mutex mutex_;
    std::optional<Boot> boot_;  // This one, once it is found in the file.
};

}  // namespace holdfast::sql::sqlite

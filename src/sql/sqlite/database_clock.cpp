#include "sqlite/database_clock.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace holdfast::sql::sqlite {
namespace {

constexpr std::int64_t millisecond_us = 1'000;
constexpr std::int64_t second_us = 1'000'000;
// More than four years, and whole seconds: a lease time in milliseconds loses nothing.
constexpr std::int64_t boot_us = 140'737'488 * second_us;
// More boots than that share the last number: then a lease may outlast a restart.
constexpr std::int64_t boots_max = (std::int64_t{1} << 16U) - 2;

// Each process runs these once or twice, so they are not kept prepared.
Rendered once(const char* name, const char* text, std::size_t arguments, bool writes) {
    return {.name = name, .text = text, .arguments = arguments, .writes = writes, .once = true};
}

Rows look(Connection& connection, const char* name, const char* text) {
    const Rendered statement = once(name, text, 0, false);
    return connection.execute(Call{&statement, {}}, {}, true).rows;
}

void enter(Connection& connection,
           std::int64_t number,
           std::int64_t began_us,
           const std::string& boot_id) {
    connection.run_script(
        "CREATE TABLE IF NOT EXISTS holdfast_boots ("
        "one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, "
        "began_us INTEGER NOT NULL, boot_id TEXT NOT NULL) STRICT");
    const Rendered statement =
        once("sql.enter_boot",
             "INSERT INTO holdfast_boots (one, number, began_us, boot_id) VALUES (1, ?1, ?2, ?3) "
             "ON CONFLICT (one) DO UPDATE SET number = excluded.number, "
             "began_us = excluded.began_us, boot_id = excluded.boot_id",
             3,
             true);
    const std::array args{Param(number), Param(began_us), Param(boot_id)};
    connection.execute(Call{&statement, args}, {}, false);
}

}  // namespace

std::int64_t DatabaseClock::now_us() const {
    return clock_.wall_now().time_since_epoch().count();
}

// The wall clock may have been set since the boot was entered. Whole seconds are enough to follow
// it, and keep the time that is shown for a lease from flickering.
DatabaseClock::LeaseTime DatabaseClock::lease_time(Connection& connection) {
    const Boot boot = boot_in(connection);
    const std::int64_t up_us = clock_.boot_now().count();
    const std::int64_t step_us = now_us() - up_us - boot.began_us;
    const std::int64_t half = step_us < 0 ? -second_us / 2 : second_us / 2;
    const std::int64_t whole_us = (step_us + half) / second_us * second_us;
    return {.now_us = boot.number * boot_us + up_us,
            .epoch_us = boot.number * boot_us - boot.began_us - whole_us};
}

// Rounded up to milliseconds, so that a lease is never shown to end before it does.
std::int64_t DatabaseClock::began_us() const {
    const std::int64_t up_us = clock_.boot_now().count();
    const std::int64_t exact_us = now_us() - up_us;
    return (exact_us + millisecond_us - 1) / millisecond_us * millisecond_us;
}

// A boot that this transaction enters is not remembered: the transaction may be rolled back. The
// next one finds it in the file.
DatabaseClock::Boot DatabaseClock::boot_in(Connection& connection) {
    {
        const std::lock_guard lock(mutex_);
        if (boot_) {
            return *boot_;
        }
    }
    const std::string boot_id = clock_.boot_id();
    Boot boot{.number = 1, .began_us = began_us()};
    if (!look(connection,
              "sql.find_boots",
              "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'holdfast_boots'")
             .empty()) {
        const Rows rows = look(
            connection, "sql.last_boot", "SELECT number, began_us, boot_id FROM holdfast_boots");
        if (!rows.empty()) {
            const auto [number, began_us, id] =
                rows[0].as<std::int64_t, std::int64_t, std::string>();
            if (id == boot_id) {
                const std::lock_guard lock(mutex_);
                boot_ = {number, began_us};
                return *boot_;
            }
            boot.number = std::min(number + 1, boots_max);
        }
    }
    if (!connection.serves_reader()) {
        enter(connection, boot.number, boot.began_us, boot_id);
    }
    return boot;
}

}  // namespace holdfast::sql::sqlite

// The locks of the database that the command line names, and what the verbs share.
#pragma once

#include <chrono>

#include "lock/lock.hpp"

#include <holdfast/lock/locks.hpp>
#include <holdfast/lock/with_lock.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::app {

// Commands that acquire a lock create the tables of a file; others, and servers, require them.
enum class Tables : std::uint8_t { make, require };

class LockAccess {
public:
    // Creates no file. A database without the tables is condition_failed, which names the cure.
    LockAccess(const Context& context, Tables tables);

    [[nodiscard]] lock::Locks& locks() noexcept { return locks_; }
    // By the clock that decides leases.
    [[nodiscard]] lock::ServerTime now();

private:
    sql::Database db_;
    lock::Locks locks_;
    std::stop_token stop_;
};

[[nodiscard]] std::chrono::milliseconds ttl_of(const LockRequest& request);
// How long to wait, as --wait, --no-wait and --timeout say.
[[nodiscard]] lock::Acquisition acquisition_of(const LockRequest& request);

// Waits for the lock. Ends with exit_contended if another holder has it for all that time.
[[nodiscard]] lock::Grant take(const Context& context,
                               const LockRequest& request,
                               lock::Locks& locks);
// The lock is not ours any more.
[[noreturn]] void throw_lost(std::string message);

}  // namespace holdfast::app

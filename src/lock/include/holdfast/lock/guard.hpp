// Writes that count only while the lock is held.
//
// Two ways. If what the lock protects lies in the same database, the transaction itself can assert
// the lock: it then commits only while the lock is held, which no check from outside can promise.
// If it lies elsewhere, or several tables share one lock, the fence is remembered per resource, and
// a write with an older one is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/lock/fence.hpp>
#include <holdfast/lock/lock_id.hpp>
#include <holdfast/sql/dialect.hpp>

namespace holdfast::sql {
class TableNames;
class Tx;
}  // namespace holdfast::sql

namespace holdfast::lock {

class Locks;

// Throws condition_failed unless the lock is held now, by its expiry without any grace. From here
// to the end of the transaction the lock cannot be taken over or released; a heartbeat still works.
// Requires: `tx` is a transaction on the database of `locks`, and not read only.
Fence assert_held(sql::Tx& tx, Locks& locks, std::string_view key, const LockId& lock_id);

// True if no newer fence has been seen for the resource; then this one is remembered, to the end of
// the transaction and beyond. The same fence again is fine: it is the same holder's next write.
[[nodiscard]] bool accept_fence(sql::Tx& tx, Locks& locks, std::string_view resource, Fence fence);

// The statement of assert_held for a connection of the caller's own: $1 is the key as storage_key
// makes it, $2 the lock id. No row means: not held, roll back. In a file it does not look at the
// expiry, only whether another holder has taken the lock.
[[nodiscard]] std::string assert_held_sql(const sql::Dialect& dialect,
                                          const sql::TableNames& tables);

}  // namespace holdfast::lock

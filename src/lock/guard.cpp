#include <holdfast/lock/guard.hpp>

#include "statements/statements.hpp"

#include <holdfast/lock/error.hpp>
#include <holdfast/lock/key.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/sql/tx.hpp>

namespace holdfast::lock {

Fence assert_held(sql::Tx& tx, Locks& locks, std::string_view key, const LockId& lock_id) {
    const std::string storage = storage_key("", normalised_key(key), tx.dialect().key_bytes_max, 0);
    const sql::Rows rows =
        tx.query(statements::assert_held.with(locks.tables()), storage, lock_id.reveal());
    if (rows.empty()) {
        throw sql::ConditionFailed(
            "a lock that this transaction needs", "held by this caller", "lost");
    }
    return parse_fence(rows[0].get<std::string>(0));
}

bool accept_fence(sql::Tx& tx, Locks& locks, std::string_view resource, Fence fence) {
    return tx.count(statements::accept_fence.with(locks.tables()),
                    normalised_key(resource),
                    static_cast<std::int64_t>(value_of(fence))) == 1;
}

std::string assert_held_sql(const sql::Dialect& dialect, const sql::TableNames& tables) {
    std::string text =
        sql::render(dialect, "lock.assert_held", statements::assert_held.text(), &tables).text;
    // The clock's parameter. On a server it is the offset of tests. In a file it is the clock of
    // leases, which such a connection cannot read: there the lock id tells whether the lock was
    // taken over, and until then an expired one is still the caller's alone.
    const std::string parameter{dialect.parameter_mark, '3'};
    text.replace(text.find(parameter), parameter.size(), "0");
    return text;
}

}  // namespace holdfast::lock

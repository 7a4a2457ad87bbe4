#include "statements/lock_sql.hpp"

#include <algorithm>

#include "statements/statements.hpp"

#include <holdfast/lock/error.hpp>

namespace holdfast::lock {

std::string reserve_for_first(sql::Tx& tx,
                              const sql::TableNames& tables,
                              LockSqlSettings settings,
                              const std::string& key,
                              const std::string& lock_id) {
    const sql::Rows rows = tx.query(statements::first_in_line.with(tables), key, lock_id);
    const auto first = rows.single();
    if (!first) {
        return {};
    }
    const auto next = first->get<std::string>(1);
    if (tx.count(statements::reserve.with(tables),
                 lock_id,
                 next,
                 settings.tolerance.count(),
                 settings.reservation.count()) == 0) {
        return {};
    }
    tx.exec(statements::leave_line.with(tables), key, next);
    auto waiter = first->get<std::string>(2);
    tx.notify(waiters_channel, waiter);
    return waiter;
}

Missing why_missing(std::optional<std::int64_t> expires_at_ms) {
    return expires_at_ms ? Missing::expired : Missing::not_found;
}

std::chrono::milliseconds until_free(std::int64_t held_until_ms,
                                     std::int64_t now_ms,
                                     std::chrono::milliseconds tolerance) {
    const std::chrono::milliseconds left{held_until_ms - now_ms};
    return std::max(left + tolerance, std::chrono::milliseconds{0});
}

void throw_overflow() {
    throw LockError(LockCode::internal,
                    "fence overflow: the key's counter is at its maximum, so the key is unusable; "
                    "use another key");
}

}  // namespace holdfast::lock

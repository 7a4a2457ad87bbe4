#include <holdfast/lock/semaphore.hpp>

#include <algorithm>
#include <vector>

#include "core.hpp"
#include "statements/statements.hpp"
#include <fmt/core.h>

#include <holdfast/lock/key.hpp>
#include <holdfast/lock/locks.hpp>

namespace holdfast::lock {
namespace {

struct AllTaken {  // Thrown out of a transaction to undo it.
    std::chrono::milliseconds retry_after;
};

// The place that this id has, from an attempt whose answer was lost, or else the first free one.
// Throws if the current holders use another number of permits.
int free_slot(const sql::Rows& rows,
              const LockId& permit_id,
              int permits,
              std::chrono::milliseconds tolerance) {
    std::vector<bool> taken(static_cast<std::size_t>(permits), false);
    std::int64_t first_free_ms = std::numeric_limits<std::int64_t>::max();
    for (const sql::Row row : rows) {
        const std::int64_t left_ms =
            row.get<std::int64_t>(2) + tolerance.count() - row.get<std::int64_t>(4);
        if (left_ms <= 0) {
            continue;
        }
        if (row.get<std::string>(1) == permit_id.reveal()) {
            return row.get<int>(0);
        }
        if (row.get<int>(3) != permits) {
            throw LockError(LockCode::invalid_argument,
                            fmt::format("the holders of this semaphore agreed on {} permits, not "
                                        "{}; use one number everywhere",
                                        row.get<int>(3),
                                        permits));
        }
        first_free_ms = std::min(first_free_ms, left_ms);
        taken[row.get<std::size_t>(0)] = true;
    }
    const auto slot = std::ranges::find(taken, false);
    if (slot == taken.end()) {
        throw AllTaken{std::chrono::milliseconds{first_free_ms}};
    }
    return static_cast<int>(slot - taken.begin());
}

// `core` is that of Locks, whose name is private.
bool give_back(auto& core, const LockId& permit_id, sql::TxOptions tx) {
    tx.durability = sql::Durability::relaxed;
    return core.db()
               .run("LockReleasePermit",
                    tx,
                    statements::free_permit.with(core.tables()),
                    permit_id.reveal(),
                    core.hooks().tolerance.count())
               .changed == 1;
}

}  // namespace

Semaphore::Semaphore(Locks& locks, std::string_view key, int permits)
    : locks_(locks), key_(normalised_key(key)), permits_(permits) {
    if (permits < 1 || permits > permits_max) {
        throw LockError(LockCode::invalid_argument,
                        fmt::format("a semaphore has 1 to {} permits", permits_max));
    }
    // Not "fence:": a semaphore and a lock of one name do not share a counter.
    fence_key_ = storage_key("permits", key_, locks.database().dialect().key_bytes_max, 0);
}

std::variant<Permit, Busy> Semaphore::acquire(std::chrono::milliseconds ttl,
                                              const CallOptions& options) {
    Locks::Core& core = *locks_.core_;
    core.check_ttl(ttl);
    Permit permit{.permit_id = LockId::fresh()};
    Steady sent{};
    bool repeated = false;
    try {
        core.call_twice({.key = key_}, options, repeated, [&](const sql::TxOptions& tx) {
            sent = core.clock().steady_now();
            take(permit, ttl, tx);
            return true;
        });
    } catch (const AllTaken& all) {
        return Busy{all.retry_after};
    } catch (const LockError& failure) {
        if (failure.indeterminate()) {
            core.orphans().adopt([&core, id = permit.permit_id](
                                     const sql::TxOptions& tx) { give_back(core, id, tx); },
                                 ttl);
        }
        throw;
    }
    permit.safe_until = safe_until(sent, ttl);
    if (core.is_born_expired(permit.safe_until)) {
        try {
            give_back(core, permit.permit_id, core.brief());
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it is over in any case.
        }
        core.throw_born_expired();
    }
    return permit;
}

// A repeat with the same id takes the place over from itself.
void Semaphore::take(Permit& permit, std::chrono::milliseconds ttl, const sql::TxOptions& options) {
    Locks::Core& core = *locks_.core_;
    sql::TxOptions tx_options = options;
    tx_options.on_duplicate = sql::OnDuplicate::retry;  // Two first acquisitions at once.
    core.transact("LockTakePermit", tx_options, [&](sql::Tx& tx) {
        // Counting first makes all acquisitions of this key queue here.
        const sql::Rows counted =
            tx.query(statements::next_permit_fence.with(core.tables()), fence_key_, key_);
        permit.fence = Fence{counted[0].get<std::uint64_t>(0)};
        // An extension does not queue, and may happen after the read: then read again. No place can
        // be taken meanwhile, so there are fewer candidates each time.
        sql::Rows taken;
        while (taken.empty()) {
            permit.slot = free_slot(tx.query(statements::permits_of.with(core.tables()), key_),
                                    permit.permit_id,
                                    permits_,
                                    core.hooks().tolerance);
            taken = tx.query(statements::take_permit.with(core.tables()),
                             key_,
                             permit.slot,
                             permit.permit_id.reveal(),
                             ttl.count(),
                             static_cast<std::int64_t>(permit.fence),
                             permits_,
                             core.options().owner,
                             core.hooks().tolerance.count());
        }
        permit.expires_at = server_time(taken[0].get<std::int64_t>(0));
    });
}

bool Semaphore::extend(Permit& permit, std::chrono::milliseconds ttl, const CallOptions& options) {
    Locks::Core& core = *locks_.core_;
    core.check_ttl(ttl);
    Steady sent{};
    bool repeated = false;
    const sql::Rows rows =
        core.call_twice({.key = key_}, options, repeated, [&](const sql::TxOptions& tx) {
            sent = core.clock().steady_now();
            return core.db()
                .run("LockExtendPermit",
                     tx,
                     statements::prolong_permit.with(core.tables()),
                     permit.permit_id.reveal(),
                     core.hooks().tolerance.count(),
                     ttl.count())
                .rows;
        });
    if (rows.empty()) {
        return false;
    }
    permit.expires_at = server_time(rows[0].get<std::int64_t>(0));
    permit.safe_until = safe_until(sent, ttl);
    return true;
}

bool Semaphore::release(const Permit& permit, const CallOptions& options) {
    Locks::Core& core = *locks_.core_;
    bool repeated = false;
    return core.call_twice({.key = key_}, options, repeated, [&](const sql::TxOptions& tx) {
        return give_back(core, permit.permit_id, tx);
    });
}

}  // namespace holdfast::lock

#include "core.hpp"
#include "statements/statements.hpp"

#include <holdfast/lock/key.hpp>
#include <holdfast/lock/locks.hpp>

namespace holdfast::lock {
namespace {

constexpr std::chrono::milliseconds purge_after{2'000};
constexpr std::chrono::milliseconds line_purge_after{60'000};
constexpr std::size_t list_max = 10'000;
// Rows of one transaction; DSQL takes 3,000.
constexpr std::int64_t repair_batch = 1'000;
constexpr std::int64_t line_purge_batch = 1'000;

struct NotTheFence {};  // Thrown out of a transaction to undo it.

}  // namespace

std::vector<Listed> Locks::list(const ListFilter& filter, const CallOptions& options) {
    if (filter.limit == 0 || filter.limit > list_max) {
        throw LockError(LockCode::invalid_argument, "a page has 1 to 10000 locks");
    }
    const sql::Rows rows = core_->read({},
                                       "LockList",
                                       options,
                                       statements::list,
                                       normalised_text("after", filter.after),
                                       normalised_text("prefix", filter.prefix),
                                       static_cast<std::int64_t>(filter.limit),
                                       filter.dead,
                                       core_->hooks().tolerance.count());
    std::vector<Listed> found;
    for (const sql::Row row : rows) {
        const auto expires = row.get<std::int64_t>(2);
        found.push_back({.key = row.get<std::string>(0),
                         .fence = parse_fence(row.get<std::string>(1)),
                         .expires_at = server_time(expires),
                         .acquired_at = server_time(row.get<std::int64_t>(3)),
                         .live = core_->is_live_at(expires, row.get<std::int64_t>(7)),
                         .owner = row.get<std::string>(4),
                         .meta = row.get<std::string>(5),
                         .group_id = row.get<std::string>(6)});
    }
    return found;
}

bool Locks::force_release(std::string_view key, Fence expected, const CallOptions& options) {
    const std::string storage = core_->storage_key_of(key);
    const std::string counter = fence_key("", storage, core_->storage_key_bytes(), 0);
    try {
        core_->call({.key = std::string(key)}, options, [&](const sql::TxOptions& tx_options) {
            core_->transact("LockForceRelease", tx_options, [&](sql::Tx& tx) {
                // The counter first, as in an acquisition: from here on none can succeed.
                tx.exec(statements::skip_fence.with(core_->tables()), counter);
                const sql::Rows rows = tx.query(statements::find.with(core_->tables()), storage);
                const auto held = rows.single();
                if (!held || held->get<std::string>(3) != to_string(expected)) {
                    throw NotTheFence{};
                }
                if (reserve_for_first(
                        tx, core_->tables(), core_->settings(), storage, held->get<std::string>(0))
                        .empty() &&
                    tx.count(statements::free_by_fence.with(core_->tables()),
                             storage,
                             to_string(expected)) == 0) {
                    throw NotTheFence{};  // Its holder has released it meanwhile.
                }
            });
            return true;
        });
    } catch (const NotTheFence&) {
        return false;
    }
    core_->tell_forced(key, expected);
    return true;
}

std::int64_t Locks::purge(std::size_t limit, const CallOptions& options) {
    return core_->call({}, options, [&](const sql::TxOptions& tx) {
        (void)core_->db().run("LockPurgeLine",
                              tx,
                              statements::purge_line.with(core_->tables()),
                              line_purge_after.count(),
                              line_purge_batch);
        const std::int64_t locks = core_->lock_sql().purge(tx, purge_after, limit);
        return locks + core_->db()
                           .run("LockPurgePermits",
                                tx,
                                statements::purge_permits.with(core_->tables()),
                                purge_after.count(),
                                static_cast<std::int64_t>(limit) - locks)
                           .changed;
    });
}

std::int64_t Locks::fences_behind(const CallOptions& options) {
    return core_->read({}, "LockFencesBehind", options, statements::fences_behind)[0]
        .get<std::int64_t>(0);
}

std::int64_t Locks::repair_fences(std::int64_t gap, const CallOptions& options) {
    if (gap < 0) {
        throw LockError(LockCode::invalid_argument, "counters are never lowered");
    }
    // In batches, each for itself: if it ends half-way, what is done need not be undone. To lift a
    // counter twice does no harm.
    const auto in_batches = [&](const auto& batch) {
        return core_->call({}, options, [&](const sql::TxOptions& tx_options) {
            return core_->transact("LockRepair", tx_options, batch);
        });
    };
    std::int64_t behind = 0;
    for (const sql::Statement* repair : {&statements::lift_fences, &statements::restore_fences}) {
        std::int64_t changed = repair_batch;
        while (changed == repair_batch) {
            changed = in_batches(
                [&](sql::Tx& tx) { return tx.count(repair->with(core_->tables()), repair_batch); });
            behind += changed;
        }
    }
    std::optional<std::string> after = gap > 0 ? std::optional<std::string>("") : std::nullopt;
    while (after) {
        after = in_batches([&](sql::Tx& tx) {
            const sql::Rows page =
                tx.query(statements::page_of_fences.with(core_->tables()), *after, repair_batch);
            auto last = page[0].get<std::optional<std::string>>(0);
            if (last) {
                tx.exec(statements::skip_fences.with(core_->tables()), gap, *after, *last);
            }
            return last;
        });
    }
    return behind;
}

}  // namespace holdfast::lock

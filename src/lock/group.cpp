#include <algorithm>

#include "core.hpp"
#include "statements/statements.hpp"

#include <holdfast/lock/locks.hpp>

namespace holdfast::lock {
namespace {

constexpr std::size_t group_max = 64;

struct OneIsLost {};  // Thrown out of a transaction to undo it.

}  // namespace

GroupAcquired Locks::acquire_all(std::span<const std::string> keys,
                                 std::chrono::milliseconds ttl,
                                 const AcquireOptions& options) {
    if (keys.empty() || keys.size() > group_max) {
        throw LockError(LockCode::invalid_argument, "a group has 1 to 64 keys");
    }
    const std::string group_id = LockId::fresh().reveal();
    std::vector<Claim> claims;
    for (const std::string& key : keys) {
        claims.push_back(core_->claim_of(key, ttl, options));
        claims.back().lock_id = LockId::fresh();
        claims.back().group_id = group_id;
    }
    std::ranges::sort(claims, {}, &Claim::key);
    if (std::ranges::adjacent_find(claims, {}, &Claim::key) != claims.end()) {
        throw LockError(LockCode::invalid_argument, "the keys of a group must differ");
    }

    const CallOptions call{options.stop, options.deadline};
    const Steady sent = core_->clock().steady_now();
    std::vector<Claimed> claimed;
    try {
        claimed = core_->call({}, call, [&](const sql::TxOptions& tx) {
            return core_->lock_sql().claim_all(tx, claims);
        });
    } catch (const LockError& failure) {
        core_->abandon(claims, failure);
        throw;
    }
    if (!claimed.back().taken) {
        core_->count_contended();
        return Busy{claimed.back().retry_after};
    }
    GroupGrant group{.group_id = group_id, .grants = {}};
    std::vector<Grant> grants;
    for (std::size_t i = 0; i < claims.size(); ++i) {
        grants.push_back(core_->to_grant(claims[i], *claimed[i].taken, sent));
        group.grants.emplace_back(claims[i].user_key, grants.back());
    }
    core_->refuse_born_expired(grants);
    for (const Grant& grant : grants) {
        core_->count_grant(grant);
    }
    return group;
}

bool Locks::extend_all(GroupGrant& group,
                       std::chrono::milliseconds ttl,
                       const CallOptions& options) {
    core_->check_ttl(ttl);
    const Steady sent = core_->clock().steady_now();
    std::vector<ServerTime> expiries;
    try {
        expiries = core_->call({}, options, [&](const sql::TxOptions& tx_options) {
            return core_->transact("LockExtendAll", tx_options, [&](sql::Tx& tx) {
                std::vector<sql::Answer> answers;
                for (const auto& [key, grant] : group.grants) {
                    answers.push_back(tx.ask(statements::prolong.with(core_->tables()),
                                             grant.lock_id.reveal(),
                                             core_->hooks().tolerance.count(),
                                             ttl.count(),
                                             false));
                }
                std::vector<ServerTime> times;
                for (sql::Answer& answer : answers) {
                    const sql::Rows rows = answer.rows();
                    if (rows.empty()) {
                        throw OneIsLost{};
                    }
                    times.push_back(server_time(rows[0].get<std::int64_t>(0)));
                }
                return times;
            });
        });
    } catch (const OneIsLost&) {
        return false;
    }
    for (std::size_t i = 0; i < expiries.size(); ++i) {
        group.grants[i].second.expires_at = expiries[i];
        group.grants[i].second.safe_until = safe_until(sent, ttl);
        core_->count_extend(group.grants[i].second.lock_id, group.grants[i].second.safe_until);
    }
    return true;
}

std::size_t Locks::release_all(const GroupGrant& group, const CallOptions& options) {
    std::size_t released = 0;
    for (const auto& [key, grant] : group.grants) {
        released += release(grant.lock_id, options).ok ? 1 : 0;
    }
    return released;
}

}  // namespace holdfast::lock

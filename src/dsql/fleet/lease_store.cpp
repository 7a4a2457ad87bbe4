#include "fleet/lease_store.hpp"

#include <algorithm>
#include <set>

#include "fleet/item_time.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::dsql {
namespace {

using dynamo::Write;
using pool::LeaseAnswer;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int page_items = 1000;
constexpr std::size_t items_max = 100'000;  // Ten times what a cluster can have.
constexpr int reconcile_tries_max = 3;
constexpr int release_tries_max = 5;  // For a dead owner's lease; the next scan finds it again.

// The service deletes an item long after its owner is dead.
std::int64_t forgotten(Wall alive_until, const pool::FleetLimits& limits) {
    return std::chrono::ceil<std::chrono::seconds>(alive_until + us(limits.garbage_after))
        .time_since_epoch()
        .count();
}

bool failed(const dynamo::TransactAnswer& answer, std::size_t part, const char* code) {
    return answer.reasons.size() > part && answer.reasons[part].code == code;
}

// Why a transaction was not applied, besides its conditions.
LeaseAnswer trouble(const dynamo::TransactAnswer& answer) {
    const bool met = std::any_of(answer.reasons.begin(), answer.reasons.end(), [](const auto& why) {
        return why.code == "TransactionConflict";
    });
    return met ? LeaseAnswer::conflict : LeaseAnswer::throttled;
}

LeaseAnswer no_answer(const Error& error, const std::stop_token& stop) {
    if (stop.stop_requested()) {
        throw Error(Code::cancelled, Outcome::unknown, "the request was stopped");
    }
    return error.code() == Code::conflict ? LeaseAnswer::throttled : LeaseAnswer::unanswered;
}

}  // namespace

std::vector<pool::LeaseId> LeasesFound::dead(Wall now, const pool::FleetLimits& limits) const {
    std::vector<pool::OwnerSeen> seen;
    seen.reserve(owners.size());
    for (const OwnerItem& owner : owners) {
        seen.push_back(owner.seen);
    }
    return leases_to_reap(seen, leases, now, limits);
}

// --- One lease ---

Write LeaseStore::counted(int change, Wall now) const {
    return {.table = table_,
            .pk = counter_key(),
            .update =
                "SET active = if_not_exists(active, :zero) + :change, updated_ms = :now "
                "ADD version :one",
            .values = {{":zero", 0}, {":change", change}, {":now", ms(now)}, {":one", 1}}};
}

LeaseAnswer LeaseStore::acquire(const pool::AcquireLease& what,
                                std::int64_t limit,
                                Wall asked,
                                Deadline deadline,
                                const std::stop_token& stop) {
    Write count = counted(1, asked);
    count.condition = "attribute_not_exists(active) OR active < :limit";
    count.values[":limit"] = limit;
    const Write lease{.kind = Write::Kind::put,
                      .table = table_,
                      .pk = lease_prefix() + what.lease,
                      .item = {{"owner_id", member_.owner},
                               {"service_name", member_.service},
                               {"created_ms", ms(asked)},
                               {"ttl_epoch", forgotten(asked + us(limits_.owner_lease), limits_)}},
                      .condition = "attribute_not_exists(pk)"};
    try {
        const auto answer = client_->transact({count, lease}, what.token, deadline, stop);
        // If the lease exists, an earlier try was applied.
        if (answer.applied || failed(answer, 1, "ConditionalCheckFailed")) {
            return LeaseAnswer::done;
        }
        return failed(answer, 0, "ConditionalCheckFailed") ? LeaseAnswer::full : trouble(answer);
    } catch (const Error& error) {
        return no_answer(error, stop);
    }
}

LeaseAnswer LeaseStore::release(const pool::ReleaseLease& what,
                                Wall asked,
                                Deadline deadline,
                                const std::stop_token& stop) {
    const Write lease{.kind = Write::Kind::erase,
                      .table = table_,
                      .pk = lease_prefix() + what.lease,
                      .condition = "attribute_exists(pk)"};
    Write count = counted(-1, asked);
    count.condition = "active >= :one";
    try {
        const auto answer = client_->transact({lease, count}, what.token, deadline, stop);
        if (answer.applied || failed(answer, 0, "ConditionalCheckFailed")) {
            return LeaseAnswer::done;
        }
        if (!failed(answer, 1, "ConditionalCheckFailed")) {
            return trouble(answer);
        }
        // The counter was set to less than the number of leases, and cannot fall below zero.
        (void)client_->write(lease, deadline, stop);
        return LeaseAnswer::done;
    } catch (const Error& error) {
        return no_answer(error, stop);
    }
}

// --- Heartbeat ---

void LeaseStore::beat(Deadline deadline, const std::stop_token& stop) {
    const Wall until = client_->wall_now() + us(limits_.owner_lease);
    (void)client_->write({.kind = Write::Kind::put,
                          .table = table_,
                          .pk = owner_prefix() + member_.owner,
                          .item = {{"lease_until_ms", ms(until)},
                                   {"service_name", member_.service},
                                   {"owner_host", member_.host},
                                   {"ttl_epoch", forgotten(until, limits_)}}},
                         deadline,
                         stop);
}

void LeaseStore::forget_owner(Deadline deadline, const std::stop_token& stop) {
    (void)client_->write(
        {.kind = Write::Kind::erase, .table = table_, .pk = owner_prefix() + member_.owner},
        deadline,
        stop);
}

// --- All leases ---

std::optional<LeaseCount> LeaseStore::count(Deadline deadline, const std::stop_token& stop) {
    const auto item = client_->get(table_, counter_key(), deadline, stop);
    if (!item) {
        return std::nullopt;
    }
    return LeaseCount{.active = dynamo::number(*item, "active").value_or(0),
                      .updated_ms = dynamo::number(*item, "updated_ms").value_or(0),
                      .version = dynamo::number(*item, "version")};
}

template <class Each>
void LeaseStore::scan(const std::string& prefix,
                      Deadline deadline,
                      const std::stop_token& stop,
                      Each&& each) {
    std::string from;
    std::size_t seen = 0;
    do {
        const dynamo::Page page = client_->scan(table_, prefix, from, page_items, deadline, stop);
        for (const dynamo::Item& item : page.items) {
            each(dynamo::text(item, "pk").value_or("").substr(prefix.size()), item);
        }
        seen += page.items.size();
        from = page.next;
    } while (!from.empty() && seen < items_max);
}

// Leases first: the owner of a lease has sent a heartbeat before, so its item is found too.
LeasesFound LeaseStore::find(Deadline deadline, const std::stop_token& stop) {
    LeasesFound found;
    scan(lease_prefix(), deadline, stop, [&](std::string lease, const dynamo::Item& item) {
        const milliseconds created{dynamo::number(item, "created_ms").value_or(0)};
        found.leases.push_back({.lease = std::move(lease),
                                .owner = dynamo::text(item, "owner_id").value_or(""),
                                .created = Wall{created}});
    });
    scan(owner_prefix(), deadline, stop, [&](std::string owner, const dynamo::Item& item) {
        const milliseconds until{dynamo::number(item, "lease_until_ms").value_or(0)};
        found.owners.push_back({.seen = {.owner = std::move(owner), .alive_until = Wall{until}},
                                .service = dynamo::text(item, "service_name").value_or(""),
                                .host = dynamo::text(item, "owner_host").value_or("")});
    });
    return found;
}

bool LeaseStore::lock_reaper(Deadline deadline, const std::stop_token& stop) {
    const Wall now = client_->wall_now();
    return client_
        ->write({.kind = Write::Kind::put,
                 .table = table_,
                 .pk = "dsqllease_reaper#" + endpoint_,
                 .item = {{"owner_id", member_.owner},
                          {"until_ms", ms(now + us(limits_.reaper_lease))},
                          {"ttl_epoch", forgotten(now, limits_)}},
                 .condition = "attribute_not_exists(pk) OR owner_id = :me OR until_ms < :now",
                 .values = {{":me", member_.owner}, {":now", ms(now)}}},
                deadline,
                stop)
        .applied;
}

bool LeaseStore::correct(const std::optional<LeaseCount>& seen,
                         std::int64_t active,
                         Deadline deadline,
                         const std::stop_token& stop) {
    Write write{.table = table_,
                .pk = counter_key(),
                .update = "SET active = :active, updated_ms = :now ADD version :one",
                .condition = "attribute_not_exists(pk)",
                .values = {{":active", active}, {":now", ms(client_->wall_now())}, {":one", 1}}};
    if (seen) {
        write.condition = "active = :seen AND updated_ms = :then AND ";
        write.condition += seen->version ? "version = :version" : "attribute_not_exists(version)";
        write.values[":seen"] = seen->active;
        write.values[":then"] = seen->updated_ms;
        if (seen->version) {
            write.values[":version"] = *seen->version;
        }
    }
    return client_->write(write, deadline, stop).applied;
}

// --- Reaper ---

namespace {

// The counter is read before the leases and must not change until it is corrected: then both belong
// together. Leases without an owner are of processes whose items expire before their connections
// end. While there are some, what is counted and not found may be theirs.
std::optional<std::int64_t> make_true(LeaseStore& store,
                                      Deadline deadline,
                                      const std::stop_token& stop) {
    for (int i = 0; i < reconcile_tries_max; ++i) {
        const auto before = store.count(deadline, stop);
        const auto leases = store.find(deadline, stop).leases;
        const auto there = static_cast<std::int64_t>(leases.size());
        const std::int64_t drift = there - (before ? before->active : 0);
        const bool others = std::any_of(
            leases.begin(), leases.end(), [](const auto& lease) { return lease.owner.empty(); });
        if (drift < 0 && others) {
            return std::nullopt;
        }
        if (drift == 0 || store.correct(before, there, deadline, stop)) {
            return drift;
        }
    }
    return std::nullopt;
}

}  // namespace

ReapReport reap_leases(LeaseStore& store,
                       const pool::FleetLimits& limits,
                       bool reconcile,
                       Deadline deadline,
                       const std::stop_token& stop) {
    ReapReport report;
    const LeasesFound found = store.find(deadline, stop);
    const auto dead = found.dead(store.wall_now(), limits);
    std::set<std::string> owners;
    for (const pool::LeaseSeen& lease : found.leases) {
        if (std::find(dead.begin(), dead.end(), lease.lease) == dead.end()) {
            continue;
        }
        const pool::ReleaseLease end{.lease = lease.lease, .token = pool::new_lease_id()};
        const Wall asked = store.wall_now();
        LeaseAnswer answer = LeaseAnswer::conflict;
        for (int i = 0; i < release_tries_max && answer == LeaseAnswer::conflict; ++i) {
            answer = store.release(end, asked, deadline, stop);
        }
        report.freed += answer == LeaseAnswer::done ? 1 : 0;
        owners.insert(lease.owner);
    }
    report.dead_owners = static_cast<std::int64_t>(owners.size());
    if (reconcile) {
        report.drift = make_true(store, deadline, stop);
    }
    return report;
}

}  // namespace holdfast::dsql

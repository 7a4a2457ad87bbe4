// Leases of single connections in DynamoDB.
//
//   dsqllease_counter#<endpoint>         active, updated_ms, version
//   dsqllease#<endpoint>#<lease>         owner_id, service_name, created_ms, ttl_epoch
//   dsqlowner#<endpoint>#<owner>         lease_until_ms, service_name, owner_host, ttl_epoch
//   dsqllease_reaper#<endpoint>          owner_id, until_ms
//
// A lease and its count change in one transaction. A process may end a lease whose owner is dead,
// and may correct the counter after counting the leases, if nothing has changed meanwhile.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fleet/dynamodb.hpp"
#include "fleet/fleet_store.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/pool/leases.hpp>

namespace holdfast::dsql {

struct LeaseCount {
    std::int64_t active = 0;
    std::int64_t updated_ms = 0;
    std::optional<std::int64_t> version{};  // Counts our changes; others do not keep it.
};

struct OwnerItem {
    pool::OwnerSeen seen;
    std::string service;
    std::string host;
};

struct LeasesFound {
    std::vector<OwnerItem> owners;
    std::vector<pool::LeaseSeen> leases;

    [[nodiscard]] std::vector<pool::LeaseId> dead(Wall now, const pool::FleetLimits& limits) const;
};

// Safe to share between threads. Each throws what the client throws, unless it says otherwise.
class LeaseStore {
public:
    LeaseStore(std::shared_ptr<DynamoClient> client,
               std::string table,
               std::string endpoint,
               FleetMember member,
               const pool::FleetLimits& limits)
        : client_(std::move(client)),
          table_(std::move(table)),
          endpoint_(std::move(endpoint)),
          member_(std::move(member)),
          limits_(limits) {}

    // Both throw only `cancelled`. `asked` is the time of the first try: a repeat with the
    // same token must be the same request.
    [[nodiscard]] pool::LeaseAnswer acquire(const pool::AcquireLease& what,
                                            std::int64_t limit,
                                            Wall asked,
                                            Deadline deadline,
                                            const std::stop_token& stop);
    [[nodiscard]] pool::LeaseAnswer release(const pool::ReleaseLease& what,
                                            Wall asked,
                                            Deadline deadline,
                                            const std::stop_token& stop);

    void beat(Deadline deadline, const std::stop_token& stop);
    // The last heartbeat: nothing is held any more.
    void forget_owner(Deadline deadline, const std::stop_token& stop);

    // Empty if there is no counter yet.
    [[nodiscard]] std::optional<LeaseCount> count(Deadline deadline, const std::stop_token& stop);
    [[nodiscard]] LeasesFound find(Deadline deadline, const std::stop_token& stop);

    // Whether this process is the reaper for the next period; one process is.
    [[nodiscard]] bool lock_reaper(Deadline deadline, const std::stop_token& stop);
    // Sets the counter, if it is still as `seen`.
    [[nodiscard]] bool correct(const std::optional<LeaseCount>& seen,
                               std::int64_t active,
                               Deadline deadline,
                               const std::stop_token& stop);

    [[nodiscard]] Wall wall_now() const { return client_->wall_now(); }

private:
    [[nodiscard]] std::string counter_key() const { return "dsqllease_counter#" + endpoint_; }
    [[nodiscard]] std::string lease_prefix() const { return "dsqllease#" + endpoint_ + "#"; }
    [[nodiscard]] std::string owner_prefix() const { return "dsqlowner#" + endpoint_ + "#"; }
    [[nodiscard]] dynamo::Write counted(int change, Wall now) const;
    template <class Each>
    void scan(const std::string& prefix,
              Deadline deadline,
              const std::stop_token& stop,
              Each&& each);

    const std::shared_ptr<DynamoClient> client_;
    const std::string table_;
    const std::string endpoint_;
    const FleetMember member_;
    const pool::FleetLimits limits_;
};

// What the reaper has found and done.
struct ReapReport {
    std::int64_t dead_owners = 0;
    std::int64_t freed = 0;
    // Existing leases minus the counter; empty if it was not reconciled, e.g.
    // because the fleet was never quiet for long enough, or is mixed with processes that give their
    // leases no owner.
    std::optional<std::int64_t> drift{};
};

// Ends the leases of dead owners, and with `reconcile` corrects the counter.
[[nodiscard]] ReapReport reap_leases(LeaseStore& store,
                                     const pool::FleetLimits& limits,
                                     bool reconcile,
                                     Deadline deadline,
                                     const std::stop_token& stop);

}  // namespace holdfast::dsql

// What the databases of one process at one endpoint share: a limiter, and slots for connections.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "fleet/lease_keeper.hpp"
#include "fleet/limiter.hpp"
#include "fleet/slot_keeper.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/dsql/fleet.hpp>
#include <holdfast/pool/open_phases.hpp>

namespace holdfast::dsql {

// The right to have one connection: none is needed, a slot of a block, or a lease of its own.
using Right = std::variant<std::monostate, pool::SlotId, pool::LeaseId>;

// Safe to share between threads.
class FleetPart {
public:
    FleetPart(const FleetConfig& config,
              const std::string& endpoint,
              const std::string& region,
              std::shared_ptr<CredentialProvider> credentials,
              Metrics* metrics,
              Logger* logger);

    // Whether one connection may be opened: first the right to have it, which can be given
    // back, then a permit, which expires. Throws pool::OpenError, or cancelled.
    [[nodiscard]] Right admit(Deadline deadline,
                              const std::stop_token& stop,
                              pool::OpenPhases& phases);
    // How long until the first connection may be opened.
    [[nodiscard]] std::chrono::nanoseconds delay() const;
    // The connection is closed, or was not opened.
    void gone(const Right& right);
    // The server has refused it because of its rate limit,
    void refused() { limiter_.refused(); }
    // or because it has too many connections.
    void full();

    // Registers a holder of up to `target` connections; `shed` is called when some must be closed.
    [[nodiscard]] std::optional<ShedRegistry::Id> join(int target, ShedRegistry::Shed shed);
    void leave(ShedRegistry::Id holder);

    // Null: the number of connections is not shared, or not in that way.
    [[nodiscard]] SlotKeeper* slots() noexcept { return slots_ ? &*slots_ : nullptr; }
    [[nodiscard]] LeaseKeeper* leases() noexcept { return leases_ ? &*leases_ : nullptr; }

private:
    void share_connections(const FleetConfig& config,
                           const std::shared_ptr<DynamoClient>& client,
                           const std::string& endpoint,
                           Metrics* metrics,
                           Logger* logger);

    const Steady begin_;  // Nothing is opened before.
    std::optional<SlotKeeper> slots_;
    std::optional<LeaseKeeper> leases_;
    Limiter limiter_;
};

// The client for the fleet's tables, which are in the cluster's region.
[[nodiscard]] std::shared_ptr<DynamoClient> fleet_client(
    const FleetConfig& config,
    const std::string& region,
    std::shared_ptr<CredentialProvider> credentials);

}  // namespace holdfast::dsql

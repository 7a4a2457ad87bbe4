// What the databases of one process at one endpoint share: a limiter, and slots for connections.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "limiter.hpp"
#include "slot_keeper.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/dsql/fleet.hpp>

namespace holdfast::dsql {

// Safe to share between threads.
class FleetPart {
public:
    FleetPart(const FleetConfig& config,
              const std::string& endpoint,
              const std::string& region,
              std::shared_ptr<CredentialProvider> credentials,
              Metrics* metrics,
              Logger* logger);

    // The right to open one connection: first a slot, which can be given back for nothing, then a
    // permit, which perishes. Throws pool::OpenError, or cancelled.
    [[nodiscard]] std::optional<pool::SlotId> admit(Deadline deadline, const std::stop_token& stop);
    // How long it is until the first one may be opened.
    [[nodiscard]] std::chrono::nanoseconds delay() const;
    // The connection is closed, or did not come about.
    void gone(std::optional<pool::SlotId> slot);
    // The server has refused it for coming too soon.
    void refused() { limiter_.refused(); }

    // Null: the number of connections is not shared.
    [[nodiscard]] SlotKeeper* slots() noexcept { return slots_ ? &*slots_ : nullptr; }

private:
    const Steady begin_;  // Nothing is opened before.
    std::optional<SlotKeeper> slots_;
    Limiter limiter_;
};

// The client for the fleet's tables.
[[nodiscard]] std::shared_ptr<DynamoClient> fleet_client(
    const FleetConfig& config,
    const std::string& region,
    std::shared_ptr<CredentialProvider> credentials);

}  // namespace holdfast::dsql

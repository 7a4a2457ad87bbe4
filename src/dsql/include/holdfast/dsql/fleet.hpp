// How a process behaves in a fleet that shares one cluster: how fast it opens connections, and how
// many.
//
// Alone it has a rate of its own. With tables in DynamoDB the whole fleet shares one rate and one
// number of connections. Where DynamoDB does not answer, each process falls back to its share.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/base/config.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/pool/config.hpp>
#include <holdfast/pool/leases.hpp>
#include <holdfast/pool/permits.hpp>
#include <holdfast/pool/slot_blocks.hpp>

namespace holdfast::dsql {

// Connections that are opened before they are needed, because the rate of openings is limited.
struct ReservoirConfig {
    bool enabled = true;        // Else a connection is opened when it is needed.
    int ready = 0;              // Kept open; 0: as many as the pool may have.
    std::optional<int> warm{};  // Awaited at the start; empty: as `ready`.
    std::chrono::nanoseconds warm_up_max =
        std::chrono::seconds{30};  // The longest wait for `warm`.
    std::chrono::nanoseconds life = std::chrono::minutes{50};
    std::chrono::nanoseconds life_jitter = std::chrono::minutes{5};
    std::chrono::nanoseconds guard = std::chrono::seconds{45};
    std::chrono::nanoseconds lead = std::chrono::seconds{30};
    std::chrono::nanoseconds look_every = std::chrono::seconds{1};
};

// How a fleet counts its connections: in blocks of slots, or one by one.
enum class LeaseMode { blocks, counter };

struct FleetConfig {
    // Of this process alone.
    int rate = 10;
    int burst = 100;
    // Before its first connection a process waits for a random part of this; zero: not at all.
    std::chrono::nanoseconds stagger_max{0};
    std::chrono::seconds token_life{900};

    ReservoirConfig reservoir{};
    int opening_max = 8;                                               // Concurrent openings.
    std::chrono::nanoseconds open_timeout = std::chrono::seconds{30};  // One opening, all phases,
    std::chrono::seconds connect_timeout{10};  // and of that TCP, TLS and login.

    // Of the whole fleet, if there is a table for it.
    std::string rate_table{};
    pool::PermitConfig permits{};

    // The connections of the whole fleet, if there is a table for them.
    std::string lease_table{};
    LeaseMode lease_mode = LeaseMode::blocks;
    pool::SlotBlocksConfig blocks{};
    pool::LeasesConfig leases{};

    int fleet_size = 10;  // Divides what is shared while DynamoDB does not answer.
    std::string service = "unknown";
    // Of the cluster and its tables, if neither the URL nor the endpoint's name contains it.
    std::string region{};
    std::string dynamodb_endpoint{};  // For tests: http://host:port instead of the region's.
    pool::FleetLimits limits{};       // Only tests change it,
    pool::Limits pool_limits{};       // and this.
};

// The settings below `dsql.`, with their environment variables.
[[nodiscard]] Settings fleet_settings();

// Invalid_argument, naming the settings, for limits that are not positive and for settings that
// contradict each other; with dsql.strict also for values in the environment that were not
// understood.
// Requires: `config` was loaded with fleet_settings().
[[nodiscard]] FleetConfig fleet_config(const Config& config);

// A setting that is not applied as given. It is logged; dsql.strict refuses it.
struct Overruled {
    std::string key;
    std::string why;
};
[[nodiscard]] std::vector<Overruled> overruled(const Config& config);

// The configuration of a pool of at most `target` connections. Invalid_argument if more should be
// ready than the pool may have.
[[nodiscard]] pool::Config pool_config(const FleetConfig& fleet, int target);

// The name of this process in leases and metrics: `service`, else SERVICES of the environment,
// else the name of its executable.
[[nodiscard]] std::string service_name(const FleetConfig& fleet);

// The same fleet, for a command that ends soon: it opens connections when it needs them, and starts
// without a delay.
[[nodiscard]] FleetConfig for_one_command(FleetConfig fleet);

// How long this process waits before its first connection.
[[nodiscard]] std::chrono::nanoseconds startup_delay(const FleetConfig& config, Random& random);

}  // namespace holdfast::dsql

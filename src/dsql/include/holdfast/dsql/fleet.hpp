// How a process behaves in a fleet that shares one cluster: how fast it opens connections, and how
// many.
//
// Alone it has a rate of its own. With tables in DynamoDB the whole fleet shares one rate and one
// number of connections. Where DynamoDB does not answer, each process falls back to its share.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <holdfast/base/config.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/pool/permits.hpp>
#include <holdfast/pool/slot_blocks.hpp>

namespace holdfast::dsql {

struct FleetConfig {
    // Of this process alone.
    int rate = 10;
    int burst = 100;
    // Before its first connection a process waits for a random part of this; zero: not at all.
    std::chrono::nanoseconds stagger_max{0};
    std::chrono::seconds token_life{900};

    // Of the whole fleet, if there is a table for it.
    std::string rate_table{};
    pool::PermitConfig permits{};

    // The connections of the whole fleet, if there is a table for them.
    std::string lease_table{};
    pool::SlotBlocksConfig blocks{};

    int fleet_size = 10;  // Divides what is shared while DynamoDB does not answer.
    std::string service = "unknown";
    std::string region{};             // Of DynamoDB; empty: the cluster's.
    std::string dynamodb_endpoint{};  // For tests: http://host:port instead of the region's.
    pool::FleetLimits limits{};       // Only tests change it.
};

// The settings below `dsql.`, with the environment names that operators know.
[[nodiscard]] Settings fleet_settings();

// Invalid_argument, naming the settings, for limits that are none and for those that contradict
// each other; with dsql.strict also for values in the environment that were not understood.
// Requires: `config` was loaded with fleet_settings().
[[nodiscard]] FleetConfig fleet_config(const Config& config);

// How long this process waits before its first connection.
[[nodiscard]] std::chrono::nanoseconds startup_delay(const FleetConfig& config, Random& random);

}  // namespace holdfast::dsql

// How permits and blocks of slots are stored in DynamoDB.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "fleet/dynamodb.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/pool/permits.hpp>
#include <holdfast/pool/slot_blocks.hpp>

namespace holdfast::dsql {

// Invalid_argument, naming the part, if one of them is missing.
void check_place(const std::shared_ptr<DynamoClient>& client,
                 const std::string& table,
                 const std::string& endpoint);

// Permits to open connections to one endpoint. Safe to share between threads.
//
//   dsqlconnect#<endpoint>#<second>    count, updated_at_ms
//   dsql_connect_bucket#<endpoint>     tokens_milli, last_refill_ms
//   dsql_connect_reserve#<endpoint>    tat_us
class PermitStore {
public:
    PermitStore(std::shared_ptr<DynamoClient> client, std::string table, std::string endpoint)
        : client_(std::move(client)), table_(std::move(table)), endpoint_(std::move(endpoint)) {}

    // Throws what the client throws.
    [[nodiscard]] pool::PermitAnswer ask(const pool::PermitWrite& write,
                                         Deadline deadline,
                                         const std::stop_token& stop);

    [[nodiscard]] DynamoClient& client() noexcept { return *client_; }
    [[nodiscard]] const std::string& table() const noexcept { return table_; }
    [[nodiscard]] const std::string& endpoint() const noexcept { return endpoint_; }

private:
    [[nodiscard]] dynamo::Write translate(const pool::CountPermits& what) const;
    [[nodiscard]] dynamo::Write translate(const pool::WriteBucket& what) const;
    [[nodiscard]] dynamo::Write translate(const pool::AdvanceClock& what) const;
    [[nodiscard]] dynamo::Write translate(const pool::SetClock& what) const;
    [[nodiscard]] std::int64_t expiry(std::chrono::seconds life) const;

    const std::shared_ptr<DynamoClient> client_;
    const std::string table_;
    const std::string endpoint_;
};

// Identifies a process in its blocks and in listings.
struct FleetMember {
    std::string owner;    // 32 hexadecimal digits, of this incarnation.
    std::string service;  // "worker"
    std::string host;     // "host/pid"
};
[[nodiscard]] FleetMember this_process(std::string service);

[[nodiscard]] std::string block_prefix(const std::string& endpoint);
[[nodiscard]] std::string block_key(const std::string& endpoint, int block);

// Blocks of slots of one endpoint: connslots#<endpoint>#block-<i>. Safe to share between threads.
class BlockStore {
public:
    BlockStore(std::shared_ptr<DynamoClient> client,
               std::string table,
               std::string endpoint,
               FleetMember member,
               const pool::SlotBlocksConfig& config,
               const pool::FleetLimits& limits)
        : client_(std::move(client)),
          table_(std::move(table)),
          endpoint_(std::move(endpoint)),
          member_(std::move(member)),
          config_(config),
          limits_(limits) {}

    // Each throws what the client throws, and returns the event for the machine.
    [[nodiscard]] pool::SlotEvent take(int block, Deadline deadline, const std::stop_token& stop);
    [[nodiscard]] pool::SlotEvent renew(int block, Deadline deadline, const std::stop_token& stop);
    void give_back(const pool::GiveBlockBack& back, Deadline deadline, const std::stop_token& stop);

private:
    const std::shared_ptr<DynamoClient> client_;
    const std::string table_;
    const std::string endpoint_;
    const FleetMember member_;
    const pool::SlotBlocksConfig config_;
    const pool::FleetLimits limits_;
};

}  // namespace holdfast::dsql

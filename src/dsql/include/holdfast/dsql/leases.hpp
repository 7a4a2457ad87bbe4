// Administration of a fleet's tables in DynamoDB: create, show, clean up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/pool/fleet_limits.hpp>

namespace holdfast::dsql {

class DynamoClient;

struct LeaseAdminOptions {
    std::string region{};
    std::string dynamodb_endpoint{};  // For tests; empty: the region's.
    std::shared_ptr<CredentialProvider> credentials{};
    pool::FleetLimits limits{};
    std::chrono::milliseconds poll_every{2000};  // While a table is being made.
};

struct TableMade {
    std::string table;
    bool created = false;         // Else it existed already.
    bool expiry_enabled = false;  // Else it was enabled already.
};

// One block of slots as it stands in the table.
struct BlockSeen {
    enum class State { held, free, dead };  // Dead: its owner has not renewed it in time.
    int block = 0;
    State state = State::free;
    std::string owner{};
    std::string service{};
    std::string host{};
    std::int64_t slots = 0;
    std::int64_t epoch = 0;  // How often it was taken.
    Wall until{};
};
[[nodiscard]] const char* to_string(BlockSeen::State state) noexcept;

// One process and the leases that it holds, where connections are counted one by one.
struct OwnerSeen {
    std::string owner{};  // Empty: all leases that name none, of processes without a heartbeat.
    std::string service{};
    std::string host{};
    std::int64_t leases = 0;
    std::optional<Wall> until{};  // Empty: no heartbeat was ever written.
    bool dead = false;            // Its heartbeat is too old, or was never written.
};

struct LeasesSeen {
    std::int64_t counted = 0;  // By the counter; the owners' leases are those that exist.
    std::vector<OwnerSeen> owners{};
};

struct LeasesReaped {
    std::int64_t dead_owners = 0;
    std::int64_t freed = 0;
    std::optional<std::int64_t> drift{};  // Of the counter before it was corrected; empty: unknown.
};

// Each call throws what DynamoDB's client throws: unavailable, unauthorized, not_found.
class LeaseAdmin {
public:
    explicit LeaseAdmin(const LeaseAdminOptions& options);
    ~LeaseAdmin();
    LeaseAdmin(const LeaseAdmin&) = delete;
    LeaseAdmin& operator=(const LeaseAdmin&) = delete;

    // Creates the table if it does not exist, waits for it, and enables the expiry of old items.
    // May be repeated, also concurrently.
    [[nodiscard]] TableMade setup(const std::string& table,
                                  Deadline deadline,
                                  const std::stop_token& stop);

    // Throws not_found, with the cure, if the table does not exist, unavailable if it is being
    // created.
    void expect(const std::string& table, Deadline deadline, const std::stop_token& stop);

    // In order of their numbers; at most blocks_max.
    static constexpr std::size_t blocks_max = 10'000;
    [[nodiscard]] std::vector<BlockSeen> show(const std::string& table,
                                              const std::string& endpoint,
                                              Deadline deadline,
                                              const std::stop_token& stop);

    // Frees the blocks of dead owners, which others would take only when they need them. Returns
    // the freed blocks.
    [[nodiscard]] std::vector<BlockSeen> reap(const std::string& table,
                                              const std::string& endpoint,
                                              Deadline deadline,
                                              const std::stop_token& stop);

    // The same for leases of single connections, with their owners in order of their services. The
    // leases of dead owners are freed, and the counter is corrected.
    [[nodiscard]] LeasesSeen show_leases(const std::string& table,
                                         const std::string& endpoint,
                                         Deadline deadline,
                                         const std::stop_token& stop);
    [[nodiscard]] LeasesReaped reap_leases(const std::string& table,
                                           const std::string& endpoint,
                                           Deadline deadline,
                                           const std::stop_token& stop);

private:
    bool enable_expiry(const std::string& table, Deadline deadline, const std::stop_token& stop);
    void sleep(Deadline deadline, const std::stop_token& stop) const;

    const LeaseAdminOptions options_;
    const std::shared_ptr<DynamoClient> client_;
};

}  // namespace holdfast::dsql

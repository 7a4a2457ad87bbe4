// What clusters know of each other, and which hosts are alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/store/error.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::sql {
class Database;
}

namespace holdfast::store {

// A version that grows by one with every write; 0 is a cluster that is not known.
struct ClusterMetadata {
    Blob blob{};
    std::int64_t version = 0;

    friend bool operator==(const ClusterMetadata&, const ClusterMetadata&) = default;
};

using HostId = Id<struct HostKind>;

// 0 is none of them: a filter for all.
enum class Role : std::uint8_t { all, frontend, history, matching, worker, internal_frontend };

struct Member {
    HostId host{};
    std::string rpc_address{};
    std::uint16_t rpc_port = 0;
    Role role = Role::frontend;
    sql::Timestamp session_start{};
    sql::Timestamp last_heartbeat{};  // By the database's clock.
    sql::Timestamp record_expiry{};

    friend bool operator==(const Member&, const Member&) = default;
};

// A longer time to live is refused.
inline constexpr std::chrono::hours member_ttl_max{24 * 365 * 100};

// Which hosts. Empty fields ask for nothing.
struct MemberFilter {
    std::optional<HostId> host{};
    std::optional<std::string> rpc_address{};
    Role role = Role::all;
    std::optional<std::chrono::microseconds> heartbeat_within{};
    std::optional<sql::Timestamp> session_started_after{};  // Or at.
};

// Safe to share between threads. On PostgreSQL every call makes two round trips at most.
class Cluster {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    explicit Cluster(sql::Database& db) noexcept : db_(db) {}
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    // Stores what `metadata` holds if the version is still metadata.version; else throws
    // ConditionFailed.
    void save(const std::string& cluster, const ClusterMetadata& metadata, const Call& call = {});
    [[nodiscard]] std::optional<ClusterMetadata> find(const std::string& cluster,
                                                      const Call& call = {}) const;
    // By name, after the last of the page before.
    [[nodiscard]] std::vector<std::pair<std::string, ClusterMetadata>> list(
        std::int64_t page_size, const std::string& after = {}, const Call& call = {}) const;
    // What is gone already is deleted.
    void remove(const std::string& cluster, const Call& call = {});

    // A host says that it is alive, and will be for `ttl`. The heartbeat and the expiry are taken
    // from the database's clock. Requires: a positive ttl up to member_ttl_max, and a role. Else
    // invalid_argument.
    void heartbeat(const Member& member, std::chrono::microseconds ttl, const Call& call = {});
    // Hosts whose record has not expired, by id, after the last of the page before.
    [[nodiscard]] std::vector<Member> members(const MemberFilter& filter,
                                              std::int64_t page_size,
                                              HostId after = {},
                                              const Call& call = {}) const;
    // Deletes up to `limit` records that have expired, and says how many.
    std::int64_t prune(std::int64_t limit, const Call& call = {});

private:
    sql::Database& db_;
};

}  // namespace holdfast::store

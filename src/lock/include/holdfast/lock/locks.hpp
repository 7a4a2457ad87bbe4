// Locks that outlive a stalled holder.
//
// A lock is a row. Its holder has a lease, which runs out by the database's clock, and a fence,
// a number that grows each time the lock is taken. The lease keeps honest holders apart. The
// fence makes a late one harmless, provided every write under the lock carries it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <holdfast/lock/backend.hpp>
#include <holdfast/lock/error.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/sql/table_names.hpp>

namespace holdfast {
class Clock;
class Logger;
class Metrics;
}  // namespace holdfast

namespace holdfast::sql {
class Database;
}

namespace holdfast::lock {

// Names of the tables. The others are called after `locks`: locks_waiters, and so on. Lower-case
// letters, digits and underscores; 48 bytes at most.
struct Names {
    std::string schema{};  // Empty: the connection's.
    std::string locks = "holdfast_locks";
    std::string fences = "holdfast_fences";
};

struct LocksOptions {
    Names names{};
    std::string owner{};  // Shown as the holder of a lock. Empty: "host:pid".
    // The key for hashes in logs and reports. Empty: a public one, by which short keys can be
    // guessed.
    std::string hash_secret{};
    std::chrono::milliseconds call_timeout{5'000};  // Where the caller gives no deadline.
    std::chrono::milliseconds ttl_limit = ttl_max;
    // PostgreSQL: while another call decides about the same key, answer "busy" without waiting.
    // Off: strict answers, but every call waits for its turn.
    bool herd_filter = true;
    // A server that forgets commits can give one fence to two holders, so it is refused.
    bool accept_lost_commits = false;
    // is_locked also removes a row it finds long dead, at most one per second.
    bool cleanup_in_is_locked = false;
    Logger* logger = nullptr;
    Metrics* metrics = nullptr;
    const Clock* clock = nullptr;
};

// The tables of this floor under chosen names.
class Schema {
public:
    // Throws invalid_argument unless the names can be used and differ.
    explicit Schema(const Names& names = {});

    [[nodiscard]] const sql::TableNames& tables() const noexcept { return tables_; }
    // For sql::schema_apply and its kind; lent by this object. The part is called "lock", or
    // "lock:NAME" for locks in a table of another name.
    [[nodiscard]] sql::SchemaPart part() const noexcept;

private:
    sql::TableNames tables_;
    std::string part_name_;
};
// Under the default names.
[[nodiscard]] sql::SchemaPart schema_part();

// A lock on several keys at once. All or none were taken.
struct GroupGrant {
    std::string group_id;
    std::vector<std::pair<std::string, Grant>> grants;  // By key, in order.
};
using GroupAcquired = std::variant<GroupGrant, Busy>;

struct ListFilter {
    std::string prefix{};
    bool dead = false;  // Also those whose lease has run out.
    std::size_t limit = 100;
    std::string after{};  // The last key of the page before.
};

struct Listed {
    std::string key;
    Fence fence{};
    ServerTime expires_at{};
    ServerTime acquired_at{};
    bool live = false;
    std::string owner;
    std::string meta;
    std::string group_id;
};

// Safe to share between threads. Every call of Backend is one round trip on PostgreSQL.
class Locks final : public Backend {
public:
    // Requires: `db` outlives this object, and its schema holds the part `lock`. Throws
    // invalid_argument for unusable names or limits, and if the database is set to forget commits.
    explicit Locks(sql::Database& db, LocksOptions options = {});
    ~Locks() override;
    Locks(const Locks&) = delete;
    Locks& operator=(const Locks&) = delete;

    [[nodiscard]] Acquired acquire(std::string_view key,
                                   std::chrono::milliseconds ttl,
                                   const AcquireOptions& options = {}) override;
    Released release(const LockId& lock_id, const CallOptions& options = {}) override;
    Extended extend(const LockId& lock_id,
                    std::chrono::milliseconds ttl,
                    const CallOptions& options = {},
                    ExtendMode mode = ExtendMode::replace) override;
    [[nodiscard]] bool is_locked(std::string_view key, const CallOptions& options = {}) override;
    [[nodiscard]] std::optional<LockInfo> find(std::string_view key,
                                               const CallOptions& options = {}) override;
    [[nodiscard]] std::optional<LockInfo> find_by_id(const LockId& lock_id,
                                                     const CallOptions& options = {}) override;
    [[nodiscard]] std::optional<RawLockInfo> find_raw(std::string_view key,
                                                      const CallOptions& options = {}) override;
    [[nodiscard]] std::optional<RawLockInfo> find_raw_by_id(
        const LockId& lock_id, const CallOptions& options = {}) override;
    [[nodiscard]] std::unique_ptr<WaitTicket> line_up(std::string_view key,
                                                      const LockId& lock_id,
                                                      Deadline patience) override;
    void abandon(const LockId& lock_id, std::chrono::milliseconds ttl) noexcept override;
    [[nodiscard]] const Capabilities& capabilities() const noexcept override;

    // All of the keys or none. Requires: 1 to 64 keys, no two the same after normalisation.
    [[nodiscard]] GroupAcquired acquire_all(std::span<const std::string> keys,
                                            std::chrono::milliseconds ttl,
                                            const AcquireOptions& options = {});
    // False if one of them is lost; then none was extended.
    bool extend_all(GroupGrant& group,
                    std::chrono::milliseconds ttl,
                    const CallOptions& options = {});
    // Returns how many of them were still held.
    std::size_t release_all(const GroupGrant& group, const CallOptions& options = {});

    // By key, in pages: ask again with `after` set to the last key until a page is short.
    [[nodiscard]] std::vector<Listed> list(const ListFilter& filter = {},
                                           const CallOptions& options = {});
    // Takes the lock from its holder, if it still has this fence: the one that the administrator
    // has seen. The counter moves on, so the old holder's writes are refused where fences are
    // checked. False if the lock has another fence by now, or is gone.
    bool force_release(std::string_view key, Fence expected, const CallOptions& options = {});
    // Deletes up to `limit` rows that have been dead for 2 seconds or more; never a counter.
    std::int64_t purge(std::size_t limit = 1'000, const CallOptions& options = {});
    // How many counters are behind their lock's fence; none, unless commits were lost.
    [[nodiscard]] std::int64_t fences_behind(const CallOptions& options = {});
    // After a restore or a failover that may have lost commits: lifts every counter that is behind
    // its lock's fence, and all of them by `gap`. Returns how many were behind.
    std::int64_t repair_fences(std::int64_t gap, const CallOptions& options = {});

    // For code that builds on the same tables.
    [[nodiscard]] sql::Database& database() noexcept;
    [[nodiscard]] const sql::TableNames& tables() const noexcept;
    [[nodiscard]] const LocksOptions& options() const noexcept;

    struct Hooks;  // For tests: hooks.hpp.
    Locks(sql::Database& db, LocksOptions options, const Hooks& hooks);

private:
    friend class Semaphore;
    class Core;
    std::unique_ptr<Core> core_;
};

}  // namespace holdfast::lock

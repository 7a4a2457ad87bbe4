#include <holdfast/lock/locks.hpp>

#include "core.hpp"
#include "statements/statements.hpp"
#include <fmt/core.h>

#include <holdfast/lock/key.hpp>

namespace holdfast::lock {

std::span<const sql::MigrationFile> schema_files();  // Made from schema/*.sql.

namespace {

// The name of a schema part has room for 100 bytes.
constexpr std::size_t part_name_bytes_max = 90;

sql::TableNames table_names(const Names& names) {
    sql::check_table_name("the name of the locks' table", names.locks);
    sql::check_table_name("the name of the fences' table", names.fences);
    if (names.schema.size() + names.locks.size() > part_name_bytes_max) {
        throw InvalidArgument("the names of schema and table are too long together");
    }
    return {names.schema,
            {{"locks", names.locks},
             {"fences", names.fences},
             {"waiters", names.locks + "_waiters"},
             {"permits", names.locks + "_permits"},
             {"resources", names.locks + "_resources"}}};
}

std::string part_name(const Names& names) {
    if (names.schema.empty() && names.locks == Names{}.locks) {
        return "lock";
    }
    return fmt::format("lock:{}{}{}", names.schema, names.schema.empty() ? "" : ".", names.locks);
}

}  // namespace

Schema::Schema(const Names& names) : tables_(table_names(names)), part_name_(part_name(names)) {}

sql::SchemaPart Schema::part() const noexcept {
    return {.name = part_name_, .files = schema_files(), .oldest = 1, .names = &tables_};
}

sql::SchemaPart schema_part() {
    static const Schema schema;
    return schema.part();
}

Locks::Locks(sql::Database& db, LocksOptions options) : Locks(db, std::move(options), Hooks{}) {}

Locks::Locks(sql::Database& db, LocksOptions options, const Hooks& hooks)
    : core_(std::make_unique<Core>(db, std::move(options), hooks)) {}

Locks::~Locks() = default;

Acquired Locks::acquire(std::string_view key,
                        std::chrono::milliseconds ttl,
                        const AcquireOptions& options) {
    return core_->acquire(core_->claim_of(key, ttl, options),
                          {options.stop, options.deadline},
                          !options.lock_id.has_value());
}

Released Locks::release(const LockId& lock_id, const CallOptions& options) {
    bool repeated = false;
    Freed freed;
    try {
        freed = core_->call_twice(
            {.lock_id = lock_id.reveal()}, options, repeated, [&](const auto& tx) {
                return core_->lock_sql().free(tx, lock_id);
            });
    } catch (const LockError&) {
        core_->count_release_failure();
        throw;
    }
    core_->count_release(lock_id, freed.ok);
    core_->line().pass_on(freed);
    return {.ok = freed.ok, .why = freed.why, .indeterminate = repeated && !freed.ok};
}

Extended Locks::extend(const LockId& lock_id,
                       std::chrono::milliseconds ttl,
                       const CallOptions& options,
                       ExtendMode mode) {
    core_->check_ttl(ttl);
    Steady sent{};
    bool repeated = false;
    const Prolonged prolonged =
        core_->call_twice({.lock_id = lock_id.reveal()}, options, repeated, [&](const auto& tx) {
            sent = core_->clock().steady_now();
            return core_->lock_sql().prolong(tx, lock_id, ttl, mode);
        });
    if (!prolonged.expires_at) {
        core_->count_extend(lock_id, std::nullopt);
        return {.why = prolonged.why};
    }
    const Steady until = safe_until(sent, ttl);
    core_->count_extend(lock_id, until);
    return {.ok = true, .expires_at = *prolonged.expires_at, .safe_until = until};
}

bool Locks::is_locked(std::string_view key, const CallOptions& options) {
    const std::string storage = core_->storage_key_of(key);
    const sql::Rows rows = core_->read(
        {.key = std::string(key)}, "LockIsLocked", options, statements::expiry, storage);
    const auto row = rows.single();
    if (!row) {
        return false;
    }
    const auto [expires, now] = row->as<std::int64_t, std::int64_t>();
    const bool live = core_->is_live_at(expires, now);
    if (!live) {
        core_->clean_up(storage, expires, now);
    }
    return live;
}

std::optional<RawLockInfo> Locks::find_raw(std::string_view key, const CallOptions& options) {
    const std::string storage = core_->storage_key_of(key);
    return core_->to_info(
        core_->read({.key = std::string(key)}, "LockFind", options, statements::find, storage));
}

std::optional<RawLockInfo> Locks::find_raw_by_id(const LockId& lock_id,
                                                 const CallOptions& options) {
    std::optional<RawLockInfo> found = core_->to_info(core_->read({.lock_id = lock_id.reveal()},
                                                                  "LockFindById",
                                                                  options,
                                                                  statements::find_by_id,
                                                                  lock_id.reveal()));
    if (found && found->lock_id != lock_id) {
        return std::nullopt;
    }
    return found;
}

std::optional<LockInfo> Locks::find(std::string_view key, const CallOptions& options) {
    const auto found = find_raw(key, options);
    return found ? std::optional(found->info) : std::nullopt;
}

std::optional<LockInfo> Locks::find_by_id(const LockId& lock_id, const CallOptions& options) {
    const auto found = find_raw_by_id(lock_id, options);
    return found ? std::optional(found->info) : std::nullopt;
}

std::unique_ptr<WaitTicket> Locks::line_up(std::string_view key,
                                           const LockId& lock_id,
                                           Deadline patience) {
    return core_->line().line_up(core_->storage_key_of(key), lock_id, patience);
}

void Locks::abandon(const LockId& lock_id, std::chrono::milliseconds ttl) noexcept {
    try {
        core_->orphans().adopt(lock_id, ttl);
    } catch (...) {  // NOLINT(bugprone-empty-catch): then the lease has to run out.
    }
}

const Capabilities& Locks::capabilities() const noexcept {
    return core_->capabilities();
}

sql::Database& Locks::database() noexcept {
    return core_->db();
}

const sql::TableNames& Locks::tables() const noexcept {
    return core_->tables();
}

const LocksOptions& Locks::options() const noexcept {
    return core_->options();
}

}  // namespace holdfast::lock

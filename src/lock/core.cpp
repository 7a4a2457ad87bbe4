#include "core.hpp"

#include <algorithm>
#include <array>

#include "statements/statements.hpp"
#include <fmt/core.h>
#include <unistd.h>

#include <holdfast/base/log.hpp>
#include <holdfast/lock/key.hpp>

namespace holdfast::lock {
namespace {

constexpr std::size_t meta_bytes_max = 4'096;
constexpr std::chrono::milliseconds cleanup_guard{1'000};  // On top of the tolerance.

std::string host_and_process() {
    std::array<char, 256> host{};
    if (gethostname(host.data(), host.size() - 1) != 0) {
        host[0] = '?';
    }
    return fmt::format("{}:{}", host.data(), getpid());
}

LocksOptions completed(LocksOptions options) {
    if (options.owner.empty()) {
        options.owner = host_and_process();
    }
    (void)normalised_text("owner", options.owner);
    if (options.call_timeout <= std::chrono::milliseconds{0}) {
        throw LockError(LockCode::invalid_argument, "call_timeout must be positive");
    }
    if (options.ttl_limit <= std::chrono::milliseconds{0} || options.ttl_limit > ttl_max) {
        throw LockError(LockCode::invalid_argument,
                        "ttl_limit must be positive and at most 365 days");
    }
    return options;
}

Capabilities capabilities_of(const sql::Dialect& dialect) {
    return {.backend = dialect.name,
            .supports_fencing = true,
            .time_authority = dialect.embedded ? TimeAuthority::client : TimeAuthority::server};
}

// Conflicts of one key are short: many quick tries, each after anything from nothing to 200 ms.
sql::RetryPolicy retry_policy(const sql::Dialect& dialect) {
    return {.max_retries = dialect.locks_block ? 5 : 10,
            .base_delay = std::chrono::milliseconds{3},
            .max_delay = std::chrono::milliseconds{100},
            .jitter_factor = 1.0};
}

std::int64_t seconds_of(Steady now) {
    return std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
}

// True for one caller in each period.
bool first_in(std::atomic<std::int64_t>& last_s, std::int64_t now_s, std::int64_t period_s) {
    std::int64_t last = last_s.load();
    return now_s - last >= period_s && last_s.compare_exchange_strong(last, now_s);
}

}  // namespace

Steady safe_until(Steady sent, std::chrono::milliseconds ttl) {
    using std::chrono::milliseconds;
    const milliseconds drift = std::max(milliseconds{5}, ttl / 1'000);
    return sent + ttl - std::min(drift, ttl / 2);
}

Locks::Core::Core(sql::Database& db, LocksOptions options, const Hooks& hooks)
    : db_(db),
      options_(completed(std::move(options))),
      hooks_(hooks),
      schema_(options_.names),
      logger_(options_.logger == nullptr ? null_logger() : *options_.logger),
      clock_(options_.clock == nullptr ? system_clock() : *options_.clock),
      capabilities_(capabilities_of(db.dialect())),
      lock_sql_(make_lock_sql(db, tables(), settings())),
      live_(options_.metrics, db.name(), clock_),
      orphans_(*lock_sql_, clock_),
      line_(db, tables(), *lock_sql_, options_.call_timeout, hooks_.neighbourly) {
    if (!db.dialect().schemas && !options_.names.schema.empty()) {
        throw LockError(LockCode::invalid_argument, "a SQLite file has no schemas; leave it empty");
    }
    const std::string warning = call({}, {}, [&](const sql::TxOptions& tx) {
        return lock_sql_->check_durability(tx, options_.accept_lost_commits);
    });
    if (!warning.empty()) {
        logger_.warn("locks on a database that may lose commits", {{"reason", warning}});
    }
    if (Metrics* metrics = options_.metrics) {
        const auto counter = [&](std::string_view result) {
            return metrics->counter("holdfast_lock_calls_total",
                                    "Calls on locks, by what came of them.",
                                    {{"db", db.name()}, {"result", result}});
        };
        granted_ = counter("granted");
        contended_ = counter("contended");
        released_ = counter("released");
        extended_ = counter("extended");
        lost_ = counter("lost");
        born_expired_ = counter("born_expired");
        repeated_ = counter("repeated");
        release_failed_ = counter("release_failed");
        burned_ = metrics->counter("holdfast_lock_burned_fences_total",
                                   "Fences that were counted but not granted: a race for the key "
                                   "was lost after it had begun.",
                                   {{"db", db.name()}});
    }
}

std::size_t Locks::Core::storage_key_bytes() const {
    return hooks_.storage_key_bytes.value_or(db_.dialect().key_bytes_max);
}

std::string Locks::Core::storage_key_of(std::string_view key) const {
    return storage_key("", normalised_key(key), storage_key_bytes(), 0);
}

void Locks::Core::check_ttl(std::chrono::milliseconds ttl) const {
    if (ttl <= std::chrono::milliseconds{0}) {
        throw LockError(LockCode::invalid_argument,
                        "ttlMs must be a positive integer: a lease lasts at least 1 ms");
    }
    if (ttl > options_.ttl_limit) {
        throw LockError(LockCode::invalid_argument,
                        fmt::format("ttlMs exceeds maximum of {} ms", options_.ttl_limit.count()));
    }
}

Claim Locks::Core::claim_of(std::string_view key,
                            std::chrono::milliseconds ttl,
                            const AcquireOptions& options) const {
    Claim claim{.key = {},
                .fence_key = {},
                .user_key = normalised_key(key),
                .lock_id = options.lock_id ? *options.lock_id : LockId::fresh(),
                .ttl = ttl,
                .owner = options_.owner,
                .meta = options.meta};
    check_ttl(ttl);
    if (options.meta.size() > meta_bytes_max) {
        throw LockError(LockCode::invalid_argument,
                        fmt::format("meta exceeds maximum length of {} bytes", meta_bytes_max));
    }
    (void)normalised_text("meta", options.meta);
    const std::size_t limit = storage_key_bytes();
    claim.key = storage_key("", claim.user_key, limit, 0);
    claim.fence_key = fence_key("", claim.key, limit, 0);
    return claim;
}

bool Locks::Core::is_live_at(std::int64_t expires_ms, std::int64_t now_ms) const {
    return is_live(server_time(expires_ms), server_time(now_ms), hooks_.tolerance);
}

std::optional<RawLockInfo> Locks::Core::to_info(const sql::Rows& rows) const {
    const auto row = rows.single();
    if (!row) {
        return std::nullopt;
    }
    using Text = std::string;
    using Maybe = std::optional<std::string>;
    using Number = std::int64_t;
    const auto [id, expires, acquired, fence, key, owner, meta, now] =
        row->as<Text, Number, Number, Text, Text, Maybe, Maybe, Number>();
    if (!is_live_at(expires, now)) {
        return std::nullopt;
    }
    return RawLockInfo{.info = {.key_hash = hashed_name(key, options_.hash_secret),
                                .lock_id_hash = hashed_name(id, options_.hash_secret),
                                .expires_at = server_time(expires),
                                .acquired_at = server_time(acquired),
                                .fence = parse_fence(fence)},
                       .key = key,
                       .lock_id = LockId::parse(id),
                       .owner = owner.value_or(""),
                       .meta = meta.value_or("")};
}

sql::TxOptions Locks::Core::tx_options(const CallOptions& options) const {
    return {.deadline = options.deadline.value_or(Deadline::after(options_.call_timeout)),
            .stop = options.stop,
            .retry = retry_policy(db_.dialect())};
}

void Locks::Core::refuse_if_stopped(const CallOptions& options) {
    if (options.stop.stop_requested()) {
        throw LockError(LockCode::aborted, "the operation was aborted by its stop token");
    }
}

Acquired Locks::Core::acquire(const Claim& claim, const CallOptions& options, bool own_id) {
    refuse_if_stopped(options);
    const LockError::Context context{.key = claim.user_key, .lock_id = claim.lock_id.reveal()};
    Steady sent{};
    bool repeated = false;
    Claimed claimed;
    try {
        // If the first try has taken the lock, the second takes it over from itself. The lost try
        // may still hold the filter's lock, so the second goes without.
        claimed = call_twice(context, options, repeated, [&](sql::TxOptions tx) {
            tx.urgent = false;
            sent = clock_.steady_now();
            return lock_sql_->claim(tx, claim, options_.herd_filter && !repeated);
        });
    } catch (LockError& failure) {
        if (!failure.context().key) {  // Found by the code above the database: an overflow.
            failure.set_context(context);
        }
        if (own_id) {
            abandon(std::span(&claim, 1), failure);
        }
        throw;
    }
    if (!claimed.taken) {
        count_contended();
        if (claimed.burned) {
            burned_.add();
        }
        return Busy{claimed.retry_after};
    }
    Grant grant = to_grant(claim, *claimed.taken, sent);
    refuse_born_expired(std::span(&grant, 1));
    count_grant(grant);
    return grant;
}

void Locks::Core::count_grant(const Grant& grant) {
    granted_.add();
    live_.add(grant.lock_id, grant.safe_until);
}

void Locks::Core::count_release(const LockId& lock_id, bool ok) {
    (ok ? released_ : lost_).add();
    live_.remove(lock_id);
}

void Locks::Core::count_extend(const LockId& lock_id, std::optional<Steady> safe_until) {
    if (safe_until) {
        extended_.add();
        live_.add(lock_id, *safe_until);
    } else {
        lost_.add();
        live_.remove(lock_id);
    }
}

LockError Locks::Core::unknown(const LockError& second) {
    LockError error(second.lock_code(), second.what(), Outcome::unknown);
    error.set_context(second.context());
    error.set_retryable(second.retryable());
    error.set_cause(second.cause());
    return error;
}

Grant Locks::Core::to_grant(const Claim& claim, const Claimed::Taken& taken, Steady sent) {
    warn_of_overflow(claim, taken.fence);
    return {.lock_id = claim.lock_id,
            .fence = taken.fence,
            .expires_at = taken.expires_at,
            .safe_until = safe_until(sent, claim.ttl)};
}

void Locks::Core::refuse_born_expired(std::span<const Grant> grants) {
    if (std::ranges::none_of(
            grants, [this](const Grant& grant) { return is_born_expired(grant.safe_until); })) {
        return;
    }
    for (const Grant& grant : grants) {
        // Here and now: the caller may try again with the same id, and must not lose that.
        try {
            (void)lock_sql_->free(brief(), grant.lock_id);
        } catch (const std::exception&) {
            continue;  // Its lease is over in any case.
        }
    }
    throw_born_expired();
}

void Locks::Core::throw_born_expired() const {
    born_expired_.add();
    throw LockError(LockCode::network_timeout,
                    "the lease was over before its answer arrived; use a longer ttl");
}

void Locks::Core::abandon(std::span<const Claim> claims, const LockError& failure) {
    if (!failure.indeterminate()) {
        return;
    }
    for (const Claim& claim : claims) {
        orphans_.adopt(claim.lock_id, claim.ttl);
    }
}

sql::TxOptions Locks::Core::brief() const {
    return {.deadline = Deadline::after(options_.call_timeout), .urgent = true};
}

void Locks::Core::warn_of_overflow(const Claim& claim, Fence fence) {
    constexpr std::int64_t warnings_period_s = 60;
    if (value_of(fence) > static_cast<std::uint64_t>(fence_warn) &&
        first_in(warned_at_s_, seconds_of(clock_.steady_now()), warnings_period_s)) {
        logger_.warn("a fence counter approaches its maximum",
                     {{"fence", to_string(fence)},
                      {"maximum", format_fence(fence_max)},
                      {"key_hash", hashed_name(claim.user_key, options_.hash_secret)}});
    }
}

void Locks::Core::tell_forced(std::string_view key, Fence fence) const {
    logger_.warn("a lock was taken from its holder",
                 {{"fence", to_string(fence)},
                  {"key_hash", hashed_name(key, options_.hash_secret)},
                  {"by", options_.owner}});
}

// After the answer is fixed; whatever happens here changes nothing for the caller.
void Locks::Core::clean_up(const std::string& storage_key,
                           std::int64_t expires_ms,
                           std::int64_t now_ms) {
    const std::chrono::milliseconds dead_for = hooks_.tolerance + cleanup_guard;
    if (!options_.cleanup_in_is_locked || now_ms - expires_ms <= dead_for.count() ||
        !first_in(cleaned_at_s_, seconds_of(clock_.steady_now()), 1)) {
        return;
    }
    try {
        (void)db_.run("LockCleanUp",
                      tx_options({}),
                      statements::remove_dead.with(tables()),
                      storage_key,
                      dead_for.count());
    } catch (const std::exception&) {
        return;  // The purge will find it.
    }
}

}  // namespace holdfast::lock

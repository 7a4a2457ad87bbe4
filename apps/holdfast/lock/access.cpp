#include "lock/access.hpp"

#include <thread>

#include "cli/terminal.hpp"
#include "cli/times.hpp"
#include "database.hpp"
#include "lock/text.hpp"
#include "schema/parts.hpp"
#include <fmt/core.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/lock/error.hpp>

namespace holdfast::app {
namespace {

sql::Database& with_tables(sql::Database& db, const Context& context, Tables tables) {
    const Parts parts(context.config);
    const sql::TxOptions tx{.stop = context.stop};
    if (tables == Tables::make && db.dialect().embedded) {
        (void)sql::schema_apply(db, parts.named("lock"), tx);
    } else {
        sql::schema_require(db, parts.named("lock"), tx);
    }
    return db;
}

lock::LocksOptions options_of(const Context& context) {
    lock::LocksOptions options;
    options.names = lock_names(context.config);
    options.accept_lost_commits = context.config.boolean("lock.accept_lost_commits");
    options.logger = &context.logger;
    options.metrics = &context.metrics;
    return options;
}

[[noreturn]] void throw_contended(const std::string& key, const lock::Busy& busy) {
    throw CodedError(
        exit_contended,
        Code::condition_failed,
        fmt::format("'{}' is held by another holder{}; see holdfast lock status",
                    key,
                    busy.retry_after ? fmt::format(", for {} unless the lease is extended",
                                                   elapsed(*busy.retry_after))
                                     : ""));
}

bool answers(lock::Locks& locks, const std::string& key) {
    try {
        (void)locks.is_locked(key);
        return true;
    } catch (const lock::LockError&) {
        return false;
    }
}

// During its lifetime a terminal shows, after two seconds, the key, the holder and the wait.
class WaitingSign {
public:
    WaitingSign(const Context& context, lock::Locks& locks, const std::string& key)
        : progress_(context.quiet), locks_(locks), key_(key) {
        if (progress_.live()) {
            thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
        }
    }

private:
    void run(const std::stop_token& stop) {
        constexpr std::chrono::seconds at_first{2};
        constexpr std::chrono::seconds again{1};
        const auto began = std::chrono::steady_clock::now();
        auto next = began + at_first;
        while (system_clock().sleep_until(next, stop)) {
            const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(next - began);
            progress_.show(fmt::format(
                "waiting for {}{}, {}", in_one_line(key_), holder(stop), elapsed(waited)));
            next += again;
        }
    }
    std::string holder(const std::stop_token& stop) {
        try {
            const auto found = locks_.find_raw(key_, {.stop = stop});
            return found ? ", which " + in_one_line(found->owner) + " holds" : "";
        } catch (const lock::LockError&) {
            return "";  // The wait itself reports the failure.
        }
    }

    Progress progress_;
    lock::Locks& locks_;
    const std::string& key_;
    std::jthread thread_;  // Last: it uses the others.
};

}  // namespace

LockAccess::LockAccess(const Context& context, Tables tables)
    : db_(required_database_url(context), database_options(context)),
      locks_(with_tables(db_, context, tables), options_of(context)),
      stop_(context.stop) {}

lock::ServerTime LockAccess::now() {
    const sql::Timestamp now = db_.transact(
        "LockNow", {.stop = stop_, .read_only = true}, [](sql::Tx& tx) { return tx.now(); });
    return std::chrono::floor<std::chrono::milliseconds>(now);
}

lock::Acquisition acquisition_of(const LockRequest& request) {
    lock::Acquisition acquisition;
    if (int{request.wait} + int{request.no_wait} + int{!request.timeout.empty()} > 1) {
        throw InvalidArgument("choose one of --wait, --no-wait and --timeout");
    }
    if (request.wait) {
        acquisition.timeout = lock::ttl_max;
    } else if (request.no_wait) {
        acquisition.timeout = std::chrono::milliseconds{0};
    } else if (!request.timeout.empty()) {
        acquisition.timeout = duration_of("--timeout", request.timeout);
    }
    acquisition.meta = request.meta;
    return acquisition;
}

std::chrono::milliseconds ttl_of(const LockRequest& request) {
    return duration_of("--ttl", request.ttl);
}

lock::Grant take(const Context& context, const LockRequest& request, lock::Locks& locks) {
    try {
        const lock::Acquired acquired = [&] {
            const WaitingSign sign(context, locks, request.key);
            return acquire_waiting(
                locks, request.key, ttl_of(request), acquisition_of(request), context.stop);
        }();
        if (const auto* busy = std::get_if<lock::Busy>(&acquired)) {
            throw_contended(request.key, *busy);
        }
        return std::get<lock::Grant>(acquired);
    } catch (const lock::LockError& error) {
        // With a cause, the database was out of reach for some of the time; but not at its end, if
        // it answers now.
        if (error.lock_code() == lock::LockCode::acquisition_timeout &&
            (!error.cause() || answers(locks, request.key))) {
            throw_contended(request.key, {});
        }
        throw;
    }
}

void throw_lost(std::string message) {
    throw CodedError(exit_lost, Code::condition_failed, std::move(message));
}

int run_lock_verb(LockVerb verb, const Context& context, const LockRequest& request) {
    try {
        return verb(context, request);
    } catch (const CodedError&) {
        throw;
    } catch (const Error& error) {
        if (exit_code_of(error) == exit_unavailable) {
            throw CodedError(exit_no_backend, error);
        }
        throw;
    }
}

}  // namespace holdfast::app

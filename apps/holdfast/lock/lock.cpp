// The verbs of lock that do not run a program.
#include "lock/lock.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "cli/times.hpp"
#include "lock/access.hpp"
#include "lock/id_file.hpp"
#include "lock/text.hpp"
#include <fmt/core.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/lock/handle.hpp>
#include <holdfast/lock/key.hpp>
#include <holdfast/lock/verify.hpp>

namespace holdfast::app {
namespace {

using std::chrono::milliseconds;

// Held during a purge, so that several processes may run `lock purge --every`.
constexpr const char* purge_key = "holdfast/purge";
constexpr milliseconds purge_ttl{60'000};
constexpr std::size_t purge_batch = 1'000;

lock::LockId id_of(const LockRequest& request) {
    if (request.id_file.empty() == !request.id_stdin) {
        throw InvalidArgument(
            "no lock id given; use --id-file FILE, as lock acquire wrote it, or --id-stdin");
    }
    return request.id_stdin ? read_lock_id_from_stdin() : read_lock_id(request.id_file);
}

// As 15 digits or as a plain number.
lock::Fence fence_of(const std::string& text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < 0) {
        throw InvalidArgument("--fence must be a number, as holdfast lock status shows it");
    }
    return lock::parse_fence(lock::format_fence(number));
}

// Its id has become useless.
void forget_id(const LockRequest& request) {
    if (!request.id_file.empty()) {
        forget_lock_id(request.id_file);
    }
}

struct PurgeRound {
    bool busy = false;  // Another process is purging.
    std::int64_t rows = 0;
};

PurgeRound purge_once(lock::Locks& locks, std::size_t rows_max, const std::stop_token& stop) {
    lock::Handle lock =
        lock::acquire_handle(locks, purge_key, purge_ttl, {.stop = stop, .meta = "purge"});
    PurgeRound round{.busy = !lock.ok()};
    while (lock.remaining() > purge_ttl / 2 && round.rows < static_cast<std::int64_t>(rows_max)) {
        const std::size_t batch =
            std::min(purge_batch, rows_max - static_cast<std::size_t>(round.rows));
        const std::int64_t removed = locks.purge(batch, {.stop = stop});
        round.rows += removed;
        if (removed < static_cast<std::int64_t>(batch)) {
            break;
        }
    }
    return round;
}

int say_purged(const Context& context, const PurgeRound& round) {
    return say(context,
               {{"purged", round.rows}, {"busy", round.busy}},
               round.busy ? "another process is purging"
                          : fmt::format("removed {} expired locks", round.rows));
}

}  // namespace

int lock_acquire(const Context& context, const LockRequest& request) {
    const milliseconds ttl = ttl_of(request);
    const std::string key = lock::normalised_key(request.key);
    std::optional<LockIdFile> file;
    if (!request.id_file.empty()) {
        file.emplace(request.id_file);
    }
    LockAccess access(context, Tables::make);
    const lock::Grant grant = take(context, request, access.locks());
    try {
        if (file) {
            file->keep(grant.lock_id);
        }
        Json json = to_json(key, grant);
        std::string text = fmt::format(
            "holding {} for {}, fence {}", in_one_line(key), elapsed(ttl), to_string(grant.fence));
        if (request.show_id) {
            json["lock_id"] = grant.lock_id.reveal();
            text += "\n" + grant.lock_id.reveal();
        }
        return say(context, json, text);
    } catch (...) {
        // The id was not delivered, so nothing else could release the lock.
        access.locks().release(grant.lock_id);
        throw;
    }
}

int lock_release(const Context& context, const LockRequest& request) {
    const lock::LockId id = id_of(request);
    LockAccess access(context, Tables::require);
    const lock::Released released = access.locks().release(id, {.stop = context.stop});
    forget_id(request);
    if (!released.ok) {
        throw_lost("the lock was no longer held; another holder may have had it meanwhile");
    }
    return say(context, {{"released", true}}, "released");
}

int lock_extend(const Context& context, const LockRequest& request) {
    const lock::LockId id = id_of(request);
    const milliseconds ttl = ttl_of(request);
    LockAccess access(context, Tables::require);
    const lock::Extended extended = access.locks().extend(id, ttl, {.stop = context.stop});
    if (!extended.ok) {
        throw_lost("the lock is no longer held and stays lost; acquire it again");
    }
    return say(context,
               {{"extended", true}, {"expires_at_ms", to_ms(extended.expires_at)}},
               fmt::format("extended the lease to {} from now", elapsed(ttl)));
}

int lock_status(const Context& context, const LockRequest& request) {
    LockAccess access(context, Tables::require);
    const std::optional<lock::RawLockInfo> found =
        access.locks().find_raw(request.key, {.stop = context.stop});
    if (!found) {
        const std::string key = lock::normalised_key(request.key);
        return say(
            context, {{"key", key}, {"held", false}}, fmt::format("{} is free", in_one_line(key)));
    }
    const lock::ServerTime now = access.now();
    return say(context, to_json(*found, now), status_text(*found, now));
}

int lock_list(const Context& context, const LockRequest& request) {
    LockAccess access(context, Tables::require);
    const std::vector<lock::Listed> found = access.locks().list({.prefix = request.prefix,
                                                                 .dead = request.dead,
                                                                 .limit = request.limit,
                                                                 .after = request.after},
                                                                {.stop = context.stop});
    const lock::ServerTime now = access.now();
    if (!context.json) {
        print(list_text(found, now));
        if (found.size() == request.limit) {
            print(fmt::format("more: --after '{}'\n", in_one_line(found.back().key)));
        }
        return exit_done;
    }
    Json json{{"locks", Json::array()}};
    for (const lock::Listed& listed : found) {
        json["locks"].push_back(to_json(listed, now));
    }
    json["after"] = found.size() == request.limit ? Json(found.back().key) : Json(nullptr);
    print(json_line(json) + "\n");
    return exit_done;
}

int lock_force_release(const Context& context, const LockRequest& request) {
    const lock::Fence fence = fence_of(request.fence);
    LockAccess access(context, Tables::require);
    if (!access.locks().force_release(request.key, fence, {.stop = context.stop})) {
        throw Error(Code::condition_failed,
                    Outcome::not_applied,
                    fmt::format("'{}' is not held with fence {}; see holdfast lock status",
                                request.key,
                                to_string(fence)));
    }
    return say(context,
               {{"key", request.key}, {"fence", to_string(fence)}, {"released", true}},
               fmt::format("released {}; writes of its holder with fence {} are out of date",
                           request.key,
                           to_string(fence)));
}

int lock_purge(const Context& context, const LockRequest& request) {
    std::optional<milliseconds> every;
    if (!request.every.empty()) {
        every = duration_of("--every", request.every);
        if (every->count() < 1) {
            throw InvalidArgument("--every must be at least 1 ms");
        }
    }
    LockAccess access(context, Tables::require);
    if (!every) {
        return say_purged(context, purge_once(access.locks(), request.rows, context.stop));
    }
    // Continues when the database is unavailable for a while.
    while (true) {
        try {
            say_purged(context, purge_once(access.locks(), request.rows, context.stop));
        } catch (const lock::LockError& error) {
            if (!error.retryable()) {
                throw;
            }
            context.logger.error("cannot purge now", {{"reason", sentence_of(error)}});
        }
        if (!system_clock().sleep_until(std::chrono::steady_clock::now() + *every, context.stop)) {
            return exit_done;
        }
    }
}

int lock_doctor(const Context& context, const LockRequest& request) {
    if (request.gap > 0 && !request.repair) {
        throw InvalidArgument("--gap needs --repair");
    }
    LockAccess access(context, Tables::require);
    const lock::CallOptions options{.stop = context.stop};
    const std::int64_t behind = request.repair ? access.locks().repair_fences(request.gap, options)
                                               : access.locks().fences_behind(options);
    const std::vector<std::string> problems = lock::schema_problems(access.locks(), options);
    const Json json{{"behind", behind},
                    {"repaired", request.repair},
                    {"gap", request.gap},
                    {"problems", problems}};
    std::string text = "every counter is at least at its lock's fence";
    if (request.repair) {
        text = fmt::format("raised {} counters that were behind", behind);
    } else if (behind > 0) {
        text = fmt::format(
            "{} counters are behind their locks, as after a restore: stop the "
            "holders, then holdfast lock doctor --repair --gap 1000000",
            behind);
    }
    for (const std::string& problem : problems) {
        text += "\n" + problem;
    }
    say(context, json, text);
    return problems.empty() && (request.repair || behind == 0) ? exit_done : exit_refused;
}

}  // namespace holdfast::app

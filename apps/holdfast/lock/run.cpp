// The verbs of lock that run a program.
#include <algorithm>
#include <csignal>
#include <optional>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "cli/times.hpp"
#include "lock/access.hpp"
#include "lock/child.hpp"
#include "lock/lock.hpp"
#include "lock/text.hpp"
#include "signals.hpp"
#include <fmt/core.h>

#include <holdfast/base/exit_code.hpp>
#include <holdfast/lock/election.hpp>
#include <holdfast/lock/key.hpp>

namespace holdfast::app {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds run_ttl_min{1'000};

// When a program has to go. It is told to end `grace` before it is killed, and is killed early
// enough to be gone when the lease ends.
struct Times {
    milliseconds ttl;
    milliseconds grace;
    milliseconds kill_room;

    [[nodiscard]] lock::AutoExtend auto_extend() const {
        // A lost lock is noticed that much before its end; a grace that does not fit is cut off.
        return {.safety_margin = std::min(grace + kill_room, ttl / 2)};
    }
};

Times times_of(const LockRequest& request) {
    const milliseconds ttl = ttl_of(request);
    const milliseconds grace = duration_of("--grace", request.grace);
    if (ttl < run_ttl_min) {
        throw InvalidArgument(
            fmt::format("--ttl must be at least {} for a command, to leave time to end it",
                        elapsed(run_ttl_min)));
    }
    if (ttl > lock::ttl_max || grace > lock::ttl_max) {
        throw InvalidArgument("--ttl and --grace must be at most 365d");
    }
    return {.ttl = ttl,
            .grace = grace,
            .kill_room = std::clamp(ttl / 20, milliseconds{50}, milliseconds{1'000})};
}

Variables variables_of(const lock::Handle& lock) {
    const lock::Grant grant = lock.grant();
    return {{"HOLDFAST_FENCE", to_string(grant.fence)},
            {"HOLDFAST_LOCK_KEY", lock.key()},
            {"HOLDFAST_LOCK_ID_HASH", lock::hashed_name(grant.lock_id.reveal())},
            {"HOLDFAST_LOCK_EXPIRES_MS", std::to_string(to_ms(grant.expires_at))}};
}

// Standard output is the program's, if there is one.
void tell(const Context& context, bool has_program, const Json& json, const std::string& sentence) {
    const std::string line = context.json ? json_line(json) : sentence;
    if (has_program) {
        fmt::print(stderr, "{}\n", line);
    } else {
        print(line + "\n");
    }
}

// Runs the program while the lock is ours. When the lock is lost it is told to end, and killed if
// it does not in time; a signal to us is passed on. Returns the program's code.
int supervise(const Context& context,
              const lock::Handle& lock,
              const Times& times,
              const std::vector<std::string>& command) {
    Child child(command, variables_of(lock));
    const auto wake = [&child] { child.wake(); };
    const std::stop_callback on_lost(lock.lost(), wake);
    const std::stop_callback on_stop(context.stop, wake);

    Steady kill_at = Steady::max();
    bool passed_on = false;
    while (!child.wait(kill_at)) {
        if (context.stop.stop_requested() && !passed_on) {
            passed_on = true;
            child.signal(context.signals.take());
        }
        if (!lock.lost().stop_requested()) {
            continue;
        }
        const Steady now = std::chrono::steady_clock::now();
        if (kill_at == Steady::max()) {
            kill_at = std::min(now + times.grace, lock.safe_until() - times.kill_room);
            child.signal(SIGTERM);
        }
        if (now >= kill_at) {
            child.signal(SIGKILL);
            kill_at = now + times.kill_room;  // SIGKILL takes effect for certain, but not at once.
        }
    }
    if (lock.lost().stop_requested()) {
        child.signal(SIGKILL);  // What the program has started and left behind.
    }
    return child.exit_code();
}

std::string lost_text(const std::string& key, lock::LostReason reason) {
    switch (reason) {
        case lock::LostReason::refused:
            return fmt::format("the lock '{}' was taken away", key);
        case lock::LostReason::out_of_time:
            return fmt::format("the lock '{}' could not be extended in time", key);
        case lock::LostReason::failed:
            return fmt::format("the lock '{}' could not be extended", key);
        case lock::LostReason::lifetime_over:
            break;
    }
    return fmt::format("the lock '{}' was held for the maximum time", key);
}

// The program has ended. If the release fails now, the program has not failed.
void give_back(const Context& context, lock::Handle& lock) {
    if (const std::optional<lock::LostReason> reason = lock.lost_reason()) {
        throw_lost(lost_text(lock.key(), *reason) + "; the command was ended");
    }
    bool ok = true;
    try {
        (void)lock.release();
        ok = !lock.gone_at_release();
    } catch (const lock::LockError& error) {
        ok = lock.remaining().count() > 0;
        fmt::print(
            stderr,
            "holdfast: could not release '{}', which stays locked until its lease ends: {}\n",
            lock.key(),
            sentence_of(error));
    }
    if (!ok) {
        throw_lost(fmt::format("the lock '{}' was lost before the command ended", lock.key()));
    }
    if (context.json) {
        fmt::print(stderr, "{}\n", Json{{"event", "released"}, {"key", lock.key()}}.dump());
    }
}

// The events of an election, as text and as JSON.
struct Voice {
    const Context& context;
    const std::string& key;
    bool has_program;
    const std::string& owner;  // We, as others are told.

    void leader(const lock::Leader& leader) const {
        const std::string fence = to_string(leader.fence);
        tell(context,
             has_program,
             {{"event", leader.ours ? "elected" : "leader"},
              {"key", key},
              {"fence", fence},
              {"owner", leader.ours ? owner : leader.owner},
              {"expires_at_ms", to_ms(leader.expires_at)}},
             leader.ours ? fmt::format("elected, fence {}", fence)
                         : fmt::format("{} leads, fence {}", in_one_line(leader.owner), fence));
    }
    void lost(lock::LostReason reason) const {
        tell(context,
             has_program,
             {{"event", "lost"}, {"key", key}, {"reason", lock::to_string(reason)}},
             lost_text(key, reason));
    }
    void resigned() const {
        tell(context, has_program, {{"event", "resigned"}, {"key", key}}, "resigned");
    }
};

// Until the term is over.
void wait_for(const std::stop_token& over) {
    while (!over.stop_requested()) {
        system_clock().sleep_until(std::chrono::steady_clock::now() + std::chrono::hours{1}, over);
    }
}

}  // namespace

int lock_run(const Context& context, const LockRequest& request) {
    if (request.command.empty()) {
        throw InvalidArgument("no command given; write holdfast lock run KEY -- COMMAND...");
    }
    const Times times = times_of(request);
    LockAccess access(context, Tables::make);
    lock::Keeper keeper;
    lock::Handle lock(
        access.locks(), lock::normalised_key(request.key), take(context, request, access.locks()));
    keeper.keep(lock, times.ttl, times.auto_extend());
    if (context.json) {
        Json json{{"event", "acquired"}};
        json.update(to_json(lock.key(), lock.grant()));
        fmt::print(stderr, "{}\n", json.dump());
    }
    const int code = supervise(context, lock, times, request.command);
    give_back(context, lock);
    return code;
}

int lock_elect(const Context& context, const LockRequest& request) {
    const Times times = times_of(request);
    const bool has_program = !request.command.empty();
    LockAccess access(context, Tables::make);
    const Voice voice{context, request.key, has_program, access.locks().options().owner};
    lock::Election election(
        access.locks(),
        request.key,
        {.ttl = times.ttl,
         .auto_extend = times.auto_extend(),
         .meta = request.meta,
         .on_new_leader = [&](const lock::Leader& leader) { voice.leader(leader); },
         .on_lost = [&](lock::LostReason reason) { voice.lost(reason); },
         .logger = &context.logger});
    int code = exit_done;
    bool led = false;
    election.run(
        [&](lock::Handle& lock, const std::stop_token& over) {
            led = true;
            if (has_program) {
                code = supervise(context, lock, times, request.command);
            } else {
                wait_for(over);
            }
        },
        context.stop);
    if (led) {
        voice.resigned();
    }
    return code;
}

}  // namespace holdfast::app

// Finding work that is not in this process's hands: other processes', what a dead one left, timers.
#include <algorithm>

#include "runtime/runtime_state.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::flow {
namespace {

using std::chrono::steady_clock;

constexpr int claims_max = 32;
constexpr std::size_t backlog_per_thread_max = 64;
constexpr std::chrono::milliseconds poll_pause_first{5};
// What is due after that long is looked for anew by then; added to now, a longer one may overflow.
constexpr std::chrono::milliseconds look_ahead_max = std::chrono::years{1};

}  // namespace

Runtime::State::Found Runtime::State::poll_instances() {
    const std::size_t backlog_max =
        static_cast<std::size_t>(options_.workflow_threads) * backlog_per_thread_max;
    if (options_.workflow_threads == 0 || draining_) {
        return {};
    }
    const std::size_t backlog = instances_.backlog();
    if (backlog >= backlog_max) {
        return {.count = 0, .more = true};
    }
    // What is being looked at is found again until it is committed: the look goes past it.
    const ClaimInstances ask{.lease = workflow_lease_.get(),
                             .count = claims_max + static_cast<int>(backlog),
                             .versions = options_.versions,
                             .build = options_.build_id,
                             .mine = [this](std::string_view id, const Uuid& token) {
                                 return instances_.holds(id, token);
                             }};
    std::vector<ClaimedInstance> claims = provider_.claim_instances(ask);
    Found found{.count = 0, .more = static_cast<int>(claims.size()) >= ask.count};
    for (ClaimedInstance& claim : claims) {
        if (claim.claimed) {
            instances_.add_claim(std::move(claim));
            ++found.count;
        } else if (instances_.add_found_mail(claim.instance)) {
            ++found.count;
        }
    }
    return found;
}

int Runtime::State::poll_activities() {
    const int room = activities_.room();
    if (room == 0 || draining_) {
        return 0;
    }
    ClaimActivities ask{.lease = activities_.lease(),
                        .count = std::min(room, claims_max),
                        .tags = options_.tags,
                        .session = std::nullopt,
                        .begin_now = activities_.free_threads()};
    const int sessions_free = options_.sessions_max - static_cast<int>(activities_.sessions());
    if (sessions_free > 0) {
        ask.session = SessionClaim{
            .owner = worker_id_, .lease = options_.session_lease, .count = sessions_free};
    }
    std::vector<ClaimedActivity> claims = provider_.claim_activities(ask);
    for (const bool must_begin : {true, false}) {  // Those first, each in its order.
        for (ClaimedActivity& claim : claims) {
            if (claim.task.must_begin == must_begin) {
                clock_.heard(claim.now);
                activities_.add(std::move(claim), false);
            }
        }
    }
    return static_cast<int>(claims.size());
}

// Turns that begin with work of this process are dated by what the store's clock said before.
void Runtime::State::hear_clock() {
    try {
        clock_.heard(provider_.now());
        heard_clock_ = true;
    } catch (const std::exception& error) {
        log().warn("the store's clock could not be read", {{"error", error.what()}});
    }
}

void Runtime::State::wake_at(std::int64_t moment_ms) {
    const auto wait = Moment{std::chrono::milliseconds{moment_ms}} - clock_.now();
    const Steady at =
        steady_clock::now() + std::clamp(wait, std::chrono::milliseconds{0}, look_ahead_max);
    const std::lock_guard lock(poll_mutex_);
    if (at < timer_at_) {
        timer_at_ = at;
        poll_wanted_.notify_one();
    }
}

// When to look again without being asked: soon after something was found, then less and less often.
Steady Runtime::State::next_look(bool found) {
    const bool told = store_.database().dialect().notifies;
    if (found) {
        poll_pause_ = poll_pause_first;
    } else {
        poll_pause_ = std::min(told ? options_.poll_max : poll_pause_ * 2, options_.poll_max);
    }
    return steady_clock::now() + poll_pause_;
}

void Runtime::State::poll_loop(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        Found mail;
        int activities = 0;
        try {
            mail = poll_instances();
            activities = poll_activities();
        } catch (const std::exception& error) {
            log().warn("the store could not be polled", {{"error", error.what()}});
            meters_->failed("poll");
        }
        if ((mail.more && mail.count > 0) || activities >= claims_max) {
            continue;
        }
        const bool found = mail.count > 0 || mail.more || activities > 0;
        Steady next = next_look(found);
        try {
            if (!found) {
                if (const auto wait = provider_.until_next_work()) {
                    next = std::min(next, steady_clock::now() + std::min(*wait, look_ahead_max));
                }
            }
        } catch (const std::exception&) {
            // The next look will tell.
        }
        std::unique_lock lock(poll_mutex_);
        const auto wanted = [this] { return want_instances_ || want_activities_; };
        for (Steady until = std::min(next, timer_at_);
             !wanted() && !stop.stop_requested() && steady_clock::now() < until;
             until = std::min(next, timer_at_)) {
            // An earlier timer than the one we wait for ends this wait, not the whole one.
            poll_wanted_.wait_until(
                lock, stop, until, [&] { return wanted() || timer_at_ < until; });
        }
        if (timer_at_ <= steady_clock::now()) {
            timer_at_ = Steady::max();
        }
        want_instances_ = false;
        want_activities_ = false;
    }
}

}  // namespace holdfast::flow

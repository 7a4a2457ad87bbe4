// Polling for work from elsewhere: sent by other processes, left by dead ones, and due timers.
#include <algorithm>

#include "runtime/runtime_state.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::flow {
namespace {

constexpr int claims_max = 32;
// A claim that was lost this often is taken alone from then on, so that of the instances that die
// with a process only the one that kills it reaches `max_attempts`.
constexpr int attempts_shared_max = 3;
constexpr std::size_t backlog_per_thread_max = 64;
constexpr std::chrono::milliseconds poll_pause_first{5};
// A longer wait is cut: the store is polled again by then, and now plus the wait cannot overflow.
constexpr std::chrono::milliseconds look_ahead_max = std::chrono::years{1};

}  // namespace

Runtime::State::Found Runtime::State::poll_instances() {
    const std::size_t backlog_max =
        static_cast<std::size_t>(options_.workflow_threads) * backlog_per_thread_max;
    if (options_.workflow_threads == 0 || draining_) {
        return {};
    }
    const bool only_alone = options_.max_attempts == 1;
    if (instances_.backlog() >= backlog_max ||
        ((claim_alone_ || holds_alone_) && instances_.claims() > 0)) {
        return {.count = 0, .more = true};
    }
    holds_alone_ = false;
    Found found;
    if (!claim_alone_ && !only_alone) {
        found = claim_instances(false);
    }
    if ((claim_alone_ || only_alone) && instances_.claims() == 0) {
        const Found one = claim_instances(true);
        holds_alone_ = instances_.claims() > 0;
        found.count += one.count;
        found.more = one.more || one.count > 0;
    }
    return found;
}

Runtime::State::Found Runtime::State::claim_instances(bool alone) {
    const auto backlog = static_cast<int>(instances_.backlog());
    // A busy instance is found again until its turn is committed: so more are asked for.
    const ClaimInstances ask{
        .lease = workflow_lease_.get(),
        .count = claims_max + backlog,
        .versions = options_.versions,
        .build = options_.build_id,
        .attempts_shared_max = std::min(attempts_shared_max, options_.max_attempts - 1),
        .alone = alone,
        .mine = [this](std::string_view id, const Uuid& token) {
            return instances_.holds(id, token);
        }};
    std::vector<ClaimedInstance> claims = provider_.claim_instances(ask);
    Found found{.count = 0, .more = static_cast<int>(claims.size()) >= ask.count};
    claim_alone_ = false;
    for (ClaimedInstance& claim : claims) {
        if (claim.alone) {
            claim_alone_ = true;
            found.more = true;
        } else if (claim.claimed) {
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

// Turns that begin with work of this process use the last reading of the store's clock.
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
    const Steady at = steady_now() + std::clamp(wait, std::chrono::milliseconds{0}, look_ahead_max);
    const std::lock_guard lock(poll_mutex_);
    if (at < timer_at_) {
        timer_at_ = at;
        poll_wanted_.notify_one();
    }
}

// When to poll again without a notification: soon after something was found, then less often.
Steady Runtime::State::next_look(bool found) {
    const bool told = store_.database().dialect().notifies;
    if (found) {
        poll_pause_ = poll_pause_first;
    } else {
        poll_pause_ = std::min(told ? options_.poll_max : poll_pause_ * 2, options_.poll_max);
    }
    return steady_now() + poll_pause_;
}

void Runtime::State::poll_loop(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        Found mail;
        int activities = 0;
        try {
            if (give_back_owed(steady_now())) {
                mail = poll_instances();
            }
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
                    next = std::min(next, steady_now() + std::min(*wait, look_ahead_max));
                }
            }
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next poll finds it.
        }
        std::unique_lock lock(poll_mutex_);
        const auto wanted = [this] { return want_instances_ || want_activities_; };
        for (Steady until = std::min(next, timer_at_);
             !wanted() && !stop.stop_requested() && steady_now() < until;
             until = std::min(next, timer_at_)) {
            // A timer earlier than `until` ends this wait, not the loop.
            poll_wanted_.wait_for(
                lock, stop, until - steady_now(), [&] { return wanted() || timer_at_ < until; });
        }
        if (timer_at_ <= steady_now()) {
            timer_at_ = Steady::max();
        }
        want_instances_ = false;
        want_activities_ = false;
    }
}

}  // namespace holdfast::flow

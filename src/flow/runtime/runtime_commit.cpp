// Commit lanes: each takes what was queued during the last commit, and commits it as one
// transaction.
#include <algorithm>

#include "runtime/runtime_state.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::flow {

bool may_pass(const Error& error) {
    switch (error.code()) {
        case Code::unavailable:
        case Code::conflict:
        case Code::exhausted:
        case Code::deadline:
            return true;
        default:
            return false;
    }
}

namespace {

constexpr std::chrono::milliseconds commit_pause_first{10};
constexpr std::chrono::milliseconds commit_pause_max{1'000};
constexpr std::size_t ends_per_commit_max = 128;

// Whether it has sent itself a message for its next turn.
bool continues(const TurnCommit& commit) {
    return std::ranges::any_of(commit.messages, [&](const OutgoingMessage& message) {
        return message.instance == commit.instance && message.visible_at_ms == 0;
    });
}

}  // namespace

void Runtime::State::post(PreparedTurn turn) {
    const std::lock_guard lock(outbox_mutex_);
    turns_out_.push_back(std::move(turn));
    outbox_filled_.notify_one();
}

void Runtime::State::post(std::vector<ActivityEnd> ends) {
    if (ends.empty()) {
        return;
    }
    const std::lock_guard lock(outbox_mutex_);
    std::move(ends.begin(), ends.end(), std::back_inserter(ends_out_));
    outbox_filled_.notify_one();
}

// The answer goes to the instance's next turn if it is here, else into its mail. The workflow does
// not see that another attempt follows.
void Runtime::State::ended(ActivityEnd end) {
    if (end.again || !instances_.add_answer(end)) {
        post(std::vector<ActivityEnd>{std::move(end)});
    }
}

Runtime::State::Outbox Runtime::State::take_outbox() {
    const std::lock_guard lock(outbox_mutex_);
    Outbox outbox;
    const auto turns =
        std::min(turns_out_.size(), static_cast<std::size_t>(options_.turns_per_commit_max));
    std::move(turns_out_.begin(),
              turns_out_.begin() + static_cast<std::ptrdiff_t>(turns),
              std::back_inserter(outbox.turns));
    turns_out_.erase(turns_out_.begin(), turns_out_.begin() + static_cast<std::ptrdiff_t>(turns));
    const auto ends = std::min(ends_out_.size(), ends_per_commit_max);
    std::move(ends_out_.begin(),
              ends_out_.begin() + static_cast<std::ptrdiff_t>(ends),
              std::back_inserter(outbox.ends));
    ends_out_.erase(ends_out_.begin(), ends_out_.begin() + static_cast<std::ptrdiff_t>(ends));
    return outbox;
}

void Runtime::State::commit_loop(const std::stop_token& stop) {
    for (;;) {
        {
            std::unique_lock lock(outbox_mutex_);
            const bool filled = outbox_filled_.wait(
                lock, stop, [this] { return !turns_out_.empty() || !ends_out_.empty(); });
            if (!filled) {
                return;
            }
        }
        commit(take_outbox());
    }
}

void Runtime::State::commit(Outbox outbox) {
    if (!outbox.turns.empty()) {
        commit_turns(std::move(outbox.turns));
    }
    if (!outbox.ends.empty()) {
        commit_ends(outbox.ends);
    }
}

void Runtime::State::commit_turns(std::vector<PreparedTurn> turns) {
    drop_first_turns(turns, [](PreparedTurn& turn) { return !turn.first->begin_commit(); });
    std::for_each(turns.begin(), turns.end(), [this](auto& turn) { expect_starts(turn); });
    std::vector<TurnCommit> commits;
    std::vector<Committed> results;
    bool store_failed = false;
    const Steady give_up = steady_now() + options_.activity_lease;
    for (std::chrono::milliseconds pause = commit_pause_first; !turns.empty();) {
        commits.clear();
        for (PreparedTurn& turn : turns) {
            commits.push_back(std::move(turn.commit));
        }
        results.assign(turns.size(), Committed::lost);
        try {
            results = provider_.commit_turns(commits);
            break;
        } catch (const Error& error) {
            log().warn("turns could not be committed", {{"error", error.what()}});
            meters_->failed("commit_turns");
            if (!may_pass(error) && turns.size() > 1) {
                return commit_one_by_one(std::move(turns), std::move(commits));
            }
            if (draining_ || !may_pass(error) || steady_now() + pause > give_up) {
                store_failed = may_pass(error);
                break;
            }
            for (std::size_t i = 0; i < turns.size(); ++i) {
                turns[i].commit = std::move(commits[i]);
            }
            // A waiting client gets the error at once.
            drop_first_turns(turns, [&error](PreparedTurn& turn) {
                turn.first->fail(error);
                return true;
            });
        }
        options_.clock->sleep_until(steady_now() + pause, pauses_.get_token());
        pause = std::min(pause * 2, commit_pause_max);
    }
    meters_->commits += turns.empty() ? 0 : 1;
    for (std::size_t i = 0; i < turns.size(); ++i) {
        if (store_failed && commits[i].leased) {  // If it was committed, the token is another.
            owe(receipt_of(commits[i].instance, commits[i].token, turns[i].turn_context.mail));
        }
        settle(turns[i], commits[i], results[i]);
    }
}

// One of them causes the error; the others must not fail with it.
void Runtime::State::commit_one_by_one(std::vector<PreparedTurn> turns,
                                       std::vector<TurnCommit> commits) {
    for (std::size_t i = 0; i < turns.size(); ++i) {
        turns[i].commit = std::move(commits[i]);
        std::vector<PreparedTurn> one;
        one.push_back(std::move(turns[i]));
        commit_turns(std::move(one));
    }
}

// The turn cannot be stored; its instance ends instead. An end is small: one that does not fit
// either is rejected.
void Runtime::State::settle_too_large(PreparedTurn& turn, const TurnCommit& commit) {
    if (is_final(commit.status) && commit.activities.empty() && commit.starts.empty()) {
        return settle_lost(turn, commit, Committed::rejected);
    }
    std::optional<PreparedTurn> end;
    try {
        end = runner_.too_large(turn);
    } catch (const std::exception& error) {  // The store could not be read.
        log().warn("a turn is too large", {{"instance", commit.instance}, {"error", error.what()}});
    }
    if (!end) {
        return settle_lost(turn, commit, Committed::rejected);
    }
    call_off(turn);
    post(std::move(turn.answers));
    post(std::move(turn.left));
    post(std::move(*end));
}

// Instances of this process need no notification through the database.
void Runtime::State::expect_starts(PreparedTurn& turn) {
    detail::LocalBus& bus = store_.bus();
    for (std::size_t i = 0; i < turn.started.size(); ++i) {
        bus.expect(turn.started_workflows[i], turn.started[i].first, turn.started[i].second);
        turn.commit.starts[i].notify = !bus.runs(turn.started_workflows[i]);
    }
    for (OutgoingMessage& message : turn.commit.messages) {
        message.notify = message.visible_at_ms == 0 && !bus.has(message.instance);
    }
}

template <class Unwanted>
void Runtime::State::drop_first_turns(std::vector<PreparedTurn>& turns, Unwanted&& unwanted) {
    std::erase_if(turns, [&](PreparedTurn& turn) {
        if (!turn.first || !unwanted(turn)) {
            return false;
        }
        forget_first_turn(turn);
        return true;
    });
}

// Releases what was reserved and announced for it.
void Runtime::State::call_off(const PreparedTurn& turn) {
    for (const ClaimedActivity& claim : turn.local) {
        activities_.unreserve(claim.task);
    }
    for (const auto& [instance, token] : turn.started) {
        store_.bus().call_off(instance);
    }
}

void Runtime::State::forget_first_turn(PreparedTurn& turn) {
    call_off(turn);
    TurnInput left = instances_.forget(*turn.instance);
    if (left.claim) {
        instances_.add_claim(std::move(*left.claim));
    }
    look_for_mail();  // It may have been started in another way meanwhile.
}

void Runtime::State::commit_ends(const std::vector<ActivityEnd>& ends) {
    std::vector<bool> kept(ends.size(), false);
    try {
        kept = provider_.end_activities(ends);
    } catch (const Error& error) {
        // Their leases run out, and they run again: an activity runs at least once.
        log().warn("activities could not be ended", {{"error", error.what()}});
        meters_->failed("end_activities");
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
        activities_.settled(ends[i].key, ends[i].token);
        const auto& again = ends[i].again;
        if (kept[i] && ends[i].answer) {
            store_.bus().mailed(ends[i].key.instance);
        } else if (kept[i] && again && again->delay > milliseconds{0}) {
            wake_at((clock_.now() + again->delay).time_since_epoch().count());
        } else if (kept[i] && again) {
            store_.bus().activities_waiting();
        }
    }
}

void Runtime::State::settle(PreparedTurn& turn, const TurnCommit& commit, Committed result) {
    if (result == Committed::yes) {
        settle_committed(turn, commit);
    } else if (result == Committed::too_large) {
        settle_too_large(turn, commit);
    } else {
        settle_lost(turn, commit, result);
    }
}

void Runtime::State::settle_committed(PreparedTurn& turn, const TurnCommit& commit) {
    Instance& instance = *turn.instance;
    meters_->committed(commit, instance.execution.get(), clock_.now());
    instance.token = commit.next_token;
    for (const ActivityEnd& end : commit.finished) {
        activities_.settled(end.key, end.token);
    }
    for (const ActivityKey& key : commit.cancelled_activities) {
        activities_.cancel(key);
    }
    for (ClaimedActivity& claim : turn.local) {
        activities_.add(std::move(claim), true);
    }
    const bool over = is_final(commit.status);
    if (over || commit.suspended == true) {
        TurnInput left = instances_.forget(instance);
        if (left.claim) {
            instances_.add_claim(std::move(*left.claim));
        }
        post(std::move(left.answers));
        post(std::move(turn.left));
    } else {
        if (commit.next) {
            instance.execution.reset();
            instance.number = 0;
        }
        for (const ActivityEnd& end : turn.left) {
            instances_.add_answer(end);
        }
        // Mail that came under the lease has not woken a thread.
        if (commit.next || commit.leased || turn.goes_on || continues(commit)) {
            instances_.add_mail(commit.instance);
        }
        instances_.done(instance, turn.bytes);
    }
    turn.first.settle(detail::FirstTurn::Answer::created);
    tell(turn, commit);
}

// The store has changed since: what is in memory is outdated.
void Runtime::State::settle_lost(PreparedTurn& turn, const TurnCommit& commit, Committed result) {
    if (turn.first) {
        forget_first_turn(turn);
        turn.first.settle(detail::FirstTurn::Answer::declined);
        return;
    }
    ++meters_->lost;
    if (result == Committed::rejected) {
        log().error("a turn was rejected", {{"instance", commit.instance}});
        if (commit.leased) {
            ClaimedInstance claim;
            claim.instance = commit.instance;
            claim.token = commit.token;
            give_back(claim, std::chrono::milliseconds{1'000}, false);
        }
    }
    call_off(turn);
    TurnInput left = instances_.forget(*turn.instance);
    if (left.claim) {
        instances_.add_claim(std::move(*left.claim));
    }
    std::vector<ActivityEnd> answers = std::move(turn.answers);
    std::move(turn.left.begin(), turn.left.end(), std::back_inserter(answers));
    std::move(left.answers.begin(), left.answers.end(), std::back_inserter(answers));
    post(std::move(answers));
    look_for_mail();
}

void Runtime::State::tell(const PreparedTurn& turn, const TurnCommit& commit) {
    detail::LocalBus& bus = store_.bus();
    for (std::size_t i = 0; i < turn.started.size(); ++i) {
        bus.started(turn.started_workflows[i], turn.started[i].first, turn.started[i].second);
    }
    for (const OutgoingMessage& message : commit.messages) {
        if (message.visible_at_ms == 0 && message.instance != commit.instance) {
            bus.mailed(message.instance);
        } else {
            wake_at(message.visible_at_ms);
        }
    }
    if (turn.activities_waiting) {
        bus.activities_waiting();
    }
    for (const Reply& reply : commit.replies) {
        bus.changed(reply.request);
    }
    if (is_final(commit.status)) {
        bus.ended(commit.instance, {.status = commit.status, .output = commit.output});
    } else if (commit.custom_status) {
        bus.changed(commit.instance);
    }
}

}  // namespace holdfast::flow

#include "time_skipping/skipper.hpp"

#include <algorithm>
#include <optional>

#include "history/due.hpp"

namespace holdfast::server::time_skipping {

namespace state = history::state;

namespace {

// Times of events are counted in nanoseconds, which end in 2262.
constexpr Wall latest = std::chrono::sys_days{std::chrono::year{2200} / 1 / 1};

}  // namespace

bool is_running(const state::Run& run) {
    const auto attempted = [](const auto& entry) { return !entry.second.in_backoff(); };
    const auto begins = [](const auto& entry) { return entry.second.started_event_id() == 0; };
    return run.has_workflow_task() ||
           std::any_of(run.activities().begin(), run.activities().end(), attempted) ||
           std::any_of(run.children().begin(), run.children().end(), begins) ||
           !run.external_cancels().empty() || !run.external_signals().empty();
}

Skipper::Skipper(SkippingClock& clock, Alarms& alarms, std::int64_t locks)
    : clock_(clock), alarms_(alarms), locks_(locks) {}

void Skipper::lock() {
    const std::lock_guard guard(mutex_);
    ++locks_;
}

bool Skipper::unlock() {
    {
        const std::lock_guard guard(mutex_);
        if (locks_ == 0) {
            return false;
        }
        --locks_;
    }
    jump();
    return true;
}

Skipper::Sleep Skipper::sleep_until(Wall until, std::function<void()> over) {
    Sleep sleep = 0;
    {
        const std::lock_guard guard(mutex_);
        sleep = add_sleeper_locked(until, std::move(over), false);
    }
    jump();
    return sleep;
}

std::optional<Skipper::Sleep> Skipper::unlock_until(Wall until, std::function<void()> over) {
    Sleep sleep = 0;
    {
        const std::lock_guard guard(mutex_);
        if (locks_ == 0) {
            return std::nullopt;
        }
        --locks_;
        sleep = add_sleeper_locked(until, std::move(over), true);
    }
    jump();
    return sleep;
}

Skipper::Sleep Skipper::add_sleeper_locked(Wall until, std::function<void()> over, bool then_lock) {
    until = std::min(until, latest);
    const Sleep sleep = ++last_sleep_;
    const auto wait = std::max(until - clock_.wall_now(), Wall::duration::zero());
    const AlarmId alarm = alarms_.set(clock_.steady_now() + wait, [this] { wake_sleepers(); });
    sleepers_.emplace(sleep, Sleeper{until, std::move(over), alarm, then_lock});
    return sleep;
}

void Skipper::end_sleeper_locked(std::map<Sleep, Sleeper>::iterator sleeper) {
    alarms_.cancel(sleeper->second.alarm);
    locks_ += sleeper->second.then_lock ? 1 : 0;
    sleepers_.erase(sleeper);
}

void Skipper::cancel(Sleep sleep) {
    const std::lock_guard guard(mutex_);
    const auto found = sleepers_.find(sleep);
    if (found != sleepers_.end()) {
        end_sleeper_locked(found);
    }
}

void Skipper::committed(const state::Run& run) {
    const std::lock_guard guard(mutex_);
    forget_locked(run.run_id());
    if (run.phase() == state::PHASE_COMPLETED) {
        return;
    }
    KnownRun known{.runs = is_running(run), .due = std::nullopt};
    if (const auto due = history::next_due(run)) {
        known.due = std::chrono::ceil<std::chrono::milliseconds>(*due);  // As its row says.
    }
    running_ += known.runs ? 1 : 0;
    if (known.due) {
        due_.emplace(*known.due, run.run_id());
    }
    runs_.emplace(run.run_id(), known);
}

void Skipper::forget_locked(const std::string& run_id) {
    const auto found = runs_.find(run_id);
    if (found == runs_.end()) {
        return;
    }
    running_ -= found->second.runs ? 1 : 0;
    if (found->second.due) {
        due_.erase({*found->second.due, run_id});
    }
    runs_.erase(found);
}

std::shared_ptr<void> Skipper::work() {
    {
        const std::lock_guard guard(mutex_);
        ++works_;
    }
    return {this, [](Skipper* skipper) {
                {
                    const std::lock_guard guard(skipper->mutex_);
                    --skipper->works_;
                }
                skipper->jump();
            }};
}

// A moment that has come is not jumped over: its effect is committed first.
std::optional<Wall> Skipper::target_locked() const {
    if (locks_ != 0 || works_ != 0 || running_ != 0) {
        return std::nullopt;
    }
    std::optional<Wall> target;
    if (!due_.empty()) {
        target = due_.begin()->first;
    }
    for (const auto& [id, sleeper] : sleepers_) {
        target = std::min(target.value_or(sleeper.until), sleeper.until);
    }
    return target;
}

void Skipper::jump() {
    {
        const std::lock_guard guard(mutex_);
        const std::optional<Wall> target = target_locked();
        if (!target) {
            return;
        }
        if (*target <= clock_.wall_now() || *target > latest) {
            return;
        }
        clock_.skip_to(*target);
    }
    alarms_.set(clock_.steady_now(), [this] {
        if (jumped_) {
            jumped_();
        }
        wake_sleepers();
    });
}

void Skipper::wake_sleepers() {
    std::vector<std::function<void()>> awake;
    {
        const std::lock_guard guard(mutex_);
        const Wall now = clock_.wall_now();
        for (auto it = sleepers_.begin(); it != sleepers_.end();) {
            if (it->second.until > now) {
                ++it;
                continue;
            }
            awake.push_back(std::move(it->second.over));
            end_sleeper_locked(it++);
        }
    }
    for (const auto& over : awake) {
        over();
    }
}

}  // namespace holdfast::server::time_skipping

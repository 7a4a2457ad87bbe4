#include "history/due.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "history/activity.hpp"
#include "history/start.hpp"
#include "history/start/cron.hpp"
#include "history/workflow_task.hpp"

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::failure::v1::Failure;
using temporal::api::history::v1::HistoryEvent;

// Timers and backoffs, in the order in which they fire.
struct Expiry {
    Time at;
    std::int64_t event_id = 0;
    std::string timer_id;

    friend auto operator<=>(const Expiry&, const Expiry&) = default;
};

std::vector<Expiry> timers_until(const state::Run& run, Time now) {
    std::vector<Expiry> due;
    for (const auto& [id, timer] : run.timers()) {
        if (time_of(timer.expiry()) <= now) {
            due.push_back({time_of(timer.expiry()), timer.started_event_id(), id});
        }
    }
    std::sort(due.begin(), due.end());
    return due;
}

void fire_timers(Transition& transition, int& left) {
    for (const Expiry& expiry : timers_until(transition.run(), transition.now())) {
        if (left-- <= 0) {
            return;
        }
        HistoryEvent event = transition.event(EVENT_TYPE_TIMER_FIRED);
        auto& attributes = *event.mutable_timer_fired_event_attributes();
        attributes.set_timer_id(expiry.timer_id);
        attributes.set_started_event_id(expiry.event_id);
        transition.add(std::move(event));
    }
}

void time_out_activities(Transition& transition, int& left) {
    for (const ActivityDeadline& deadline : activity_deadlines(transition.run())) {
        if (deadline.at > transition.now() || left-- <= 0) {
            return;
        }
        if (still_stands(transition.run(), deadline)) {  // An earlier one may have ended it.
            time_out_activity(transition, deadline);
        }
    }
}

void dispatch_activities(Transition& transition) {
    std::vector<std::pair<std::int64_t, std::int32_t>> due;
    for (const auto& [id, activity] : transition.run().activities()) {
        if (activity.in_backoff() && !activity.has_pause() &&
            time_of(activity.scheduled_time()) <= transition.now()) {
            due.emplace_back(id, activity.stamp());
        }
    }
    std::sort(due.begin(), due.end());
    for (const auto& [id, stamp] : due) {
        transition.note(note::ActivityDispatched{id});
        transition.add_task({Task::Kind::activity, id, stamp});
    }
}

std::optional<Time> expiration(const state::Run& run) {
    if (!run.has_run_expiration()) {
        return std::nullopt;
    }
    return time_of(run.run_expiration());
}

bool execution_expired(const Transition& transition) {
    const Started& started = transition.run().started();
    return started.has_workflow_execution_expiration_time() &&
           time_of(started.workflow_execution_expiration_time()) <= transition.now();
}

void time_out_run(Transition& transition) {
    abandon_workflow_task(transition);
    transition.flush_buffer();
    RunRetry retry{.state = RETRY_STATE_TIMEOUT, .next = std::nullopt};
    if (!execution_expired(transition)) {
        Failure failure;
        failure.set_message("workflow timeout");
        failure.set_source("Server");
        failure.mutable_timeout_failure_info()->set_timeout_type(TIMEOUT_TYPE_START_TO_CLOSE);
        retry = retry_run(transition, failure);
        if (!retry.next) {
            retry.next = cron_run(transition, {.failure = &failure});
        }
    }
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT);
    auto& attributes = *event.mutable_workflow_execution_timed_out_event_attributes();
    attributes.set_retry_state(retry.state);
    if (retry.next) {
        attributes.set_new_execution_run_id(retry.next->run_id);
        transition.continue_with(*std::move(retry.next));
    }
    transition.add(std::move(event));
}

void take_earlier(std::optional<Time>& earliest, Time at) {
    earliest = earliest ? std::min(*earliest, at) : at;
}

}  // namespace

std::optional<Time> next_due(const state::Run& run) {
    if (run.phase() == state::PHASE_COMPLETED) {
        return std::nullopt;
    }
    std::optional<Time> earliest = expiration(run);
    if (in_first_backoff(run)) {
        take_earlier(earliest, time_of(run.execution_time()));
    }
    const auto deadline = workflow_task_deadline(run);
    if (deadline && !run.workflow_task().speculative()) {  // That one is in memory only.
        take_earlier(earliest, deadline->at);
    }
    for (const auto& [id, timer] : run.timers()) {
        take_earlier(earliest, time_of(timer.expiry()));
    }
    for (const auto& [id, activity] : run.activities()) {
        if (activity.in_backoff() && !activity.has_pause()) {
            take_earlier(earliest, time_of(activity.scheduled_time()));
        }
    }
    if (const auto deadlines = activity_deadlines(run); !deadlines.empty()) {
        take_earlier(earliest, deadlines.front().at);
    }
    return earliest;
}

void fire_due(Transition& transition) {
    if (!transition.open()) {
        return;
    }
    const auto end = expiration(transition.run());
    if (end && *end <= transition.now()) {
        return time_out_run(transition);
    }
    const auto task = workflow_task_deadline(transition.run());
    if (task && task->at <= transition.now()) {
        time_out_workflow_task(transition, task->timeout_type);
    }
    int left = transition.limits().timers_per_transition;
    fire_timers(transition, left);
    time_out_activities(transition, left);
    dispatch_activities(transition);
    if (in_first_backoff(transition.run()) &&
        time_of(transition.run().execution_time()) <= transition.now()) {
        end_first_backoff(transition);
    }
}

}  // namespace holdfast::server::history

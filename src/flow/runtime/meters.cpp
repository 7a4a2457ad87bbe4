#include "runtime/meters.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <holdfast/flow_engine/execution.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

// Workflows take from milliseconds to months.
const std::vector<double>& lifetime_bounds() {
    static const std::vector<double> bounds{
        0.01, 0.1, 1, 10, 60, 600, 3600, 21'600, 86'400, 604'800, 2'592'000};
    return bounds;
}

const std::vector<double>& length_bounds() {
    static const std::vector<double> bounds{5, 10, 20, 50, 100, 500, 1'000, 5'000, 10'000, 50'000};
    return bounds;
}

double seconds(std::chrono::nanoseconds time) {
    return std::max(std::chrono::duration<double>(time).count(), 0.0);
}

std::string_view starter_of(const TurnCommit::Begun& begun, const Execution* execution) {
    if (begun.parent) {
        return "parent";
    }
    const bool scheduled = execution != nullptr && execution->started().cron.has_value();
    return scheduled ? "schedule" : "client";
}

Counter counter(Metrics* metrics, std::string_view name, std::string_view help) {
    return metrics == nullptr ? Counter() : metrics->counter(name, help);
}

}  // namespace

Meters::Meters(Metrics* metrics)
    : turns(counter(metrics, "holdfast_flow_turns_total", "Turns that workflows took here.")),
      from_cache(
          counter(metrics, "holdfast_flow_turns_from_cache_total", "Turns that needed no replay.")),
      lost(counter(metrics,
                   "holdfast_flow_turns_lost_total",
                   "Turns that another process overtook, or that could not be committed.")),
      events_replayed(counter(
          metrics, "holdfast_flow_events_replayed_total", "Events that were read for a replay.")),
      commits(counter(metrics, "holdfast_flow_commits_total", "Commits of one or more turns.")),
      shadow_replays(counter(metrics,
                             "holdfast_flow_shadow_replays_total",
                             "Turns that were checked by a replay from scratch.")),
      poisoned(counter(metrics,
                       "holdfast_flow_poison_total",
                       "Workflows and activities that were given up after too many attempts.")),
      metrics_(metrics) {}

void Meters::started(std::string_view name, std::string_view version, std::string_view by) const {
    metrics_
        ->counter("holdfast_flow_starts_total",
                  "Executions that began.",
                  {{"workflow", name}, {"version", version}, {"by", by}})
        .add();
}

void Meters::committed(const TurnCommit& turn, const Execution* execution, Moment now) const {
    if (metrics_ == nullptr) {
        return;
    }
    if (turn.begun) {
        started(turn.begun->name, turn.begun->version, starter_of(*turn.begun, execution));
    }
    if ((!is_final(turn.status) && !turn.next) || execution == nullptr) {
        return;
    }
    const WorkflowStarted& code = execution->started();
    if (turn.next && !turn.next->start) {
        started(code.name, turn.next->version, "continue");
    }
    metrics_
        ->counter("holdfast_flow_ends_total",
                  "Executions that ended.",
                  {{"workflow", code.name},
                   {"version", code.version},
                   {"status", to_string(turn.status)}})
        .add();
    if (!turn.events.empty()) {
        if (const auto* failed = std::get_if<WorkflowFailed>(&turn.events.back().body)) {
            metrics_
                ->counter("holdfast_flow_failures_total",
                          "Executions that failed or were cancelled, by the kind of failure.",
                          {{"workflow", code.name},
                           {"version", code.version},
                           {"kind", to_string(failed->failure.kind)}})
                .add();
        }
    }
    metrics_
        ->histogram("holdfast_flow_duration_seconds",
                    "From the first event of an execution to its last.",
                    lifetime_bounds(),
                    {{"workflow", code.name}, {"status", to_string(turn.status)}})
        .observe(seconds(now - execution->begun()));
    metrics_
        ->histogram("holdfast_flow_history_events",
                    "How many events an execution had when it ended.",
                    length_bounds(),
                    {{"workflow", code.name}})
        .observe(static_cast<double>(execution->last_event()));
}

void Meters::ran(const ClaimedActivity& claim,
                 std::string_view outcome,
                 std::chrono::nanoseconds took) const {
    if (metrics_ == nullptr) {
        return;
    }
    metrics_
        ->counter("holdfast_flow_activities_total",
                  "Activities that ended.",
                  {{"activity", claim.task.name},
                   {"tag", claim.task.tag.value_or("")},
                   {"outcome", outcome}})
        .add();
    metrics_
        ->histogram("holdfast_flow_activity_duration_seconds",
                    "How long activities ran.",
                    latency_bounds(),
                    {{"activity", claim.task.name}})
        .observe(seconds(took));
    if (claim.attempt == 1) {
        metrics_
            ->histogram("holdfast_flow_schedule_to_start_seconds",
                        "How long activities waited for a worker.",
                        latency_bounds(),
                        {{"activity", claim.task.name}})
            .observe(seconds(claim.now - claim.queued.value_or(claim.now)));
    }
}

void Meters::taking(const Message& message, Moment now) const {
    const auto* timer = std::get_if<TimerMessage>(&message.body);
    if (metrics_ == nullptr || timer == nullptr) {
        return;
    }
    metrics_
        ->histogram("holdfast_flow_timer_lateness_seconds",
                    "How long after its moment a timer was taken.",
                    latency_bounds())
        .observe(seconds(now - Moment{milliseconds{timer->fire_at_ms}}));
}

void Meters::blocked(BlockKind kind) const {
    if (metrics_ != nullptr) {
        metrics_
            ->counter("holdfast_flow_turns_blocked_total",
                      "Turns that could not be taken here, by the reason.",
                      {{"kind", to_string(kind)}})
            .add();
    }
}

void Meters::failed(std::string_view operation) const {
    if (metrics_ != nullptr) {
        metrics_
            ->counter("holdfast_flow_store_errors_total",
                      "Calls of the store that failed, after the retries.",
                      {{"operation", operation}})
            .add();
    }
}

void Meters::measured(const SystemStats& stats, std::size_t cached_instances) const {
    if (metrics_ == nullptr) {
        return;
    }
    const auto set = [&](std::string_view name, std::string_view help, double value) {
        metrics_->gauge(name, help).set(value);
    };
    set("holdfast_flow_active_instances",
        "Instances in the store that have not ended.",
        static_cast<double>(stats.pending + stats.running));
    set("holdfast_flow_messages_waiting",
        "Messages in the store, also those not visible yet.",
        static_cast<double>(stats.messages));
    set("holdfast_flow_activities_waiting",
        "Activities in the store that wait or run.",
        static_cast<double>(stats.activities));
    set("holdfast_flow_blocked_instances",
        "Instances that no worker could advance because code and history do not fit.",
        static_cast<double>(stats.blocked));
    set("holdfast_flow_unserved_instances",
        "Instances that wait for a worker that has their workflow.",
        static_cast<double>(stats.unserved));
    set("holdfast_flow_unserved_activities",
        "Activities that wait for a worker that has them.",
        static_cast<double>(stats.unserved_activities));
    set("holdfast_flow_oldest_mail_seconds",
        "How long the oldest mail that can be seen has waited.",
        seconds(stats.oldest_mail));
    set("holdfast_flow_cached_instances",
        "Coroutines that this process keeps between turns.",
        static_cast<double>(cached_instances));
}

}  // namespace holdfast::flow

#include "flow/text.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <holdfast/flow/client.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::app {
namespace {

using std::chrono::milliseconds;

template <class... F>
struct Cases : F... {
    using F::operator()...;
};

std::string joined(std::string_view first, std::string_view second) {
    if (first.empty() || second.empty()) {
        return std::string(first.empty() ? second : first);
    }
    return fmt::format("{} {}", first, second);
}

std::string text_of(const std::optional<flow::Payload>& payload, std::string_view otherwise) {
    return payload ? payload->json : std::string(otherwise);
}

std::string describe_started(const flow::WorkflowStarted& started) {
    std::string text = fmt::format("{} {}", started.name, started.version);
    text += started.cron ? fmt::format(" (by {})", *started.cron) : "";
    if (!started.resets.empty()) {
        const flow::ResetPoint& reset = started.resets.back();
        text += fmt::format(" (execution {} reset to event {})", reset.execution, reset.event);
    }
    text += " " + started.input.json;
    text += started.parent ? " for " + started.parent->instance : "";
    return text;
}

std::string describe_update(const flow::UpdateHandled& update) {
    return fmt::format("{} {} -> {}",
                       update.name,
                       update.input.json,
                       update.failure ? update.failure->text() : text_of(update.result, "nothing"));
}

std::string describe_activity(const flow::ActivityScheduled& activity) {
    std::string text = joined(activity.name, activity.input.json);
    text += activity.session ? " session " + *activity.session : "";
    text += activity.tag ? " tag " + *activity.tag : "";
    text += activity.start_within_ms
                ? " to begin within " + elapsed(milliseconds{*activity.start_within_ms})
                : "";
    text += activity.ahead_ms ? " ahead by " + elapsed(milliseconds{*activity.ahead_ms}) : "";
    text += activity.retry ? fmt::format(" up to {} attempts", activity.retry->attempts) : "";
    return text;
}

std::string attempt_text(const std::optional<int>& attempt) {
    return attempt ? fmt::format("(attempt {})", *attempt) : std::string{};
}

std::string describe_completed(const flow::ActivityCompleted& e) {
    std::string text = joined(e.result.json, attempt_text(e.attempt));
    text += e.last_failure ? " after " + e.last_failure->text() : "";
    return text;
}

}  // namespace

flow::Moment moment_of(std::int64_t time_ms) {
    return flow::Moment{milliseconds{time_ms}};
}

Json payload_json(std::string_view text) {
    Json value = Json::parse(text, nullptr, false);
    if (value.is_discarded()) {
        value = std::string(text);
    }
    return value;
}

Json to_json(const flow::FailureInfo& failure) {
    return payload_json(flow::encode(failure));
}

Json to_json(const flow::InstanceInfo& info) {
    Json json{{"id", info.instance},
              {"workflow", info.name},
              {"version", info.version},
              {"execution", info.execution},
              {"status", flow::to_string(info.status)},
              {"suspended", info.suspended},
              {"custom_status",
               info.custom_status ? payload_json(info.custom_status->json) : Json(nullptr)}};
    if (info.status == flow::Status::completed) {
        json["output"] = payload_json(info.output);
    } else if (is_final(info.status)) {
        json["failure"] = payload_json(info.output);
    }
    if (info.parent) {
        json["parent"] = {{"id", info.parent->instance},
                          {"execution", info.parent->execution},
                          {"event", info.parent->event}};
    }
    json["events"] = info.last_event;
    json["history_bytes"] = info.history_bytes;
    json["created_ms"] = info.created.time_since_epoch().count();
    json["updated_ms"] = info.updated.time_since_epoch().count();
    if (info.completed) {
        json["completed_ms"] = info.completed->time_since_epoch().count();
    }
    if (info.cron) {
        json["cron"] = *info.cron;
    }
    if (info.due) {
        json["due_ms"] = info.due->time_since_epoch().count();
    }
    if (info.blocked) {
        json["blocked"] = {{"kind", flow::to_string(info.blocked->kind)},
                           {"reason", info.blocked->reason},
                           {"build", info.blocked->build},
                           {"since_ms", info.blocked->since.time_since_epoch().count()},
                           {"until_ms", info.blocked->until.time_since_epoch().count()},
                           {"tries", info.blocked->tries}};
    }
    if (info.unserved_activity) {
        json["unserved_activity"] = *info.unserved_activity;
    }
    return json;
}

Json to_json(const flow::PendingActivity& activity) {
    Json json{{"execution", activity.key.execution},
              {"event", activity.key.event},
              {"name", activity.name},
              {"state", activity.running ? "running" : "waiting"},
              {"attempt", activity.attempt},
              {"failures", activity.failures},
              {"queued_ms", activity.queued.time_since_epoch().count()},
              {"due_ms", activity.due.time_since_epoch().count()}};
    if (activity.tag) {
        json["tag"] = *activity.tag;
    }
    if (activity.session) {
        json["session"] = *activity.session;
    }
    if (activity.retry) {
        json["retry"] = payload_json(flow::encode(*activity.retry));
    }
    if (activity.last_failure) {
        json["last_failure"] = to_json(*activity.last_failure);
    }
    if (activity.heartbeat) {
        json["heartbeat"] = payload_json(activity.heartbeat->json);
    }
    return json;
}

Json to_json(const flow::Event& event) {
    return payload_json(flow::encode(event));
}

Json to_json(const flow::DeleteCounts& counts) {
    return {{"instances", counts.instances},
            {"executions", counts.executions},
            {"events", counts.events},
            {"messages", counts.messages}};
}

std::string status_text(const flow::InstanceInfo& info) {
    std::string text(flow::to_string(info.status));
    text += info.suspended ? ", suspended" : "";
    if (info.blocked) {
        text += info.blocked->kind == flow::BlockKind::unregistered ? ", unserved" : ", blocked";
    } else if (info.unserved_activity) {
        text += ", unserved";
    }
    return text;
}

std::string summary_of(const flow::InstanceInfo& info) {
    if (info.status == flow::Status::completed) {
        return info.output;
    }
    if (is_final(info.status)) {
        return flow::Client::failure_of(info).text();
    }
    if (info.blocked) {
        return fmt::format("{}: {}", flow::to_string(info.blocked->kind), info.blocked->reason);
    }
    if (info.unserved_activity) {
        return fmt::format("no worker that looked has the activity {}", *info.unserved_activity);
    }
    return text_of(info.custom_status, "");
}

std::string attempt_of(const flow::PendingActivity& activity) {
    std::string text = fmt::format("attempt {} ", activity.attempt);
    if (activity.running) {
        text += "runs";
    } else if (activity.due > activity.now) {
        text += "in " + elapsed(activity.due - activity.now);
    } else {
        text += "waits for a worker";
    }
    if (activity.retry && activity.failures > 0) {
        text += fmt::format(", {} of {} failed", activity.failures, activity.retry->attempts);
    }
    text += activity.last_failure ? ", last failure: " + activity.last_failure->text() : "";
    return text;
}

std::string describe(const flow::EventBody& body) {
    using namespace flow;
    const Cases cases{
        [](const WorkflowStarted& e) { return describe_started(e); },
        [](const WorkflowCompleted& e) { return e.output.json; },
        [](const WorkflowFailed& e) { return e.failure.text(); },
        [](const WorkflowContinued& e) { return joined(e.version, e.input.json); },
        [](const CancelRequested& e) { return e.reason; },
        [](const WorkflowSuspended& e) { return e.reason; },
        [](const WorkflowResumed&) { return std::string{}; },
        [](const TurnContinued&) { return std::string{}; },
        [](const UpdateHandled& e) { return describe_update(e); },
        [](const ActivityScheduled& e) { return describe_activity(e); },
        [](const ActivityCompleted& e) { return describe_completed(e); },
        [](const ActivityFailedEvent& e) {
            return joined(e.failure.text(), attempt_text(e.attempt));
        },
        [](const TimerCreated& e) { return "until " + moment_text(moment_of(e.fire_at_ms)); },
        [](const TimerFired&) { return std::string{}; },
        [](const ChildScheduled& e) { return joined(e.name + " " + e.instance, e.input.json); },
        [](const ChildCompleted& e) { return e.result.json; },
        [](const ChildFailedEvent& e) { return e.failure.text(); },
        [](const WorkflowDetached& e) { return joined(e.name + " " + e.instance, e.input.json); },
        [](const MessageAwaited& e) { return e.channel; },
        [](const MessageReceived& e) { return joined(e.channel, e.data.json); },
        [](const SignalAwaited& e) { return e.name; },
        [](const SignalReceived& e) { return joined(e.name, e.data.json); },
        [](const OperationCancelled& e) { return joined(to_string(e.operation), e.reason); },
        [](const StatusUpdated& e) { return text_of(e.status, "cleared"); },
        [](const KvSet& e) { return joined(e.key, e.value.json); },
        [](const KvErased& e) { return e.key; },
        [](const KvCleared&) { return std::string{}; },
        [](const PatchRecorded& e) { return e.change; },
        [](const AttributeSet& e) { return joined(e.name, text_of(e.value, "removed")); }};
    return std::visit(cases, body);
}

}  // namespace holdfast::app

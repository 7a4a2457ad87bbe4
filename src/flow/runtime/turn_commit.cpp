// Converts the result of a turn to what is stored.
#include <algorithm>
#include <variant>

#include "runtime/activity_pool.hpp"
#include "runtime/turns.hpp"

#include <holdfast/base/cron.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

Status status_after(Ending ending) {
    switch (ending) {
        case Ending::completed:
            return Status::completed;
        case Ending::failed:
            return Status::failed;
        case Ending::cancelled:
            return Status::cancelled;
        case Ending::continued:
            return Status::continued;
        case Ending::none:
            break;
    }
    return Status::running;
}

struct ToKvChange {
    KvChange operator()(const KvSet& set) const {
        return {.what = KvChange::What::set, .key = set.key, .value = set.value};
    }
    KvChange operator()(const KvErased& erased) const {
        return {.what = KvChange::What::erase, .key = erased.key};
    }
    KvChange operator()(const KvCleared&) const { return {.what = KvChange::What::clear}; }
};

void add_state(TurnCommit& commit, Turn& turn) {
    if (turn.status) {
        commit.custom_status = StatusChange{std::move(turn.status->status)};
        commit.status_changes = turn.status_changes;
    }
    commit.suspended = turn.suspended;
    for (const auto& change : turn.kv) {
        commit.kv.push_back(std::visit(ToKvChange{}, change));
    }
    for (AttributeSet& attribute : turn.attributes) {
        commit.attributes.push_back({std::move(attribute.name), std::move(attribute.value)});
    }
    for (auto& [request, result] : turn.replies) {
        const Payload* const value = std::get_if<Payload>(&result);
        commit.replies.push_back(
            {.request = request,
             .failed = value == nullptr,
             .body = value != nullptr ? value->json : encode(std::get<FailureInfo>(result))});
    }
}

void add_mail(TurnCommit& commit, const Turn& turn) {
    for (const auto& [event, fire_at_ms] : turn.timers) {
        commit.messages.push_back({.instance = commit.instance,
                                   .message = Message{.execution = commit.execution,
                                                      .body = TimerMessage{event, fire_at_ms}},
                                   .visible_at_ms = fire_at_ms});
    }
    for (const auto& [child, reason] : turn.cancelled_children) {
        commit.messages.push_back(
            {.instance = child,
             .message = Message{.execution = 0, .body = CancelMessage{reason, false, 0}}});
    }
    if (turn.cut) {
        commit.messages.push_back(
            {.instance = commit.instance,
             .message = Message{.execution = commit.execution, .body = ContinueMessage{}}});
    }
    commit.cancelled_timers = turn.cancelled_timers;
    for (const EventId event : turn.cancelled_activities) {
        commit.cancelled_activities.push_back({commit.instance, commit.execution, event});
    }
}

void add_starts(PreparedTurn& prepared, const Turn& turn) {
    TurnCommit& commit = prepared.commit;
    const auto add = [&](const std::string& instance, StartMessage start) {
        const Uuid token = Uuid::v4();
        prepared.started.emplace_back(instance, token);
        prepared.started_workflows.push_back(start.name);
        commit.starts.push_back({.instance = instance, .start = std::move(start), .token = token});
    };
    for (const auto& [event, child] : turn.children) {
        add(child.instance,
            StartMessage{.name = child.name,
                         .version = child.version,
                         .input = child.input,
                         .parent = ParentLink{commit.instance, commit.execution, event}});
    }
    for (const WorkflowDetached& detached : turn.detached) {
        add(detached.instance,
            StartMessage{.name = detached.name,
                         .version = detached.version,
                         .input = detached.input,
                         .parent = std::nullopt});
    }
}

NextExecution next_execution(const WorkflowStarted& started,
                             const TurnCommit& commit,
                             Turn& turn,
                             const std::optional<Payload>& status,
                             const Registry& registry,
                             std::int64_t now_ms) {
    const WorkflowContinued& continued = turn.continued();
    NextExecution next;
    next.execution = commit.execution + 1;
    next.version = !continued.version.empty()
                       ? continued.version
                       : registry.version_for_start(started.name).value_or(started.version);
    EventId id = 0;
    const auto add = [&](EventBody body) {
        next.events.push_back(
            Event{.id = ++id, .source = 0, .time_ms = now_ms, .body = std::move(body)});
    };
    add(WorkflowStarted{.name = started.name,
                        .version = next.version,
                        .input = continued.input,
                        .parent = started.parent,
                        .status = status,
                        .cron = started.cron});
    for (MessageReceived& message : turn.carried) {
        add(std::move(message));
    }
    return next;
}

// The next run by the schedule, with the same input. Its version is chosen when it is due.
NextExecution next_run(const WorkflowStarted& started,
                       const std::string& cron,
                       const TurnCommit& commit,
                       Moment begun,
                       Moment now) {
    const Moment due = Cron(cron).next(begun, now);
    return {.execution = commit.execution + 1,
            .version = started.version,
            .start = StartMessage{.name = started.name,
                                  .version = {},
                                  .input = started.input,
                                  .parent = started.parent,
                                  .cron = cron},
            .start_at_ms = due.time_since_epoch().count()};
}

}  // namespace

OutgoingMessage start_deadline(const ActivityKey& key, std::int64_t limit_ms, Moment now) {
    return {
        .instance = key.instance,
        .message = Message{.execution = key.execution, .body = StartDeadline{key.event, limit_ms}},
        .visible_at_ms = later(now, milliseconds{limit_ms}).time_since_epoch().count()};
}

PreparedTurn TurnRunner::prepare(Instance& instance,
                                 const TurnContext& turn_context,
                                 Turn turn,
                                 std::vector<ActivityEnd> finished) {
    PreparedTurn prepared;
    prepared.instance = &instance;
    prepared.bytes = instance.execution ? instance.execution->bytes() : 0;
    TurnCommit& commit = prepared.commit;
    commit.instance = instance.id;
    commit.token = turn_context.token;
    commit.next_token = Uuid::v4();
    commit.leased = turn_context.leased;
    commit.creates = turn_context.creates;
    commit.execution = turn_context.execution;
    commit.last_event = turn_context.last_event;
    commit.status = status_after(turn.ending);
    // After a failure the code may not have reached the end of its history.
    commit.names_all_activities = turn.ending == Ending::completed;
    for (const std::size_t taken : turn.taken) {
        if (taken < turn_context.mail.size() && !turn_context.creates) {
            commit.consumed.push_back(turn_context.mail[taken].position);
        }
    }
    for (const ActivityEnd& end : finished) {
        commit.finished.push_back({.key = end.key, .token = end.token});
    }
    prepared.answers = std::move(finished);
    if (!turn.events.empty()) {
        if (const auto* begun = std::get_if<WorkflowStarted>(&turn.events.front().body)) {
            commit.begun = TurnCommit::Begun{
                .name = begun->name, .version = begun->version, .parent = begun->parent};
        }
    }
    add_activities(prepared, turn_context, turn);
    add_starts(prepared, turn);
    add_mail(commit, turn);
    add_ending(prepared, turn_context, turn);
    add_state(commit, turn);
    commit.events = std::move(turn.events);
    return prepared;
}

// Activities that this process can run are claimed in the same commit, so that no poll is needed.
void TurnRunner::add_activities(PreparedTurn& prepared,
                                const TurnContext& turn_context,
                                Turn& turn) {
    TurnCommit& commit = prepared.commit;
    for (auto& [event, scheduled] : turn.activities) {
        ActivityTask task{.key = {commit.instance, commit.execution, event},
                          .name = std::move(scheduled.name),
                          .input = std::move(scheduled.input),
                          .workflow = prepared.instance->execution->started().name,
                          .version = prepared.instance->execution->started().version,
                          .session = std::move(scheduled.session),
                          .tag = std::move(scheduled.tag),
                          .ahead = milliseconds{scheduled.ahead_ms.value_or(0)},
                          .must_begin = scheduled.start_within_ms.has_value(),
                          .retry = std::move(scheduled.retry)};
        if (!task.session && activities_.reserve(task)) {
            task.claim = Uuid::v4();
            task.claim_lease = activities_.lease();
            prepared.local.push_back(ClaimedActivity{
                .task = task, .token = task.claim, .attempt = 1, .now = turn_context.now});
        } else {
            prepared.activities_waiting = true;
        }
        if (scheduled.start_within_ms) {  // Also here: the process may die before it begins.
            commit.messages.push_back(
                start_deadline(task.key, *scheduled.start_within_ms, turn_context.now));
        }
        commit.activities.push_back(std::move(task));
    }
}

void TurnRunner::add_ending(PreparedTurn& prepared, const TurnContext& turn_context, Turn& turn) {
    if (turn.ending == Ending::none) {
        return;
    }
    TurnCommit& commit = prepared.commit;
    Instance& instance = *prepared.instance;
    std::optional<ParentLink> parent;
    if (instance.execution) {
        parent = instance.execution->started().parent;
    } else if (const auto info = provider_.info(instance.id)) {
        parent = info->parent;
    }
    std::variant<Payload, FailureInfo> result;
    if (turn.ending == Ending::continued) {
        commit.output = turn.continued().input.json;
        commit.next = next_execution(instance.execution->started(),
                                     commit,
                                     turn,
                                     instance.execution->status(),
                                     registry_,
                                     turn_context.now.time_since_epoch().count());
        if (turn.cancel) {
            commit.messages.push_back(
                {.instance = commit.instance,
                 .message = Message{.execution = 0, .body = std::move(*turn.cancel)}});
        }
        return;
    }
    if (turn.ending == Ending::completed) {
        result = turn.output();
        commit.output = turn.output().json;
    } else {
        result = turn.failure();
        commit.output = encode(turn.failure());
    }
    // A cancel request for a run ends the schedule, even if that run still completed.
    if (turn.ending != Ending::cancelled && instance.execution &&
        !instance.execution->cancel_requested()) {
        const WorkflowStarted& started = instance.execution->started();
        if (started.cron) {
            commit.next = next_run(
                started, *started.cron, commit, instance.execution->begun(), turn_context.now);
        }
    }
    if (parent) {
        commit.messages.push_back(
            {.instance = parent->instance,
             .message = Message{.execution = parent->execution,
                                .body = ChildAnswer{parent->event, std::move(result)}}});
    }
}

}  // namespace holdfast::flow

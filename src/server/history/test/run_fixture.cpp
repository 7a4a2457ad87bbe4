#include "history/test/run_fixture.hpp"

#include <algorithm>

#include "history/apply.hpp"
#include "history/checker/checker.hpp"
#include "history/due.hpp"
#include "history/projection.hpp"
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>

namespace holdfast::server::history::tests {

namespace {

// "ActivityTaskScheduled" of EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, without the words that all have.
std::string short_name(EventType type) {
    std::string name;
    bool capital = true;
    for (const char letter : EventType_Name(type).substr(std::string{"EVENT_TYPE_"}.size())) {
        if (letter == '_') {
            capital = true;
            continue;
        }
        name.push_back(capital ? letter : static_cast<char>(letter - 'A' + 'a'));
        capital = false;
    }
    const std::string prefix = "WorkflowExecution";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

}  // namespace

RunFixture::RunFixture() : run_{new_run("namespace-id", "run-1")} {}

bool RunFixture::transition(const std::function<std::optional<Refusal>(Transition&)>& change) {
    Transition transition{run_, now_, source_, limits};
    refusal = change(transition);
    Finished finished = finish(transition);
    if (finished.refusal) {
        refusal = finished.refusal;
    }
    last = std::move(finished.result);
    run_ = last.run;
    batches_.insert(batches_.end(), last.batches.begin(), last.batches.end());
    check_rebuild();
    return !refusal;
}

void RunFixture::check_rebuild() const {
    EXPECT_THAT(problems_of(batches_), testing::IsEmpty()) << history();
    state::Run told = rebuild(new_run("namespace-id", run_.run_id()), batches_);
    for (const auto& event : run_.buffered()) {
        apply(told, event);
    }
    std::string difference;
    google::protobuf::util::MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&difference);
    EXPECT_TRUE(differencer.Compare(projection(told), projection(run_))) << difference;
}

void RunFixture::start() {
    Started started;
    started.set_workflow_id("order-7");
    started.mutable_workflow_type()->set_name("Order");
    started.mutable_task_queue()->set_name("queue");
    start(started);
}

void RunFixture::start_again() {
    run_ = new_run("namespace-id", "run-1");
    batches_.clear();
    start();
}

void RunFixture::start(const Started& started) {
    Started complete = started;
    complete.set_workflow_id("order-7");
    complete.mutable_workflow_type()->set_name("Order");
    complete.mutable_task_queue()->set_name("queue");
    normalise_timeouts(complete, limits);
    transition([&](Transition& t) -> std::optional<Refusal> {
        start_run(t, complete, "start-request");
        return std::nullopt;
    });
}

bool RunFixture::poll(const std::string& queue, const std::string& request_id) {
    const Poll poll{.scheduled_event_id = run_.workflow_task().scheduled_event_id(),
                    .stamp = run_.workflow_task().stamp(),
                    .request_id = request_id,
                    .identity = "worker",
                    .queue = queue};
    return transition([&](Transition& t) { return start_workflow_task(t, poll); });
}

bool RunFixture::complete(std::vector<Command> commands, bool force_new) {
    temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest request;
    request.set_identity("worker");
    request.set_force_create_new_workflow_task(force_new);
    for (Command& command : commands) {
        *request.add_commands() = std::move(command);
    }
    if (!sticky_queue.empty()) {
        auto& sticky = *request.mutable_sticky_attributes();
        sticky.mutable_worker_task_queue()->set_name(sticky_queue);
        *sticky.mutable_schedule_to_start_timeout() = to_duration(5s);
    }
    const state::WorkflowTask& task = run_.workflow_task();
    const TaskRef ref{.scheduled_event_id = task.scheduled_event_id(),
                      .started_event_id = task.started_event_id(),
                      .attempt = task.attempt(),
                      .started_time = time_of(task.started_time())};
    return transition(
        [&](Transition& t) { return complete_workflow_task(t, ref, request, scene); });
}

bool RunFixture::fail_task(WorkflowTaskFailedCause cause) {
    const state::WorkflowTask& task = run_.workflow_task();
    const TaskRef ref{.scheduled_event_id = task.scheduled_event_id(),
                      .started_event_id = task.started_event_id(),
                      .attempt = task.attempt(),
                      .started_time = std::nullopt};
    TaskFailure failure;
    failure.cause = cause;
    failure.failure = application_failure("Broken");
    failure.identity = "worker";
    return transition([&](Transition& t) { return report_workflow_task_failed(t, ref, failure); });
}

bool RunFixture::signal(const std::string& name, const std::string& request_id) {
    temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes signal;
    signal.set_signal_name(name);
    signal.set_request_id(request_id);
    return transition([&](Transition& t) { return signal_run(t, signal); });
}

void RunFixture::cancel() {
    transition([&](Transition& t) -> std::optional<Refusal> {
        request_cancel(t, {});
        return std::nullopt;
    });
}

bool RunFixture::terminate() {
    temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes request;
    request.set_reason("enough");
    return transition([&](Transition& t) { return terminate_run(t, request); });
}

bool RunFixture::start_activity(std::int64_t scheduled, const std::string& request_id) {
    const auto pending = run_.activities().find(scheduled);
    const int stamp = pending == run_.activities().end() ? 0 : pending->second.stamp();
    return transition([&](Transition& t) {
        return history::start_activity(t, scheduled, stamp, "worker", request_id);
    });
}

bool RunFixture::complete_activity(std::int64_t scheduled, std::optional<int> attempt) {
    return transition([&](Transition& t) {
        return history::complete_activity(t, {scheduled, attempt}, "worker", nullptr);
    });
}

bool RunFixture::fail_activity(std::int64_t scheduled, const Failure& failure) {
    return transition([&](Transition& t) {
        return history::fail_activity(t, {scheduled, std::nullopt}, "worker", failure);
    });
}

bool RunFixture::cancel_activity(std::int64_t scheduled) {
    return transition([&](Transition& t) {
        return history::cancel_activity(t, {scheduled, std::nullopt}, "worker", nullptr);
    });
}

std::optional<HeartbeatReply> RunFixture::heartbeat(std::int64_t scheduled,
                                                    const std::string& details) {
    temporal::api::common::v1::Payloads payloads;
    payloads.add_payloads()->set_data(details);
    std::optional<HeartbeatReply> reply;
    transition([&](Transition& t) -> std::optional<Refusal> {
        const auto answer = heartbeat_activity(t, {scheduled, std::nullopt}, payloads);
        if (const auto* refused = std::get_if<Refusal>(&answer)) {
            return *refused;
        }
        reply = std::get<HeartbeatReply>(answer);
        return std::nullopt;
    });
    return reply;
}

bool RunFixture::reset(const ResetOptions& options) {
    refusal = refuse_reset_point(run_, options.finish_event_id);
    if (refusal) {
        return false;
    }
    const auto point = [&] {
        return std::find_if(batches_.begin(), batches_.end(), [&](const History& batch) {
            return batch.events(0).event_id() >= options.finish_event_id;
        });
    };
    const Or<state::Run> made =
        rebuild_until(run_, std::vector(batches_.begin(), point()), options, "run-2");
    if (const auto* refused = std::get_if<Refusal>(&made)) {
        refusal = *refused;
        return false;
    }
    transition([&](Transition& t) -> std::optional<Refusal> {
        t.note(note::WasReset{"run-2"});
        if (t.open()) {
            t.note(note::ClosedByReset{});
            return terminate_run(t, reset_termination(options.reason));
        }
        return std::nullopt;
    });
    base = run_;
    const std::vector<History> rest{point(), batches_.end()};
    batches_.erase(point(), batches_.end());
    run_ = std::get<state::Run>(made);
    return transition([&](Transition& t) -> std::optional<Refusal> {
        begin_reset(t, base, options);
        for (const History& batch : rest) {
            for (const HistoryEvent& event : batch.events()) {
                if (auto refused = reapply_event(t, event, options, true)) {
                    return refused;
                }
            }
        }
        return end_reset(t, options);
    });
}

void RunFixture::advance(Span span) {
    const Time until = now_ + span;
    const auto next = [this] {  // A speculative task has an alarm of its own.
        auto due = next_due(run_);
        const auto task = workflow_task_deadline(run_);
        return task && (!due || task->at < *due) ? std::optional(task->at) : due;
    };
    for (auto due = next(); due && *due <= until; due = next()) {
        now_ = std::max(now_, *due);
        transition([](Transition& t) -> std::optional<Refusal> {
            fire_due(t);
            return std::nullopt;
        });
    }
    now_ = until;
}

std::string RunFixture::history() const {
    std::string text;
    for (const History& batch : batches_) {
        for (const HistoryEvent& event : batch.events()) {
            text += (text.empty() ? "" : ", ") + std::to_string(event.event_id()) + " " +
                    short_name(event.event_type());
        }
    }
    return text;
}

const HistoryEvent& RunFixture::event(std::int64_t id) const {
    for (const History& batch : batches_) {
        for (const HistoryEvent& event : batch.events()) {
            if (event.event_id() == id) {
                return event;
            }
        }
    }
    ADD_FAILURE() << "there is no event " << id << " in " << history();
    return HistoryEvent::default_instance();
}

std::vector<Task::Kind> RunFixture::made() const {
    std::vector<Task::Kind> kinds;
    kinds.reserve(last.tasks.size());
    for (const Task& task : last.tasks) {
        kinds.push_back(task.kind);
    }
    return kinds;
}

Command schedule_activity_command(const std::string& id,
                                  Span start_to_close,
                                  Span schedule_to_close) {
    Command command;
    command.set_command_type(COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK);
    auto& attributes = *command.mutable_schedule_activity_task_command_attributes();
    attributes.set_activity_id(id);
    attributes.mutable_activity_type()->set_name("Charge");
    attributes.mutable_task_queue()->set_name("queue");
    *attributes.mutable_start_to_close_timeout() = to_duration(start_to_close);
    *attributes.mutable_schedule_to_close_timeout() = to_duration(schedule_to_close);
    return command;
}

Command cancel_activity_command(std::int64_t scheduled) {
    Command command;
    command.set_command_type(COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK);
    command.mutable_request_cancel_activity_task_command_attributes()->set_scheduled_event_id(
        scheduled);
    return command;
}

Command start_timer_command(const std::string& id, Span span) {
    Command command;
    command.set_command_type(COMMAND_TYPE_START_TIMER);
    command.mutable_start_timer_command_attributes()->set_timer_id(id);
    *command.mutable_start_timer_command_attributes()->mutable_start_to_fire_timeout() =
        to_duration(span);
    return command;
}

Command cancel_timer_command(const std::string& id) {
    Command command;
    command.set_command_type(COMMAND_TYPE_CANCEL_TIMER);
    command.mutable_cancel_timer_command_attributes()->set_timer_id(id);
    return command;
}

Command start_child_command(const std::string& workflow_id, ParentClosePolicy policy) {
    Command command;
    command.set_command_type(COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION);
    auto& attributes = *command.mutable_start_child_workflow_execution_command_attributes();
    attributes.set_workflow_id(workflow_id);
    attributes.mutable_workflow_type()->set_name("Child");
    attributes.set_parent_close_policy(policy);
    return command;
}

Command continue_as_new_command() {
    Command command;
    command.set_command_type(COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION);
    command.mutable_continue_as_new_workflow_execution_command_attributes();
    return command;
}

Command marker_command(const std::string& name) {
    Command command;
    command.set_command_type(COMMAND_TYPE_RECORD_MARKER);
    command.mutable_record_marker_command_attributes()->set_marker_name(name);
    return command;
}

Command complete_command() {
    Command command;
    command.set_command_type(COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION);
    command.mutable_complete_workflow_execution_command_attributes();
    return command;
}

Command fail_command(const std::string& type, bool non_retryable) {
    Command command;
    command.set_command_type(COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION);
    *command.mutable_fail_workflow_execution_command_attributes()->mutable_failure() =
        application_failure(type, non_retryable);
    return command;
}

Failure application_failure(const std::string& type, bool non_retryable) {
    Failure failure;
    failure.set_message("it did not work");
    failure.mutable_application_failure_info()->set_type(type);
    failure.mutable_application_failure_info()->set_non_retryable(non_retryable);
    return failure;
}

}  // namespace holdfast::server::history::tests

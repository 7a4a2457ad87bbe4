#include "engine/test/server_fixture.hpp"

namespace holdfast::server::engine::tests {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 10 names of it.

std::string short_name(EventType type) {
    constexpr std::size_t prefix = std::string_view("EVENT_TYPE_").size();
    std::string name;
    bool upper = true;
    for (const char letter : EventType_Name(type).substr(prefix)) {
        if (letter == '_') {
            upper = true;
            continue;
        }
        name += upper ? letter : static_cast<char>(std::tolower(letter));
        upper = false;
    }
    constexpr std::string_view run = "WorkflowExecution";
    return name.starts_with(run) ? name.substr(run.size()) : name;
}

}  // namespace

ServerTest::ServerTest() : process(std::make_unique<Process>(db, clock, log, limits)) {}

void ServerTest::restart() {
    process.reset();
    process = std::make_unique<Process>(db, clock, log, limits);
    process->executor.run_all();
}

void ServerTest::advance(std::chrono::nanoseconds by) {
    process->alarms.advance(by);
    process->executor.run_all();
}

api::StartWorkflowExecutionResponse ServerTest::start(const std::string& workflow_id,
                                                      const std::string& request_id) {
    api::StartWorkflowExecutionRequest request;
    request.set_namespace_("default");
    request.set_workflow_id(workflow_id);
    request.set_request_id(request_id);
    request.mutable_workflow_type()->set_name("Order");
    request.mutable_task_queue()->set_name("queue");
    request.mutable_input()->add_payloads()->set_data("\"input\"");
    return begin<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request).response();
}

Pending<api::PollWorkflowTaskQueueResponse> ServerTest::poll(const std::string& queue) {
    api::PollWorkflowTaskQueueRequest request;
    request.set_namespace_("default");
    request.set_identity("worker");
    request.mutable_task_queue()->set_name(queue);
    return begin<api::PollWorkflowTaskQueueResponse>("PollWorkflowTaskQueue", request);
}

Pending<api::PollActivityTaskQueueResponse> ServerTest::poll_activity() {
    api::PollActivityTaskQueueRequest request;
    request.set_namespace_("default");
    request.set_identity("worker");
    request.mutable_task_queue()->set_name("queue");
    return begin<api::PollActivityTaskQueueResponse>("PollActivityTaskQueue", request);
}

Pending<api::RespondWorkflowTaskCompletedResponse> ServerTest::complete(
    const api::PollWorkflowTaskQueueResponse& task, std::vector<Command> commands) {
    api::RespondWorkflowTaskCompletedRequest request;
    request.set_namespace_("default");
    request.set_identity("worker");
    request.set_task_token(task.task_token());
    for (Command& command : commands) {
        *request.add_commands() = std::move(command);
    }
    return begin<api::RespondWorkflowTaskCompletedResponse>("RespondWorkflowTaskCompleted",
                                                            request);
}

Pending<api::RespondActivityTaskCompletedResponse> ServerTest::complete(
    const api::PollActivityTaskQueueResponse& task) {
    api::RespondActivityTaskCompletedRequest request;
    request.set_namespace_("default");
    request.set_identity("worker");
    request.set_task_token(task.task_token());
    request.mutable_result()->add_payloads()->set_data("\"done\"");
    return begin<api::RespondActivityTaskCompletedResponse>("RespondActivityTaskCompleted",
                                                            request);
}

Pending<api::SignalWorkflowExecutionResponse> ServerTest::signal(const std::string& workflow_id,
                                                                 const std::string& name,
                                                                 const std::string& request_id) {
    api::SignalWorkflowExecutionRequest request;
    request.set_namespace_("default");
    request.mutable_workflow_execution()->set_workflow_id(workflow_id);
    request.set_signal_name(name);
    request.set_request_id(request_id);
    return begin<api::SignalWorkflowExecutionResponse>("SignalWorkflowExecution", request);
}

std::string ServerTest::history(const std::string& workflow_id, const std::string& run_id) {
    api::GetWorkflowExecutionHistoryRequest request;
    request.set_namespace_("default");
    request.mutable_execution()->set_workflow_id(workflow_id);
    request.mutable_execution()->set_run_id(run_id);
    const auto answer =
        begin<api::GetWorkflowExecutionHistoryResponse>("GetWorkflowExecutionHistory", request);
    if (answer.refusal() != nullptr) {
        return "";
    }
    const auto response = answer.response();
    std::string text;
    for (const auto& event : response.history().events()) {
        text += text.empty() ? "" : ", ";
        text += std::to_string(event.event_id()) + " " + short_name(event.event_type());
    }
    return text;
}

Command activity_command(const std::string& id) {
    Command command;
    command.set_command_type(COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK);
    auto& attributes = *command.mutable_schedule_activity_task_command_attributes();
    attributes.set_activity_id(id);
    attributes.mutable_activity_type()->set_name("Charge");
    attributes.mutable_task_queue()->set_name("queue");
    attributes.mutable_input()->add_payloads()->set_data("\"" + id + "\"");
    attributes.mutable_start_to_close_timeout()->set_seconds(10);
    return command;
}

Command timer_command(const std::string& id, std::chrono::seconds span) {
    Command command;
    command.set_command_type(COMMAND_TYPE_START_TIMER);
    command.mutable_start_timer_command_attributes()->set_timer_id(id);
    command.mutable_start_timer_command_attributes()->mutable_start_to_fire_timeout()->set_seconds(
        span.count());
    return command;
}

Command complete_command() {
    Command command;
    command.set_command_type(COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION);
    command.mutable_complete_workflow_execution_command_attributes();
    return command;
}

}  // namespace holdfast::server::engine::tests

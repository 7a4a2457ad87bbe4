#include "plan.hpp"

#include <array>
#include <chrono>

#include <fmt/core.h>
#include <google/protobuf/duration.pb.h>
#include <temporal/api/update/v1/message.pb.h>

namespace holdfast::server_bench {
namespace {

namespace enums = temporal::api::enums::v1;
namespace rpc = temporal::api::workflowservice::v1;

constexpr std::array all_plans{Plan{"hello", PlanKind::chain, 0},
                               Plan{"chain1", PlanKind::chain, 1},
                               Plan{"chain5", PlanKind::chain, 5},
                               Plan{"fanout", PlanKind::fanout, 10},
                               Plan{"signals", PlanKind::signals, 10},
                               Plan{"timers", PlanKind::timer, 1},
                               Plan{"updates", PlanKind::update, 1}};

constexpr int timer_ns = 50'000'000;
constexpr int activity_seconds = 30;

void schedule_activity(int number,
                       const std::string& task_queue,
                       rpc::RespondWorkflowTaskCompletedRequest& into) {
    auto& command = *into.add_commands();
    command.set_command_type(enums::COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK);
    auto& attributes = *command.mutable_schedule_activity_task_command_attributes();
    attributes.set_activity_id(fmt::format("{}", number));
    attributes.mutable_activity_type()->set_name("step");
    attributes.mutable_task_queue()->set_name(task_queue);
    attributes.mutable_start_to_close_timeout()->set_seconds(activity_seconds);
    set_payload(*attributes.mutable_input());
}

void start_timer(rpc::RespondWorkflowTaskCompletedRequest& into) {
    auto& command = *into.add_commands();
    command.set_command_type(enums::COMMAND_TYPE_START_TIMER);
    auto& attributes = *command.mutable_start_timer_command_attributes();
    attributes.set_timer_id("1");
    attributes.mutable_start_to_fire_timeout()->set_nanos(timer_ns);
}

void complete(rpc::RespondWorkflowTaskCompletedRequest& into) {
    auto& command = *into.add_commands();
    command.set_command_type(enums::COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION);
    auto& attributes = *command.mutable_complete_workflow_execution_command_attributes();
    set_payload(*attributes.mutable_result());
}

// A message, and the command that gives it its place among the others.
template <class Body>
void send(const std::string& protocol,
          const std::string& id,
          const Body& body,
          rpc::RespondWorkflowTaskCompletedRequest& into) {
    auto& message = *into.add_messages();
    message.set_id(id);
    message.set_protocol_instance_id(protocol);
    message.mutable_body()->PackFrom(body);
    auto& command = *into.add_commands();
    command.set_command_type(enums::COMMAND_TYPE_PROTOCOL_MESSAGE);
    command.mutable_protocol_message_command_attributes()->set_message_id(id);
}

// Accepts an update and completes it at once. False if the message is something else.
bool answer_update(const temporal::api::protocol::v1::Message& message,
                   rpc::RespondWorkflowTaskCompletedRequest& into) {
    temporal::api::update::v1::Request request;
    if (!message.body().UnpackTo(&request)) {
        return false;
    }
    temporal::api::update::v1::Acceptance acceptance;
    acceptance.set_accepted_request_message_id(message.id());
    acceptance.set_accepted_request_sequencing_event_id(message.event_id());
    *acceptance.mutable_accepted_request() = request;
    send(message.protocol_instance_id(), message.id() + "/accept", acceptance, into);
    temporal::api::update::v1::Response response;
    *response.mutable_meta() = request.meta();
    set_payload(*response.mutable_outcome()->mutable_success());
    send(message.protocol_instance_id(), message.id() + "/complete", response, into);
    return true;
}

}  // namespace

std::span<const Plan> plans() {
    return all_plans;
}

void set_payload(temporal::api::common::v1::Payloads& into) {
    auto& payload = *into.add_payloads();
    (*payload.mutable_metadata())["encoding"] = "binary/plain";
    payload.set_data("0123456789abcdef");
}

void Sight::see(const temporal::api::history::v1::HistoryEvent& event) {
    switch (event.event_type()) {
        case enums::EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            ++scheduled_;
            break;
        case enums::EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            ++done_;
            break;
        case enums::EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
            ++signals_;
            break;
        case enums::EVENT_TYPE_TIMER_STARTED:
            timer_started_ = true;
            break;
        case enums::EVENT_TYPE_TIMER_FIRED:
            timer_fired_ = true;
            break;
        case enums::EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
            ++updates_;
            break;
        default:
            break;
    }
}

// Activities that are not scheduled yet and may be now.
int Sight::wanted(const Plan& plan) const {
    switch (plan.kind) {
        case PlanKind::chain:
            return scheduled_ == done_ && done_ < plan.steps ? 1 : 0;
        case PlanKind::fanout:
            return plan.steps - scheduled_;
        default:
            return 0;
    }
}

bool Sight::decide(const Plan& plan,
                   const std::string& task_queue,
                   const rpc::PollWorkflowTaskQueueResponse& task,
                   rpc::RespondWorkflowTaskCompletedRequest& into) {
    int updates = updates_;
    for (const auto& message : task.messages()) {
        updates += answer_update(message, into) ? 1 : 0;
    }
    for (int left = wanted(plan); left > 0; --left) {
        schedule_activity(scheduled_ + left, task_queue, into);
    }
    if (plan.kind == PlanKind::timer && !timer_started_) {
        start_timer(into);
    }
    const bool over =
        (plan.kind == PlanKind::signals && signals_ >= plan.steps) ||
        (plan.kind == PlanKind::timer && timer_fired_) ||
        (plan.kind == PlanKind::update && updates >= plan.steps) ||
        ((plan.kind == PlanKind::chain || plan.kind == PlanKind::fanout) && done_ >= plan.steps);
    if (over) {
        complete(into);
    }
    return over;
}

}  // namespace holdfast::server_bench

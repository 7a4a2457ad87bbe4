// Histories that are written by hand, right or wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "history/checker/checker.hpp"
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history::tests {

// A history that is written event by event. Each has the next id, and a second more than the one
// before; what a test wants to be wrong it changes in the event that it gets.
class HistoryText {
public:
    using Event = temporal::api::history::v1::HistoryEvent;

    Event& add(EventType type) {
        Event& event = *history_.add_events();
        event.set_event_id(history_.events_size());
        event.set_task_id(10 * history_.events_size());
        event.set_event_type(type);
        event.mutable_event_time()->set_seconds(history_.events_size());
        return event;
    }

    Event& started() {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_STARTED);
        auto& attributes = *event.mutable_workflow_execution_started_event_attributes();
        attributes.mutable_workflow_type()->set_name("Order");
        attributes.mutable_task_queue()->set_name("queue");
        attributes.set_workflow_id("order-7");
        attributes.set_attempt(1);
        attributes.set_first_execution_run_id("run-1");
        attributes.set_original_execution_run_id("run-1");
        return event;
    }

    Event& task_scheduled() {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_TASK_SCHEDULED);
        auto& attributes = *event.mutable_workflow_task_scheduled_event_attributes();
        attributes.mutable_task_queue()->set_name("queue");
        attributes.mutable_start_to_close_timeout()->set_seconds(10);
        attributes.set_attempt(1);
        return event;
    }

    Event& task_started(std::int64_t scheduled) {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_TASK_STARTED);
        event.mutable_workflow_task_started_event_attributes()->set_scheduled_event_id(scheduled);
        return event;
    }

    Event& task_completed(std::int64_t scheduled, std::int64_t started) {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_TASK_COMPLETED);
        auto& attributes = *event.mutable_workflow_task_completed_event_attributes();
        attributes.set_scheduled_event_id(scheduled);
        attributes.set_started_event_id(started);
        return event;
    }

    // Events 1 to 4: a run whose first workflow task is completed.
    void first_task() {
        started();
        task_scheduled();
        task_started(2);
        task_completed(2, 3);
    }

    Event& completed(std::int64_t task) {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED);
        event.mutable_workflow_execution_completed_event_attributes()
            ->set_workflow_task_completed_event_id(task);
        return event;
    }

    Event& activity_scheduled(const std::string& id = "a") {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_ACTIVITY_TASK_SCHEDULED);
        auto& attributes = *event.mutable_activity_task_scheduled_event_attributes();
        attributes.set_activity_id(id);
        attributes.mutable_activity_type()->set_name("Charge");
        attributes.mutable_task_queue()->set_name("queue");
        attributes.mutable_retry_policy();
        attributes.set_workflow_task_completed_event_id(4);
        return event;
    }

    Event& activity_started(std::int64_t scheduled) {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_ACTIVITY_TASK_STARTED);
        event.mutable_activity_task_started_event_attributes()->set_scheduled_event_id(scheduled);
        event.mutable_activity_task_started_event_attributes()->set_attempt(1);
        return event;
    }

    Event& activity_completed(std::int64_t scheduled, std::int64_t started) {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_ACTIVITY_TASK_COMPLETED);
        auto& attributes = *event.mutable_activity_task_completed_event_attributes();
        attributes.set_scheduled_event_id(scheduled);
        attributes.set_started_event_id(started);
        return event;
    }

    Event& activity_cancel_requested(std::int64_t scheduled) {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED);
        auto& attributes = *event.mutable_activity_task_cancel_requested_event_attributes();
        attributes.set_scheduled_event_id(scheduled);
        attributes.set_workflow_task_completed_event_id(4);
        return event;
    }

    Event& activity_canceled(std::int64_t scheduled, std::int64_t requested) {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_ACTIVITY_TASK_CANCELED);
        auto& attributes = *event.mutable_activity_task_canceled_event_attributes();
        attributes.set_scheduled_event_id(scheduled);
        attributes.set_latest_cancel_requested_event_id(requested);
        return event;
    }

    Event& timer_started(const std::string& id = "t") {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_TIMER_STARTED);
        auto& attributes = *event.mutable_timer_started_event_attributes();
        attributes.set_timer_id(id);
        attributes.mutable_start_to_fire_timeout();
        attributes.set_workflow_task_completed_event_id(4);
        return event;
    }

    Event& timer_fired(std::int64_t started, const std::string& id = "t") {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_TIMER_FIRED);
        event.mutable_timer_fired_event_attributes()->set_timer_id(id);
        event.mutable_timer_fired_event_attributes()->set_started_event_id(started);
        return event;
    }

    Event& signaled() {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
        event.mutable_workflow_execution_signaled_event_attributes()->set_signal_name("go");
        return event;
    }

    Event& child_initiated() {
        Event& event =
            add(temporal::api::enums::v1::EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED);
        auto& attributes =
            *event.mutable_start_child_workflow_execution_initiated_event_attributes();
        attributes.set_workflow_id("child");
        attributes.mutable_workflow_type()->set_name("Child");
        attributes.mutable_task_queue()->set_name("queue");
        attributes.set_parent_close_policy(temporal::api::enums::v1::PARENT_CLOSE_POLICY_TERMINATE);
        attributes.set_workflow_task_completed_event_id(4);
        return event;
    }

    Event& child_started(std::int64_t initiated, const std::string& id = "child") {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED);
        auto& attributes = *event.mutable_child_workflow_execution_started_event_attributes();
        attributes.set_initiated_event_id(initiated);
        attributes.mutable_workflow_type()->set_name("Child");
        attributes.mutable_workflow_execution()->set_workflow_id(id);
        attributes.mutable_workflow_execution()->set_run_id("child-run");
        return event;
    }

    Event& child_completed(std::int64_t initiated, std::int64_t started) {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED);
        auto& attributes = *event.mutable_child_workflow_execution_completed_event_attributes();
        attributes.set_initiated_event_id(initiated);
        attributes.set_started_event_id(started);
        attributes.mutable_workflow_type()->set_name("Child");
        attributes.mutable_workflow_execution()->set_workflow_id("child");
        attributes.mutable_workflow_execution()->set_run_id("child-run");
        return event;
    }

    Event& signal_initiated() {
        Event& event =
            add(temporal::api::enums::v1::EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED);
        auto& attributes =
            *event.mutable_signal_external_workflow_execution_initiated_event_attributes();
        attributes.mutable_workflow_execution()->set_workflow_id("other");
        attributes.set_signal_name("go");
        attributes.set_workflow_task_completed_event_id(4);
        return event;
    }

    Event& external_signaled(std::int64_t initiated) {
        Event& event =
            add(temporal::api::enums::v1::EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED);
        auto& attributes = *event.mutable_external_workflow_execution_signaled_event_attributes();
        attributes.mutable_workflow_execution()->set_workflow_id("other");
        attributes.set_initiated_event_id(initiated);
        return event;
    }

    Event& update_accepted(const std::string& id = "u") {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED);
        auto& attributes = *event.mutable_workflow_execution_update_accepted_event_attributes();
        attributes.set_protocol_instance_id(id);
        attributes.set_accepted_request_message_id(id + "/request");
        attributes.set_accepted_request_sequencing_event_id(2);
        attributes.mutable_accepted_request();
        return event;
    }

    Event& update_completed(std::int64_t accepted, const std::string& id = "u") {
        Event& event =
            add(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED);
        auto& attributes = *event.mutable_workflow_execution_update_completed_event_attributes();
        attributes.mutable_meta()->set_update_id(id);
        attributes.set_accepted_event_id(accepted);
        attributes.mutable_outcome()->mutable_success();
        return event;
    }

    Event& operation_completed(std::int64_t scheduled) {
        Event& event = add(temporal::api::enums::v1::EVENT_TYPE_NEXUS_OPERATION_COMPLETED);
        event.mutable_nexus_operation_completed_event_attributes()->set_scheduled_event_id(
            scheduled);
        return event;
    }

    [[nodiscard]] std::vector<std::string> problems() const {
        return problems_of(std::span{&history_, 1});
    }

private:
    temporal::api::history::v1::History history_;
};

}  // namespace holdfast::server::history::tests

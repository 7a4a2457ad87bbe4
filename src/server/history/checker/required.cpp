#include "history/checker/required.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Paths = std::span<const std::string_view>;

struct Required {
    EventType type;
    std::array<std::string_view, 6> paths;
};

constexpr std::array required{
    Required{EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
             {"workflow_type.name",
              "task_queue.name",
              "workflow_id",
              "attempt",
              "first_execution_run_id",
              "original_execution_run_id"}},
    Required{EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, {"failure", "retry_state"}},
    Required{EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, {"retry_state"}},
    Required{EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
             {"new_execution_run_id", "workflow_type.name", "task_queue.name"}},
    Required{EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
             {"task_queue.name", "attempt", "start_to_close_timeout"}},
    Required{EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT, {"timeout_type"}},
    Required{EVENT_TYPE_WORKFLOW_TASK_FAILED, {"cause"}},
    Required{EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
             {"activity_id", "activity_type.name", "task_queue.name", "retry_policy"}},
    Required{EVENT_TYPE_ACTIVITY_TASK_STARTED, {"attempt"}},
    Required{EVENT_TYPE_ACTIVITY_TASK_FAILED, {"failure", "retry_state"}},
    Required{EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, {"failure", "retry_state"}},
    Required{EVENT_TYPE_TIMER_STARTED, {"timer_id", "start_to_fire_timeout"}},
    Required{EVENT_TYPE_TIMER_FIRED, {"timer_id"}},
    Required{EVENT_TYPE_TIMER_CANCELED, {"timer_id"}},
    Required{EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
             {"workflow_execution.workflow_id"}},
    Required{EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED,
             {"cause", "workflow_execution.workflow_id"}},
    Required{EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
             {"workflow_execution.workflow_id"}},
    Required{EVENT_TYPE_MARKER_RECORDED, {"marker_name"}},
    Required{EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, {"signal_name"}},
    Required{EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
             {"workflow_id", "workflow_type.name", "task_queue.name", "parent_close_policy"}},
    Required{EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED, {"cause", "workflow_id"}},
    Required{EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED,
             {"workflow_execution.workflow_id", "workflow_execution.run_id", "workflow_type.name"}},
    Required{EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED,
             {"workflow_execution.workflow_id", "workflow_execution.run_id", "workflow_type.name"}},
    Required{EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED,
             {"workflow_execution.workflow_id",
              "workflow_execution.run_id",
              "workflow_type.name",
              "failure"}},
    Required{EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED,
             {"workflow_execution.workflow_id", "workflow_execution.run_id", "workflow_type.name"}},
    Required{EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT,
             {"workflow_execution.workflow_id", "workflow_execution.run_id", "workflow_type.name"}},
    Required{EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED,
             {"workflow_execution.workflow_id", "workflow_execution.run_id", "workflow_type.name"}},
    Required{EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
             {"workflow_execution.workflow_id", "signal_name"}},
    Required{EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED,
             {"cause", "workflow_execution.workflow_id"}},
    Required{EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED, {"workflow_execution.workflow_id"}},
    Required{EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, {"search_attributes"}},
    Required{EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED, {"upserted_memo"}},
    Required{EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED, {"request.meta.update_id", "origin"}},
    Required{EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
             {"protocol_instance_id", "accepted_request_message_id"}},
    Required{EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED,
             {"meta.update_id", "accepted_event_id", "outcome"}},
    Required{EVENT_TYPE_NEXUS_OPERATION_SCHEDULED,
             {"endpoint", "service", "operation", "request_id"}},
};

const FieldDescriptor* field_named(const Message& message, const std::string& name) {
    return message.GetDescriptor()->FindFieldByName(name);
}

}  // namespace

Paths required_attributes(EventType type) {
    const auto found = std::find_if(
        required.begin(), required.end(), [&](const Required& one) { return one.type == type; });
    if (found == required.end()) {
        return {};
    }
    const auto end = std::find(found->paths.begin(), found->paths.end(), std::string_view{});
    return {found->paths.begin(), end};
}

bool is_set(const Message& message, std::string_view path) {
    const std::size_t dot = path.find('.');
    const FieldDescriptor* field = field_named(message, std::string{path.substr(0, dot)});
    if (field == nullptr) {
        return false;
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        if (!message.GetReflection()->HasField(message, field)) {
            return false;
        }
        return dot == std::string_view::npos ||
               is_set(message.GetReflection()->GetMessage(message, field), path.substr(dot + 1));
    }
    return message.GetReflection()->HasField(message, field);
}

const Message* attributes_of(const temporal::api::history::v1::HistoryEvent& event) {
    const auto* attributes = event.GetDescriptor()->FindOneofByName("attributes");
    const FieldDescriptor* field =
        event.GetReflection()->GetOneofFieldDescriptor(event, attributes);
    if (field == nullptr) {
        return nullptr;
    }
    std::string expected = EventType_Name(event.event_type()) + "_EVENT_ATTRIBUTES";
    expected.erase(0, std::string_view{"EVENT_TYPE_"}.size());
    const std::string& found = field->name();
    const bool same = std::equal(
        expected.begin(), expected.end(), found.begin(), found.end(), [](char big, char small) {
            return std::tolower(static_cast<unsigned char>(big)) == small;
        });
    return same ? &event.GetReflection()->GetMessage(event, field) : nullptr;
}

std::int64_t number_in(const Message& message, const char* field) {
    const FieldDescriptor* found = field_named(message, field);
    return found == nullptr ? 0 : message.GetReflection()->GetInt64(message, found);
}

std::string text_in(const Message& message, const char* field) {
    const FieldDescriptor* found = field_named(message, field);
    return found == nullptr ? "" : message.GetReflection()->GetString(message, found);
}

}  // namespace holdfast::server::history

#include "history/checker/checker.hpp"

#include <algorithm>
#include <utility>

#include "history/checker/required.hpp"
#include <fmt/format.h>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using google::protobuf::Message;
using temporal::api::history::v1::HistoryEvent;

constexpr const char* scheduled_field = "scheduled_event_id";
constexpr const char* initiated_field = "initiated_event_id";

// Made by a command, so they name the completion that had it.
bool is_commanded(EventType type) {
    switch (type) {
        case EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        case EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
        case EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
        case EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        case EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
        case EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
        case EVENT_TYPE_TIMER_STARTED:
        case EVENT_TYPE_TIMER_CANCELED:
        case EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
        case EVENT_TYPE_MARKER_RECORDED:
        case EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
        case EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
        case EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
        case EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
        case EVENT_TYPE_NEXUS_OPERATION_SCHEDULED:
        case EVENT_TYPE_NEXUS_OPERATION_CANCEL_REQUESTED:
            return true;
        default:
            return false;
    }
}

std::string type_name(EventType type) {
    const std::string_view prefix = "EVENT_TYPE_";
    const std::string& name = EventType_Name(type);
    return name.starts_with(prefix) ? name.substr(prefix.size())
                                    : fmt::format("of type {}", static_cast<int>(type));
}

}  // namespace

void Checker::problem(const Event& event, const std::string& text) {
    if (problems_.size() < problems_max) {
        problems_.push_back(
            fmt::format("event {} {}: {}", event.event_id(), type_name(event.event_type()), text));
    }
}

void Checker::see(const Event& event) {
    check_place(event);
    check_time(event);
    const Message* attributes = attributes_of(event);
    if (attributes == nullptr) {
        return problem(event, "its attributes are missing, or are those of another type");
    }
    for (const std::string_view path : required_attributes(event.event_type())) {
        if (!is_set(*attributes, path)) {
            problem(event, fmt::format("{} is not set", path));
        }
    }
    check_command(event);
    check_workflow_task(event);
    check_activity(event);
    check_timer(event);
    check_child(event);
    check_external(event);
    check_nexus(event);
    check_update(event);
}

void Checker::check_place(const Event& event) {
    if (event.event_id() != last_event_id_ + 1) {
        problem(event, fmt::format("it follows event {}", last_event_id_));
    }
    const bool first = last_event_id_ == 0;
    last_event_id_ = event.event_id();
    check_task_id(event);
    if (first != (event.event_type() == EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)) {
        problem(event, first ? "the first event starts the run" : "the run has started already");
    }
    if (closed_) {
        problem(event, "the run is closed");
    }
    if (ends_run(event.event_type())) {
        closed_ = true;
        if (task_started_ != 0) {
            problem(event, fmt::format("workflow task {} is still started", task_scheduled_));
        }
    }
    if (event.event_type() == EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED) {
        if (cancel_requested_) {
            problem(event, "the cancel of the run was requested already");
        }
        cancel_requested_ = true;
    }
}

// A transient workflow task is shown by events without a task id at the end of a history, which are
// not stored.
void Checker::check_task_id(const Event& event) {
    const bool transient = event.task_id() == 0 &&
                           (event.workflow_task_scheduled_event_attributes().attempt() > 1 ||
                            (unstored_ && event.event_type() == EVENT_TYPE_WORKFLOW_TASK_STARTED));
    if (transient) {
        unstored_ = true;
        return;
    }
    if (unstored_) {
        problem(event, "it follows an event that is not stored");
    }
    if (event.task_id() <= last_task_id_) {
        problem(
            event,
            fmt::format("its task id {} does not grow from {}", event.task_id(), last_task_id_));
    }
    last_task_id_ = event.task_id();
}

// What waited in the buffer has the time of its arrival, so it may be older than what was written
// meanwhile; among themselves such events keep their order. The start of an activity has the time
// of its start, which check_activity() compares.
void Checker::check_time(const Event& event) {
    if (!event.has_event_time()) {
        return problem(event, "it has no time");
    }
    const EventType type = event.event_type();
    const Time at = time_of(event.event_time());
    if (type == EVENT_TYPE_ACTIVITY_TASK_STARTED) {
        return;
    }
    Time* before = &newest_;
    if (is_closing(type)) {
        before = &newest_closing_;
    } else if (is_bufferable(type)) {
        before = &newest_arrival_;
    }
    if (at < *before) {
        problem(event, "its time goes back");
    }
    *before = std::max(*before, at);
    newest_ = std::max(newest_, at);
}

void Checker::check_command(const Event& event) {
    if (!is_commanded(event.event_type())) {
        return;
    }
    const std::int64_t completed =
        number_in(*attributes_of(event), "workflow_task_completed_event_id");
    if (task_completed_ == 0 || completed != task_completed_) {
        problem(event,
                fmt::format("it names {} as its completion, and the last one is {}",
                            completed,
                            task_completed_));
    }
    if (task_scheduled_ != 0) {
        problem(event, fmt::format("workflow task {} is pending", task_scheduled_));
    }
}

void Checker::check_workflow_task(const Event& event) {
    const EventType type = event.event_type();
    const Message& attributes = *attributes_of(event);
    const std::int64_t scheduled = number_in(attributes, scheduled_field);
    const std::int64_t started = number_in(attributes, "started_event_id");
    switch (type) {
        case EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
            if (task_scheduled_ != 0) {
                problem(event, fmt::format("workflow task {} is pending", task_scheduled_));
            }
            task_scheduled_ = event.event_id();
            task_started_ = 0;
            return;
        case EVENT_TYPE_WORKFLOW_TASK_STARTED:
            if (task_scheduled_ == 0 || scheduled != task_scheduled_ || task_started_ != 0) {
                problem(event, fmt::format("workflow task {} does not wait", scheduled));
            }
            task_started_ = event.event_id();
            return;
        case EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
        case EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
        case EVENT_TYPE_WORKFLOW_TASK_FAILED:
            if (task_scheduled_ == 0 || scheduled != task_scheduled_) {
                problem(event, fmt::format("workflow task {} is not pending", scheduled));
            } else if (started != task_started_) {
                problem(event, fmt::format("the workflow task was not started by {}", started));
            }
            if (type == EVENT_TYPE_WORKFLOW_TASK_COMPLETED) {
                task_completed_ = event.event_id();
                if (started == 0) {
                    problem(event, "the workflow task was not started");
                }
            }
            task_scheduled_ = 0;
            task_started_ = 0;
            return;
        default:
            return;
    }
}

void Checker::open(const Event& event, Opened& opened, const std::string& name) {
    opened[event.event_id()] =
        Open{.name = name, .begun = time_of(event.event_time()), .started_event_id = 0};
}

Checker::Open* Checker::find(const Event& event, Opened& opened, const char* field) {
    const std::int64_t id = number_in(*attributes_of(event), field);
    const auto found = opened.find(id);
    if (found == opened.end()) {
        problem(event, fmt::format("{} {} is not pending", field, id));
        return nullptr;
    }
    return &found->second;
}

void Checker::start(const Event& event, Open* one) {
    if (one == nullptr) {
        return;
    }
    if (one->started_event_id != 0) {
        problem(event, fmt::format("it was started by {} already", one->started_event_id));
    }
    one->started_event_id = event.event_id();
}

void Checker::close(const Event& event, Opened& opened, const char* field, bool may_be_unstarted) {
    const Open* one = find(event, opened, field);
    if (one == nullptr) {
        return;
    }
    const Message& attributes = *attributes_of(event);
    const std::int64_t started = number_in(attributes, "started_event_id");
    if (started != one->started_event_id) {
        problem(
            event,
            fmt::format("it names {} as its start, which is {}", started, one->started_event_id));
    } else if (started == 0 && !may_be_unstarted) {
        problem(event, "it was not started");
    }
    opened.erase(number_in(attributes, field));
}

// Closes what has no start.
void Checker::answer(const Event& event, Opened& opened) {
    if (find(event, opened, initiated_field) != nullptr) {
        opened.erase(number_in(*attributes_of(event), initiated_field));
    }
}

void Checker::check_activity(const Event& event) {
    switch (event.event_type()) {
        case EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: {
            const std::string id = text_in(*attributes_of(event), "activity_id");
            if (std::any_of(activities_.begin(), activities_.end(), [&](const auto& entry) {
                    return entry.second.name == id;
                })) {
                problem(event, fmt::format("activity '{}' is pending already", id));
            }
            return open(event, activities_, id);
        }
        case EVENT_TYPE_ACTIVITY_TASK_STARTED: {
            Open* one = find(event, activities_, scheduled_field);
            if (one != nullptr && time_of(event.event_time()) < one->begun) {
                problem(event, "it starts before it is scheduled");
            }
            return start(event, one);
        }
        case EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        case EVENT_TYPE_ACTIVITY_TASK_FAILED:
            return close(event, activities_, scheduled_field, false);
        case EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
            return close(event, activities_, scheduled_field, true);
        case EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED: {
            Open* one = find(event, activities_, scheduled_field);
            if (one != nullptr && one->cancel_event_id != 0) {
                problem(event, "its cancel was requested already");
            } else if (one != nullptr) {
                one->cancel_event_id = event.event_id();
            }
            return;
        }
        case EVENT_TYPE_ACTIVITY_TASK_CANCELED: {
            const Open* one = find(event, activities_, scheduled_field);
            const std::int64_t requested =
                number_in(*attributes_of(event), "latest_cancel_requested_event_id");
            if (one != nullptr && (requested == 0 || requested != one->cancel_event_id)) {
                problem(event, fmt::format("its cancel was not requested by {}", requested));
            }
            if (one != nullptr) {
                close(event, activities_, scheduled_field, true);
            }
            return;
        }
        default:
            return;
    }
}

void Checker::check_timer(const Event& event) {
    constexpr const char* started_field = "started_event_id";
    switch (event.event_type()) {
        case EVENT_TYPE_TIMER_STARTED: {
            const std::string id = text_in(*attributes_of(event), "timer_id");
            if (std::any_of(timers_.begin(), timers_.end(), [&](const auto& entry) {
                    return entry.second.name == id;
                })) {
                problem(event, fmt::format("timer '{}' is pending already", id));
            }
            return open(event, timers_, id);
        }
        case EVENT_TYPE_TIMER_FIRED:
        case EVENT_TYPE_TIMER_CANCELED: {
            const Open* one = find(event, timers_, started_field);
            const std::string id = text_in(*attributes_of(event), "timer_id");
            if (one != nullptr && one->name != id) {
                problem(event, fmt::format("the timer's id is '{}'", one->name));
            }
            timers_.erase(number_in(*attributes_of(event), started_field));
            return;
        }
        default:
            return;
    }
}

void Checker::check_child(const Event& event) {
    switch (event.event_type()) {
        case EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
            return open(event, children_, text_in(*attributes_of(event), "workflow_id"));
        case EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED: {
            const Open* one = find(event, children_, initiated_field);
            if (one != nullptr && one->started_event_id != 0) {
                problem(event, fmt::format("the child was started by {}", one->started_event_id));
            }
            children_.erase(number_in(*attributes_of(event), initiated_field));
            return;
        }
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED: {
            const std::string& id = event.child_workflow_execution_started_event_attributes()
                                        .workflow_execution()
                                        .workflow_id();
            Open* one = find(event, children_, initiated_field);
            if (one != nullptr && one->name != id) {
                problem(event, fmt::format("the child's workflow id is '{}'", one->name));
            }
            return start(event, one);
        }
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
            return close(event, children_, initiated_field, false);
        default:
            return;
    }
}

void Checker::check_external(const Event& event) {
    switch (event.event_type()) {
        case EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
            return open(event, cancels_, "");
        case EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        case EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
            return answer(event, cancels_);
        case EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
            return open(event, signals_, "");
        case EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        case EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
            return answer(event, signals_);
        default:
            return;
    }
}

void Checker::check_nexus(const Event& event) {
    switch (event.event_type()) {
        case EVENT_TYPE_NEXUS_OPERATION_SCHEDULED:
            return open(event, operations_, "");
        case EVENT_TYPE_NEXUS_OPERATION_STARTED:
            return start(event, find(event, operations_, scheduled_field));
        case EVENT_TYPE_NEXUS_OPERATION_CANCEL_REQUESTED:
            static_cast<void>(find(event, operations_, scheduled_field));
            return;
        case EVENT_TYPE_NEXUS_OPERATION_COMPLETED:
        case EVENT_TYPE_NEXUS_OPERATION_FAILED:
        case EVENT_TYPE_NEXUS_OPERATION_CANCELED:
        case EVENT_TYPE_NEXUS_OPERATION_TIMED_OUT:
            if (find(event, operations_, scheduled_field) != nullptr) {
                operations_.erase(number_in(*attributes_of(event), scheduled_field));
            }
            return;
        default:
            return;
    }
}

void Checker::check_update(const Event& event) {
    switch (event.event_type()) {
        case EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED:
            admitted_.insert(event.workflow_execution_update_admitted_event_attributes()
                                 .request()
                                 .meta()
                                 .update_id());
            return;
        case EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: {
            const auto& accepted = event.workflow_execution_update_accepted_event_attributes();
            if (!accepted_.insert(accepted.protocol_instance_id()).second) {
                problem(event, "the update was accepted already");
            }
            if (!accepted.has_accepted_request() &&
                !admitted_.contains(accepted.protocol_instance_id())) {
                problem(event, "no event has the update's request");
            }
            if (accepted.accepted_request_sequencing_event_id() >= event.event_id()) {
                problem(event, "it names a later event as the one that the worker saw last");
            }
            return open(event, updates_, accepted.protocol_instance_id());
        }
        case EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED: {
            constexpr const char* accepted_field = "accepted_event_id";
            const std::string& id =
                event.workflow_execution_update_completed_event_attributes().meta().update_id();
            const Open* one = find(event, updates_, accepted_field);
            if (one != nullptr && one->name != id) {
                problem(event, fmt::format("the update's id is '{}'", one->name));
            }
            updates_.erase(number_in(*attributes_of(event), accepted_field));
            return;
        }
        default:
            return;
    }
}

std::vector<std::string> problems_of(std::span<const temporal::api::history::v1::History> batches) {
    Checker checker;
    for (const auto& batch : batches) {
        for (const HistoryEvent& event : batch.events()) {
            checker.see(event);
        }
    }
    return checker.problems();
}

}  // namespace holdfast::server::history

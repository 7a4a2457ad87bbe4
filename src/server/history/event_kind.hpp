// What kind an event is: whether it may wait for a started workflow task, what it closes, whether
// it wakes the workflow.
#pragma once

#include <temporal/api/enums/v1/event_type.pb.h>

namespace holdfast::server::history {

using EventType = temporal::api::enums::v1::EventType;

// Waits in the buffer while a workflow task is started, because the worker has not seen it.
[[nodiscard]] bool is_bufferable(EventType type);

// Ends an activity, a child or a Nexus operation. Leaves the buffer after everything else.
[[nodiscard]] bool is_closing(EventType type);

// Ends the run.
[[nodiscard]] bool ends_run(EventType type);

// Asks for a workflow task if none is pending.
[[nodiscard]] bool wakes_workflow(EventType type);

}  // namespace holdfast::server::history

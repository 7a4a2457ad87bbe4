// What reaches a run from outside of its workflow: signals, a wish to cancel, its termination.
#pragma once

#include <optional>

#include "history/refusal.hpp"
#include "history/transition.hpp"
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history {

// Event 26. A request id that the run has seen changes nothing, even if the run is closed.
// `at_once`: also a run whose first workflow task waits for a backoff gets one (signal-with-start).
// The event carries the links.
using Links = google::protobuf::RepeatedPtrField<temporal::api::common::v1::Link>;
[[nodiscard]] std::optional<Refusal> signal_run(
    Transition& transition,
    const temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes& signal,
    bool at_once = false,
    const Links& links = {});

// Event 20, at most once. A closed run, or one that is asked already, is left as it is.
void request_cancel(
    Transition& transition,
    const temporal::api::history::v1::WorkflowExecutionCancelRequestedEventAttributes& request);

// Event 27, in a batch of its own; what waits in the buffer becomes visible before it.
[[nodiscard]] std::optional<Refusal> terminate_run(
    Transition& transition,
    const temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes& request);

}  // namespace holdfast::server::history

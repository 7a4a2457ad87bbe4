// The beginning of a run, and of the run that follows another in its chain.
#pragma once

#include <optional>
#include <string>

#include "history/transition.hpp"
#include <temporal/api/command/v1/message.pb.h>
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/enums/v1/workflow.pb.h>
#include <temporal/api/failure/v1/message.pb.h>
#include <temporal/api/sdk/v1/user_metadata.pb.h>

namespace holdfast::server::history {

using Started = temporal::api::history::v1::WorkflowExecutionStartedEventAttributes;

// Fills the timeouts that are not set and cuts those that exceed another: run by execution,
// workflow task by run.
void normalise_timeouts(Started& started, const Limits& limits);

// What event 1 has beside its attributes.
struct StartExtras {
    std::optional<temporal::api::sdk::v1::UserMetadata> user_metadata;
    google::protobuf::RepeatedPtrField<temporal::api::common::v1::Link> links;
    // A child gets its first workflow task when its parent knows of it: schedule_first_task().
    bool withhold_first_task = false;
};

// Event 1, and the first workflow task unless it has to wait. `request_id` is what a repeated start
// is known by. Requires: a run without events; `started` is complete but for the run ids of a first
// run.
void start_run(Transition& transition,
               Started started,
               const std::string& request_id,
               const StartExtras& extras = {});

// The first workflow task that was withheld. Nothing if the run has had one, or waits for a
// backoff.
void schedule_first_task(Transition& transition);

// The first workflow task of a run whose backoff is over.
void end_first_backoff(Transition& transition);

// The run that follows: what carries over from this one. `backoff` grows so that runs of a chain do
// not begin faster than one in a while.
[[nodiscard]] Continuation continuation(Transition& transition,
                                        temporal::api::enums::v1::ContinueAsNewInitiator initiator,
                                        Span backoff);

// The run after a failure that the workflow's policy retries, or why there is none.
struct RunRetry {
    temporal::api::enums::v1::RetryState state{};
    std::optional<Continuation> next;
};
[[nodiscard]] RunRetry retry_run(Transition& transition,
                                 const temporal::api::failure::v1::Failure& failure);

// The run after a continue-as-new command, whose defaults are this run's.
[[nodiscard]] Continuation continue_as_new(
    Transition& transition,
    const temporal::api::command::v1::ContinueAsNewWorkflowExecutionCommandAttributes& command);

}  // namespace holdfast::server::history

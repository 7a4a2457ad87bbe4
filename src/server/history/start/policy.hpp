// What a start does when its workflow id has a run already.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "history/refusal.hpp"
#include <server/history/state.pb.h>
#include <temporal/api/enums/v1/event_type.pb.h>
#include <temporal/api/enums/v1/workflow.pb.h>
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history {

// Policies as they are used: none is unspecified, and reuse is never "terminate if running".
struct StartPolicies {
    temporal::api::enums::v1::WorkflowIdReusePolicy reuse{};
    temporal::api::enums::v1::WorkflowIdConflictPolicy conflict{};

    friend bool operator==(const StartPolicies&, const StartPolicies&) = default;
};

// A signal that starts a run if there is none prefers the run that there is.
enum class StartKind : std::uint8_t { start, signal_with_start };

// Fills what is not given. Refuses pairs that contradict each other, whatever run there is.
[[nodiscard]] Or<StartPolicies> normalise_policies(
    StartKind kind,
    temporal::api::enums::v1::WorkflowIdReusePolicy reuse,
    temporal::api::enums::v1::WorkflowIdConflictPolicy conflict);

// What is known of the newest run of a workflow id.
struct CurrentRun {
    std::string workflow_id;
    std::string run_id;
    std::string first_execution_run_id;
    std::string create_request_id;  // Of the request that started it.
    temporal::api::enums::v1::WorkflowExecutionStatus status{};
    // Requests that it has seen, with the event that each made.
    std::map<std::string, temporal::api::enums::v1::EventType> requests;
};

[[nodiscard]] CurrentRun current_run(const state::Run& run);

namespace start_outcome {

// There is nothing in the way.
struct Start {};

// The running one ends with replacing_termination(); the new one starts in the same commit.
struct TerminateAndStart {};

// The running one is used. Nothing is written, but what the request attaches.
struct UseExisting {};

// The same request was here before. `started`: it started this run.
struct Repeated {
    bool started = false;
};

// The answer carries the run's create request id, its run id and the first one of its chain.
struct AlreadyStarted {
    std::string message;
};

}  // namespace start_outcome

using StartOutcome = std::variant<start_outcome::Start,
                                  start_outcome::TerminateAndStart,
                                  start_outcome::UseExisting,
                                  start_outcome::Repeated,
                                  start_outcome::AlreadyStarted>;

// `current` is null if the workflow id has no run, or none any more. A paused run counts as
// running. If a run that was to be terminated has closed meanwhile, the caller asks again.
[[nodiscard]] StartOutcome decide_start(const StartPolicies& policies,
                                        const std::string& request_id,
                                        const CurrentRun* current);

// Event 27 of a run that another one replaces.
[[nodiscard]] temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes
replacing_termination(const std::string& new_run_id);

}  // namespace holdfast::server::history

#include "history/start/policy.hpp"

#include "history/test/run_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

constexpr auto any_reuse = WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED;
constexpr auto allow = WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE;
constexpr auto failed_only = WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY;
constexpr auto reject = WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE;
constexpr auto terminate_if_running = WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING;
constexpr auto any_conflict = WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED;
constexpr auto fail_on_conflict = WORKFLOW_ID_CONFLICT_POLICY_FAIL;
constexpr auto use_existing = WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING;
constexpr auto terminate_existing = WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING;

CurrentRun order_with(WorkflowExecutionStatus status) {
    return {.workflow_id = "order-7",
            .run_id = "run-2",
            .first_execution_run_id = "run-1",
            .create_request_id = "first request",
            .status = status,
            .requests = {{"first request", EVENT_TYPE_WORKFLOW_EXECUTION_STARTED},
                         {"attached", EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED}}};
}

StartOutcome outcome(WorkflowExecutionStatus status,
                     WorkflowIdReusePolicy reuse,
                     WorkflowIdConflictPolicy conflict = any_conflict,
                     const std::string& request_id = "new request") {
    const auto policies = normalise_policies(StartKind::start, reuse, conflict);
    const CurrentRun current = order_with(status);
    return decide_start(std::get<StartPolicies>(policies), request_id, &current);
}

std::string refused(WorkflowIdReusePolicy reuse,
                    WorkflowIdConflictPolicy conflict,
                    StartKind kind = StartKind::start) {
    const auto policies = normalise_policies(kind, reuse, conflict);
    const auto* refusal = std::get_if<Refusal>(&policies);
    return refusal == nullptr ? "" : refusal->message;
}

template <class Expected>
bool is(const StartOutcome& outcome) {
    return std::holds_alternative<Expected>(outcome);
}

std::string message(const StartOutcome& outcome) {
    const auto* started = std::get_if<start_outcome::AlreadyStarted>(&outcome);
    return started == nullptr ? "" : started->message;
}

TEST(StartPolicyTest, WhatIsNotGivenIsFilled) {
    EXPECT_EQ(
        std::get<StartPolicies>(normalise_policies(StartKind::start, any_reuse, any_conflict)),
        (StartPolicies{allow, fail_on_conflict}));
    EXPECT_EQ(std::get<StartPolicies>(
                  normalise_policies(StartKind::signal_with_start, any_reuse, any_conflict)),
              (StartPolicies{allow, use_existing}));
    EXPECT_EQ(std::get<StartPolicies>(
                  normalise_policies(StartKind::start, failed_only, terminate_existing)),
              (StartPolicies{failed_only, terminate_existing}));
}

TEST(StartPolicyTest, TerminateIfRunningStandsAlone) {
    HOLDFAST_CHECK("server H10");
    EXPECT_EQ(std::get<StartPolicies>(
                  normalise_policies(StartKind::start, terminate_if_running, any_conflict)),
              (StartPolicies{allow, terminate_existing}));
    for (const auto conflict : {fail_on_conflict, use_existing, terminate_existing}) {
        EXPECT_EQ(refused(terminate_if_running, conflict),
                  "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING "
                  "cannot be used together with a WorkflowIDConflictPolicy");
    }
}

TEST(StartPolicyTest, RejectDuplicateNeverTerminates) {
    HOLDFAST_CHECK("server H11");
    EXPECT_EQ(refused(reject, terminate_existing),
              "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be "
              "used together with WorkflowIdConflictPolicy "
              "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING");
}

TEST(StartPolicyTest, ASignalWithStartCannotFailOnARunningOne) {
    EXPECT_EQ(refused(allow, fail_on_conflict, StartKind::signal_with_start),
              "Invalid WorkflowIDConflictPolicy: WORKFLOW_ID_CONFLICT_POLICY_FAIL is not supported "
              "for this operation.");
}

TEST(StartPolicyTest, WithoutARunItStarts) {
    EXPECT_TRUE(is<start_outcome::Start>(decide_start({reject, fail_on_conflict}, "r", nullptr)));
}

// The client lost the answer, and asks again, perhaps when the run has closed.
TEST(StartPolicyTest, ARepeatedRequestGetsTheRunThatItStarted) {
    HOLDFAST_CHECK("server H2");
    for (const auto status :
         {WORKFLOW_EXECUTION_STATUS_RUNNING, WORKFLOW_EXECUTION_STATUS_COMPLETED}) {
        const StartOutcome repeated = outcome(status, reject, any_conflict, "first request");
        ASSERT_TRUE(is<start_outcome::Repeated>(repeated));
        EXPECT_TRUE(std::get<start_outcome::Repeated>(repeated).started);
    }
    const StartOutcome attached =
        outcome(WORKFLOW_EXECUTION_STATUS_RUNNING, allow, use_existing, "attached");
    ASSERT_TRUE(is<start_outcome::Repeated>(attached));
    EXPECT_FALSE(std::get<start_outcome::Repeated>(attached).started);
}

TEST(StartPolicyTest, ARunningOneIsInTheWay) {
    HOLDFAST_CHECK("server H3");
    for (const auto reuse : {allow, failed_only, reject}) {
        EXPECT_EQ(message(outcome(WORKFLOW_EXECUTION_STATUS_RUNNING, reuse)),
                  "Workflow execution is already running. WorkflowId: order-7, RunId: run-2.");
    }
    EXPECT_FALSE(message(outcome(WORKFLOW_EXECUTION_STATUS_PAUSED, allow)).empty());
}

TEST(StartPolicyTest, ACompletedOneMayBeFollowed) {
    HOLDFAST_CHECK("server H4");
    EXPECT_TRUE(is<start_outcome::Start>(outcome(WORKFLOW_EXECUTION_STATUS_COMPLETED, allow)));
}

TEST(StartPolicyTest, AfterASuccessOnlyFailuresMayBeFollowed) {
    HOLDFAST_CHECK("server H5");
    EXPECT_EQ(message(outcome(WORKFLOW_EXECUTION_STATUS_COMPLETED, failed_only)),
              "Workflow execution already finished successfully. WorkflowId: order-7, RunId: "
              "run-2. Workflow Id reuse policy: allow duplicate workflow Id if last run failed.");
}

TEST(StartPolicyTest, AnythingElseThanASuccessMayBeFollowed) {
    HOLDFAST_CHECK("server H6");
    for (const auto status : {WORKFLOW_EXECUTION_STATUS_FAILED,
                              WORKFLOW_EXECUTION_STATUS_CANCELED,
                              WORKFLOW_EXECUTION_STATUS_TERMINATED,
                              WORKFLOW_EXECUTION_STATUS_TIMED_OUT}) {
        EXPECT_TRUE(is<start_outcome::Start>(outcome(status, failed_only)));
    }
}

TEST(StartPolicyTest, ADuplicateIsRejected) {
    HOLDFAST_CHECK("server H7");
    EXPECT_EQ(message(outcome(WORKFLOW_EXECUTION_STATUS_FAILED, reject)),
              "Workflow execution already finished. WorkflowId: order-7, RunId: run-2. Workflow Id "
              "reuse policy: reject duplicate workflow Id.");
    EXPECT_FALSE(
        message(outcome(WORKFLOW_EXECUTION_STATUS_TERMINATED, reject, use_existing)).empty());
}

TEST(StartPolicyTest, TheRunningOneMayBeUsed) {
    HOLDFAST_CHECK("server H8");
    for (const auto reuse : {allow, failed_only, reject}) {
        EXPECT_TRUE(is<start_outcome::UseExisting>(
            outcome(WORKFLOW_EXECUTION_STATUS_RUNNING, reuse, use_existing)));
    }
}

class ReplacingTest : public RunFixture {};

TEST_F(ReplacingTest, TheRunningOneMayBeReplaced) {
    HOLDFAST_CHECK("server H9");
    EXPECT_TRUE(is<start_outcome::TerminateAndStart>(
        outcome(WORKFLOW_EXECUTION_STATUS_RUNNING, failed_only, terminate_existing)));
    start();
    poll();
    ASSERT_TRUE(
        transition([](Transition& t) { return terminate_run(t, replacing_termination("run-2")); }));
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 Terminated")) << history();
    const auto& end = event(5).workflow_execution_terminated_event_attributes();
    EXPECT_EQ(end.reason(), "TerminateIfRunning WorkflowIdReusePolicy");
    EXPECT_EQ(end.details().payloads(0).data(), "\"terminated by new runID: run-2\"");
    EXPECT_EQ(end.identity(), "history-service");
}

TEST_F(ReplacingTest, WhatIsKnownOfARunIsInItsState) {
    start();
    signal("go", "signal-request");
    const CurrentRun current = current_run(run());
    EXPECT_EQ(current.create_request_id, "start-request");
    EXPECT_EQ(current.requests.at("start-request"), EVENT_TYPE_WORKFLOW_EXECUTION_STARTED);
    EXPECT_EQ(current.first_execution_run_id, "run-1");
    EXPECT_EQ(current.status, WORKFLOW_EXECUTION_STATUS_RUNNING);
}

}  // namespace

}  // namespace holdfast::server::history::tests

#include "frontend/test/frontend_fixture.hpp"
#include "history/activity.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;

using rpc::StatusCode;

// order-7 has one activity, charge, of the type Charge, scheduled by event 5.
class ActivityControl : public FrontendTest {
protected:
    ActivityControl() {
        start_order();
        api::RespondWorkflowTaskCompletedRequest request;
        request.set_namespace_("home");
        request.set_task_token(turns.poll_task(order));
        auto& command = *request.add_commands();
        command.set_command_type(enums::COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK);
        auto& attributes = *command.mutable_schedule_activity_task_command_attributes();
        attributes.set_activity_id("charge");
        attributes.mutable_activity_type()->set_name("Charge");
        attributes.mutable_task_queue()->set_name("orders");
        attributes.mutable_start_to_close_timeout()->set_seconds(10);
        call<api::RespondWorkflowTaskCompletedResponse>("RespondWorkflowTaskCompleted", request);
    }

    template <class Request>
    static Request about_charge() {
        Request request;
        request.set_namespace_("home");
        request.mutable_execution()->set_workflow_id("order-7");
        request.set_id("charge");
        return request;
    }
    template <class Request>
    static Request about_charge_by_id() {
        Request request;
        request.set_namespace_("home");
        request.set_workflow_id("order-7");
        request.set_activity_id("charge");
        return request;
    }

    [[nodiscard]] const history::state::Activity& activity() {
        return turns.run_of(order)->run.activities().at(5);
    }
};

TEST_F(ActivityControl, EitherAnIdOrATypeIsNeeded) {
    auto pause = about_charge<api::PauseActivityRequest>();
    pause.clear_id();
    EXPECT_EQ(refused("PauseActivity", pause),
              rpc::Refusal(StatusCode::invalid_argument,
                           "Either Activity.Id or Activity.Type should be set on request."));
    pause.set_type("Charge");
    call<api::PauseActivityResponse>("PauseActivity", pause);
    EXPECT_TRUE(activity().has_pause());
    api::UnpauseActivityRequest all;
    all.set_namespace_("home");
    all.mutable_execution()->set_workflow_id("order-7");
    EXPECT_EQ(refused("UnpauseActivity", all).code, StatusCode::invalid_argument);
    all.set_unpause_all(true);
    call<api::UnpauseActivityResponse>("UnpauseActivity", all);
    EXPECT_FALSE(activity().has_pause());
}

TEST_F(ActivityControl, TheNewerMethodsDoTheSame) {
    auto pause = about_charge_by_id<api::PauseActivityExecutionRequest>();
    pause.set_reason("noise");
    call<api::PauseActivityExecutionResponse>("PauseActivityExecution", pause);
    EXPECT_EQ(activity().pause().reason(), "noise");
    auto reset = about_charge_by_id<api::ResetActivityExecutionRequest>();
    reset.set_keep_paused(true);
    call<api::ResetActivityExecutionResponse>("ResetActivityExecution", reset);
    EXPECT_TRUE(activity().has_pause());
    call<api::UnpauseActivityExecutionResponse>(
        "UnpauseActivityExecution", about_charge_by_id<api::UnpauseActivityExecutionRequest>());
    EXPECT_FALSE(activity().has_pause());
    auto options = about_charge_by_id<api::UpdateActivityExecutionOptionsRequest>();
    options.mutable_activity_options()->mutable_heartbeat_timeout()->set_seconds(3);
    options.mutable_update_mask()->add_paths("heartbeat_timeout");
    EXPECT_EQ(
        call<api::UpdateActivityExecutionOptionsResponse>("UpdateActivityExecutionOptions", options)
            .activity_options()
            .heartbeat_timeout()
            .seconds(),
        3);
    pause.clear_workflow_id();
    EXPECT_EQ(refused("PauseActivityExecution", pause).code, StatusCode::unimplemented);
}

TEST_F(ActivityControl, OptionsNeedAMaskOfTheirFieldsOrNothingButTheOriginalOnes) {
    HOLDFAST_CHECK("server H157");
    auto change = about_charge<api::UpdateActivityOptionsRequest>();
    change.mutable_activity_options()->mutable_start_to_close_timeout()->set_seconds(33);
    EXPECT_EQ(refused("UpdateActivityOptions", change),
              rpc::Refusal(StatusCode::invalid_argument, "UpdateMask is not set on request."));
    change.mutable_update_mask()->add_paths("colour");
    EXPECT_EQ(refused("UpdateActivityOptions", change).code, StatusCode::invalid_argument);
    change.mutable_update_mask()->set_paths(0, "start_to_close_timeout");
    call<api::UpdateActivityOptionsResponse>("UpdateActivityOptions", change);
    EXPECT_EQ(activity().scheduled().start_to_close_timeout().seconds(), 33);
    change.set_restore_original(true);
    EXPECT_EQ(refused("UpdateActivityOptions", change).code, StatusCode::invalid_argument);
    change.clear_activity_options();
    change.clear_update_mask();
    const auto restored = call<api::UpdateActivityOptionsResponse>("UpdateActivityOptions", change);
    EXPECT_EQ(restored.activity_options().start_to_close_timeout().seconds(), 10);
}

TEST_F(ActivityControl, WhatIsNotThereIsNotFound) {
    auto reset = about_charge<api::ResetActivityRequest>();
    reset.set_id("other");
    EXPECT_EQ(refused("ResetActivity", reset).code, StatusCode::not_found);
    reset.mutable_jitter()->set_seconds(-1);
    EXPECT_EQ(refused("ResetActivity", reset).code, StatusCode::invalid_argument);
}

TEST_F(ActivityControl, AHeartbeatTellsOfThePauseAndTheReset) {
    static_cast<void>(turns.apply(*turns.run_of(order), [](history::Transition& transition) {
        return history::start_activity(transition, 5, 0, "worker", "poll");
    }));
    api::RecordActivityTaskHeartbeatByIdRequest beat;
    beat.set_namespace_("home");
    beat.set_workflow_id("order-7");
    beat.set_activity_id("charge");
    using Beaten = api::RecordActivityTaskHeartbeatByIdResponse;
    EXPECT_FALSE(call<Beaten>("RecordActivityTaskHeartbeatById", beat).activity_paused());
    call<api::PauseActivityResponse>("PauseActivity", about_charge<api::PauseActivityRequest>());
    EXPECT_TRUE(call<Beaten>("RecordActivityTaskHeartbeatById", beat).activity_paused());
    call<api::ResetActivityResponse>("ResetActivity", about_charge<api::ResetActivityRequest>());
    const auto after = call<Beaten>("RecordActivityTaskHeartbeatById", beat);
    EXPECT_FALSE(after.activity_paused());
    EXPECT_TRUE(after.activity_reset());
}

TEST_F(ActivityControl, LinksOfASignalAreOnItsEventOnce) {
    auto signal = about_order<api::SignalWorkflowExecutionRequest>();
    signal.set_signal_name("paid");
    for (int i = 0; i < 2; ++i) {
        auto& link = *signal.add_links()->mutable_workflow_event();
        link.set_namespace_("home");
        link.set_workflow_id("other");
        link.set_run_id("00000000-0000-4000-8000-000000000099");
    }
    call<api::SignalWorkflowExecutionResponse>("SignalWorkflowExecution", signal);
    const auto& event = *turns.run_of(order)->batches.back().events().rbegin();
    const bool wakes = event.event_type() == enums::EVENT_TYPE_WORKFLOW_TASK_SCHEDULED;
    ASSERT_TRUE(wakes);
    const auto& signaled = *std::next(turns.run_of(order)->batches.back().events().rbegin());
    ASSERT_EQ(signaled.event_type(), enums::EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
    EXPECT_EQ(signaled.links_size(), 1) << "repeats are dropped";
}

TEST_F(ActivityControl, LinksAndUserMetadataOfAStartAreOnItsEvent) {
    auto request = start_request("order-8");
    auto& link = *request.add_links()->mutable_workflow_event();
    link.set_namespace_("home");
    link.set_workflow_id("other");
    link.set_run_id("00000000-0000-4000-8000-000000000099");
    request.mutable_user_metadata()->mutable_summary()->set_data("\"a summary\"");
    call<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request);
    const auto& event = turns.run_of({home_id, "order-8"})->batches.front().events(0);
    EXPECT_EQ(event.links_size(), 1);
    EXPECT_EQ(event.user_metadata().summary().data(), "\"a summary\"");
}

TEST_F(ActivityControl, AStartMayAttachItsRequestAndItsLinks) {
    auto request = start_request("order-8");
    request.set_request_id("mine");
    request.mutable_on_conflict_options()->set_attach_request_id(true);
    request.mutable_on_conflict_options()->set_attach_links(true);
    auto& link = *request.add_links()->mutable_workflow_event();
    link.set_namespace_("home");
    link.set_workflow_id("other");
    link.set_run_id("00000000-0000-4000-8000-000000000099");
    call<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request);
    ASSERT_TRUE(turns.last_start.attachment);
    EXPECT_EQ(turns.last_start.attachment->request_id, "mine");
    EXPECT_EQ(turns.last_start.attachment->links.size(), 1);
}

}  // namespace

}  // namespace holdfast::server::frontend::tests

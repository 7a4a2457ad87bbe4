#include "history/update/update.hpp"

#include "history/test/run_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using UpdateAcceptance = temporal::api::update::v1::Acceptance;
using UpdateRequest = temporal::api::update::v1::Request;
using UpdateResponse = temporal::api::update::v1::Response;

class UpdateTest : public RunFixture {
protected:
    UpdateTest() {
        request.mutable_meta()->set_update_id("u");
        request.mutable_meta()->set_identity("client");
        request.mutable_input()->set_name("add");
    }

    // What is wrong with the worker's message; empty if it was taken.
    std::string accept(const UpdateRequest* known, const UpdateAcceptance& message = {}) {
        std::optional<std::string> problem;
        transition([&](Transition& t) -> std::optional<Refusal> {
            UpdateAcceptance named = message;
            named.set_accepted_request_message_id("u/request");
            problem = accept_update(t, "u", named, known);
            return std::nullopt;
        });
        return problem.value_or("");
    }

    std::string respond() {
        std::optional<std::string> problem;
        transition([&](Transition& t) -> std::optional<Refusal> {
            UpdateResponse message;
            message.mutable_meta()->set_identity("client");
            message.mutable_outcome()->mutable_success()->add_payloads()->set_data("5");
            problem = complete_update(t, "u", message);
            return std::nullopt;
        });
        return problem.value_or("");
    }

    void become_idle() {
        start();
        poll();
        ASSERT_TRUE(complete());
    }

    UpdateRequest request;
};

TEST_F(UpdateTest, AnAcceptanceKeepsTheRequest) {
    become_idle();
    EXPECT_EQ(update_stage(run(), "u"), UpdateStage::unknown);
    UpdateAcceptance message;
    message.set_accepted_request_sequencing_event_id(2);
    EXPECT_EQ(accept(&request, message), "");
    EXPECT_EQ(update_stage(run(), "u"), UpdateStage::accepted);
    const auto& accepted = event(5).workflow_execution_update_accepted_event_attributes();
    EXPECT_EQ(accepted.protocol_instance_id(), "u");
    EXPECT_EQ(accepted.accepted_request_message_id(), "u/request");
    EXPECT_EQ(accepted.accepted_request_sequencing_event_id(), 2);
    EXPECT_EQ(accepted.accepted_request().input().name(), "add");
    EXPECT_FALSE(run().has_workflow_task()) << "the worker knows";
}

TEST_F(UpdateTest, AResponseNamesItsAcceptance) {
    become_idle();
    accept(&request);
    EXPECT_EQ(respond(), "");
    const auto& completed = event(6).workflow_execution_update_completed_event_attributes();
    EXPECT_EQ(completed.accepted_event_id(), 5);
    EXPECT_EQ(completed.meta().update_id(), "u");
    EXPECT_EQ(completed.meta().identity(), "client");
    EXPECT_EQ(completed.outcome().success().payloads(0).data(), "5");
    EXPECT_EQ(update_stage(run(), "u"), UpdateStage::completed);
}

// The server lost the request with its memory, and the worker still has it.
TEST_F(UpdateTest, AWorkerBringsBackARequestThatWasLost) {
    become_idle();
    EXPECT_EQ(accept(nullptr), "update 'u' wasn't found");
    UpdateAcceptance message;
    *message.mutable_accepted_request() = request;
    EXPECT_EQ(accept(nullptr, message), "");
    EXPECT_EQ(update_stage(run(), "u"), UpdateStage::accepted);
}

TEST_F(UpdateTest, MessagesComeInTheirOrderAndOnce) {
    become_idle();
    EXPECT_EQ(respond(), "update 'u' wasn't found");
    EXPECT_EQ(accept(&request), "");
    EXPECT_TRUE(accept(&request).starts_with("invalid state transition attempted"));
    EXPECT_EQ(respond(), "");
    EXPECT_TRUE(respond().starts_with("invalid state transition attempted"));
}

TEST_F(UpdateTest, WhatAResetAdmitsIsAcceptedWithoutItsRequest) {
    become_idle();
    transition([&](Transition& t) -> std::optional<Refusal> {
        admit_update(t, request);
        return std::nullopt;
    });
    EXPECT_EQ(run().updates().at("u").admitted_event_id(), 5);
    EXPECT_EQ(update_stage(run(), "u"), UpdateStage::admitted);
    EXPECT_EQ(accept(nullptr), "");
    EXPECT_FALSE(
        event(6).workflow_execution_update_accepted_event_attributes().has_accepted_request());
}

TEST_F(UpdateTest, ManyUpdatesSuggestToContinueAsNew) {
    HOLDFAST_CHECK("server H283");
    limits.updates_suggest = 1;
    become_idle();
    accept(&request);
    signal("look");
    poll();
    const auto& task = event(8).workflow_task_started_event_attributes();
    EXPECT_TRUE(task.suggest_continue_as_new());
    ASSERT_EQ(task.suggest_continue_as_new_reasons_size(), 1);
    EXPECT_EQ(task.suggest_continue_as_new_reasons(0),
              SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_UPDATES);
}

TEST_F(UpdateTest, AnAcceptedUpdateFailsWithTheEndOfItsRun) {
    EXPECT_EQ(closed_before_update().application_failure_info().type(),
              "AcceptedUpdateCompletedWorkflow");
    EXPECT_TRUE(closed_before_update().application_failure_info().non_retryable());
}

}  // namespace

}  // namespace holdfast::server::history::tests

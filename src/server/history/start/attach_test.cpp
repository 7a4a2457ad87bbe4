#include "history/start/attach.hpp"

#include "history/start/policy.hpp"
#include "history/test/run_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

class AttachTest : public RunFixture {
protected:
    AttachTest() {
        request.set_request_id("second request");
        request.add_completion_callbacks()->mutable_nexus()->set_url("http://there");
        request.add_links()->mutable_workflow_event()->set_workflow_id("other");
    }

    bool attach() {
        const auto attachment = attachment_of(request, request.request_id());
        return transition([&](Transition& t) {
            return attach_to_run(t, *std::get<std::optional<Attachment>>(attachment));
        });
    }

    temporal::api::workflowservice::v1::StartWorkflowExecutionRequest request;
};

TEST_F(AttachTest, ARunKeepsTheRequestAndItsCallbacks) {
    HOLDFAST_CHECK("server H12");
    request.mutable_on_conflict_options()->set_attach_request_id(true);
    request.mutable_on_conflict_options()->set_attach_completion_callbacks(true);
    request.mutable_on_conflict_options()->set_attach_links(true);
    start();
    poll();
    complete();
    ASSERT_TRUE(attach());
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskCompleted, 5 OptionsUpdated")) << history();
    EXPECT_FALSE(run().has_workflow_task());
    const auto& updated = event(5).workflow_execution_options_updated_event_attributes();
    EXPECT_EQ(updated.attached_request_id(), "second request");
    EXPECT_EQ(updated.attached_completion_callbacks_size(), 1);
    EXPECT_EQ(event(5).links_size(), 1);
    EXPECT_TRUE(event(5).worker_may_ignore());
    EXPECT_EQ(run().request_ids().at("second request").event_id(), 5);
}

TEST_F(AttachTest, ARepeatAttachesNothing) {
    HOLDFAST_CHECK("server H13");
    request.mutable_on_conflict_options()->set_attach_request_id(true);
    start();
    attach();
    ASSERT_TRUE(attach());
    EXPECT_FALSE(last.changed);
    const CurrentRun current = current_run(run());
    const StartOutcome outcome = decide_start(
        {WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING},
        "second request",
        &current);
    EXPECT_FALSE(std::get<start_outcome::Repeated>(outcome).started);
}

// The request's event waits for the worker that is at work, and has no id until then.
TEST_F(AttachTest, TheRequestKnowsItsEventOnceThatIsWritten) {
    request.mutable_on_conflict_options()->set_attach_request_id(true);
    start();
    poll();
    attach();
    EXPECT_EQ(run().request_ids().at("second request").event_id(), buffered_event_id);
    complete();
    EXPECT_EQ(run().request_ids().at("second request").event_id(), 5) << history();
}

TEST_F(AttachTest, CallbacksNeedTheRequestId) {
    HOLDFAST_CHECK("server H14");
    request.mutable_on_conflict_options()->set_attach_completion_callbacks(true);
    EXPECT_EQ(std::get<Refusal>(attachment_of(request, request.request_id())).kind,
              Refused::invalid_argument);
}

TEST_F(AttachTest, WithoutOptionsNothingIsAttached) {
    EXPECT_FALSE(std::get<std::optional<Attachment>>(attachment_of(request, request.request_id())));
}

}  // namespace

}  // namespace holdfast::server::history::tests

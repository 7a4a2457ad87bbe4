#include "frontend/validate.hpp"

#include <vector>

#include "frontend/close_event.hpp"
#include "frontend/namespace_gate.hpp"
#include "frontend/refusals.hpp"
#include <gtest/gtest.h>
#include <temporal/api/errordetails/v1/message.pb.h>
#include <temporal/api/sdk/v1/user_metadata.pb.h>
#include <temporal/api/taskqueue/v1/message.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend {

namespace {

namespace common = temporal::api::common::v1;

// The text of the problem; empty if there is none.
std::string text(const Problem& problem) {
    return problem ? problem->message : "";
}

TEST(Validate, AWorkflowIdHasUpToAThousandBytes) {
    HOLDFAST_CHECK("server F26");
    EXPECT_EQ(text(workflow_id_problem(std::string(1000, 'x'), {})), "");
    EXPECT_EQ(text(workflow_id_problem(std::string(1001, 'x'), {})),
              "WorkflowId exceeds maximum allowed length (1001/1000)");
    EXPECT_EQ(text(workflow_id_problem("", {})), "WorkflowId is not set on request.");
}

TEST(Validate, AnExecutionNeedsAWorkflowIdAndARunIdIsAUuid) {
    common::WorkflowExecution execution;
    EXPECT_EQ(text(execution_problem(nullptr, {})), "Execution is not set on request.");
    EXPECT_EQ(text(execution_problem(&execution, {})), "WorkflowId is not set on request.");
    execution.set_workflow_id("order-7");
    EXPECT_EQ(text(execution_problem(&execution, {})), "");
    execution.set_run_id("order-7");
    EXPECT_EQ(text(execution_problem(&execution, {})), "Invalid RunId.");
}

TEST(Validate, ATaskQueueNeedsANameThatIsNotReserved) {
    HOLDFAST_CHECK("server F30");
    temporal::api::taskqueue::v1::TaskQueue queue;
    EXPECT_EQ(text(queue_problem(nullptr, {})), "taskQueue is not set");
    EXPECT_EQ(text(queue_problem(&queue, {})), "missing task queue name");
    queue.set_name("/_sys/orders/1");
    EXPECT_EQ(text(queue_problem(&queue, {})),
              "task queue name cannot start with reserved prefix /_sys/");
    queue.set_name("temporal-sys-per-ns-tq");
    EXPECT_EQ(text(queue_problem(&queue, {})), "");
    EXPECT_EQ(text(start_queue_problem(&queue, {})),
              "cannot use internal per-namespace task queue:temporal-sys-per-ns-tq");
    queue.set_name("orders");
    queue.set_normal_name("others");
    EXPECT_EQ(text(queue_problem(&queue, {})),
              "only sticky queues can have normal name. tq: orders, normal name: others");
    queue.set_kind(temporal::api::enums::v1::TASK_QUEUE_KIND_STICKY);
    EXPECT_EQ(text(queue_problem(&queue, {})), "");
}

TEST(Validate, ASpanIsNeverNegative) {
    google::protobuf::Duration duration;
    EXPECT_EQ(text(span_problem("WorkflowRunTimeoutSeconds", duration)), "");
    duration.set_seconds(-1);
    EXPECT_EQ(text(span_problem("WorkflowRunTimeoutSeconds", duration)),
              "An invalid WorkflowRunTimeoutSeconds is set on request. cause: negative duration");
    duration.set_nanos(1);
    EXPECT_TRUE(span_problem("WorkflowRunTimeoutSeconds", duration));
}

TEST(Validate, ARetryPolicyIsFilledThenChecked) {
    HOLDFAST_CHECK("server F33");
    HOLDFAST_CHECK("server F34");
    common::RetryPolicy policy;
    EXPECT_EQ(text(fill_and_check(policy)), "");
    EXPECT_EQ(policy.backoff_coefficient(), 2.0);
    EXPECT_EQ(policy.initial_interval().seconds(), 1);
    EXPECT_EQ(policy.maximum_interval().seconds(), 100);

    policy.set_backoff_coefficient(0.5);
    EXPECT_EQ(text(fill_and_check(policy)),
              "BackoffCoefficient cannot be less than 1 on retry policy.");
    policy.set_maximum_attempts(1);
    EXPECT_EQ(text(fill_and_check(policy)), "");

    policy.Clear();
    policy.add_non_retryable_error_types("TemporalTimeout:Foo");
    EXPECT_TRUE(fill_and_check(policy));
}

TEST(Validate, APriorityHasBounds) {
    HOLDFAST_CHECK("server F35");
    common::Priority priority;
    EXPECT_EQ(text(priority_problem(priority)), "");
    priority.set_priority_key(-1);
    EXPECT_TRUE(priority_problem(priority));
    priority.Clear();
    priority.set_fairness_key(std::string(64, 'k'));
    EXPECT_EQ(text(priority_problem(priority)), "");
    priority.set_fairness_key(std::string(65, 'k'));
    EXPECT_TRUE(priority_problem(priority));
    priority.Clear();
    priority.set_fairness_weight(-1);
    EXPECT_TRUE(priority_problem(priority));
}

TEST(Validate, LinksAreFewAndSmallAndComplete) {
    HOLDFAST_CHECK("server F36");
    Links links;
    for (int i = 0; i < 10; ++i) {
        links.Add()->mutable_batch_job()->set_job_id("job");
    }
    EXPECT_EQ(text(links_problem(links)), "");
    links.Add()->mutable_batch_job()->set_job_id("job");
    EXPECT_TRUE(links_problem(links));

    links.Clear();
    links.Add()->mutable_batch_job()->set_job_id(std::string(4001, 'j'));
    EXPECT_TRUE(links_problem(links));

    links.Clear();
    links.Add()->mutable_workflow_event()->set_namespace_("home");
    EXPECT_EQ(text(links_problem(links)),
              "workflow event link must not have an empty workflow ID field");
}

TEST(Validate, SizesHaveLimits) {
    HOLDFAST_CHECK("server F39");
    HOLDFAST_CHECK("server F41");
    history::Limits limits;
    limits.blob_bytes_max = 10;
    EXPECT_EQ(text(blob_problem(10, limits)), "");
    EXPECT_EQ(text(blob_problem(11, limits)), "Blob data size exceeds limit.");

    temporal::api::sdk::v1::UserMetadata metadata;
    metadata.mutable_summary()->set_data(std::string(400, 's'));
    EXPECT_EQ(text(user_metadata_problem(metadata, {})), "");
    metadata.mutable_summary()->set_data(std::string(401, 's'));
    EXPECT_TRUE(user_metadata_problem(metadata, {}));
}

TEST(Validate, APageHasUpTo256Batches) {
    EXPECT_EQ(history_page_size(0), 256);
    EXPECT_EQ(history_page_size(-1), 256);
    EXPECT_EQ(history_page_size(257), 256);
    EXPECT_EQ(history_page_size(3), 3);
}

TEST(Validate, ANamespaceHasANameOfUpToAThousandBytes) {
    HOLDFAST_CHECK("server F4");
    EXPECT_EQ(text(name_refusal("")), "Namespace is empty.");
    EXPECT_EQ(text(name_refusal(std::string(1001, 'n'))), "Namespace length exceeds limit.");
    EXPECT_EQ(text(name_refusal("home")), "");
}

TEST(Refusals, ABusyRunSaysWhyAndForWhom) {
    const auto busy = wire_refusal(history::Refusal{history::Refused::busy, "closing"});
    EXPECT_EQ(busy.code, rpc::StatusCode::resource_exhausted);
    temporal::api::errordetails::v1::ResourceExhaustedFailure detail;
    ASSERT_TRUE(detail.ParseFromString(busy.detail));
    EXPECT_EQ(detail.cause(), temporal::api::enums::v1::RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW);
    EXPECT_EQ(detail.scope(), temporal::api::enums::v1::RESOURCE_EXHAUSTED_SCOPE_NAMESPACE);
}

TEST(CloseEvent, AnEndThatARunFollowsReadsAsContinued) {
    HOLDFAST_CHECK("server F59");
    temporal::api::history::v1::HistoryEvent event;
    event.set_event_id(9);
    event.set_event_type(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_FAILED);
    auto& failed = *event.mutable_workflow_execution_failed_event_attributes();
    failed.mutable_failure()->set_message("broken");
    EXPECT_TRUE(as_continued(event).has_workflow_execution_failed_event_attributes());

    failed.set_new_execution_run_id("the next run");
    const auto continued = as_continued(event);
    EXPECT_EQ(continued.event_id(), 9);
    EXPECT_EQ(continued.event_type(),
              temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW);
    const auto& attributes = continued.workflow_execution_continued_as_new_event_attributes();
    EXPECT_EQ(attributes.new_execution_run_id(), "the next run");
    EXPECT_EQ(attributes.failure().message(), "broken");
}

TEST(CloseEvent, AClientMaySayThatItFollowsByItself) {
    EXPECT_FALSE(follows_next_run(""));
    EXPECT_FALSE(follows_next_run("other, follows-next-run-id-not"));
    EXPECT_TRUE(follows_next_run("other, follows-next-run-id "));
}

}  // namespace

}  // namespace holdfast::server::frontend

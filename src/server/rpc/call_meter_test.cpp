#include "rpc/call_meter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <temporal/api/errordetails/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::rpc {
namespace {

namespace api = temporal::api::workflowservice::v1;
using testing::HasSubstr;
using testing::Not;

std::string method_named(const std::string& name) {
    return "/temporal.api.workflowservice.v1.WorkflowService/" + name;
}

class CallMeterTest : public testing::Test {
protected:
    void call(const std::string& method,
              const google::protobuf::Message& request,
              const Answer& answer = std::string()) {
        meter.begin(method_named(method), request.SerializeAsString()).end(answer);
    }
    double requests(const char* operation, const std::string& in) {
        return metrics.value(
            "service_requests",
            {{"service_name", "frontend"}, {"operation", operation}, {"namespace", in}});
    }
    double latencies(const char* operation) {
        return metrics.value("service_latency",
                             {{"service_name", "frontend"}, {"operation", operation}});
    }

    Metrics metrics;
    CallMeter meter{metrics, [](const std::string& name) { return name.starts_with("shop"); }};
};

TEST_F(CallMeterTest, CountsCallsAndTheirLatency) {
    HOLDFAST_CHECK("server F226");
    api::StartWorkflowExecutionRequest request;
    request.set_request_id("r");
    request.set_namespace_("shop");
    call("StartWorkflowExecution", request);
    call("StartWorkflowExecution", request);
    EXPECT_EQ(requests("StartWorkflowExecution", "shop"), 2);
    EXPECT_EQ(latencies("StartWorkflowExecution"), 2);
    EXPECT_THAT(metrics.expose(), HasSubstr("service_latency_bucket{"));
}

TEST_F(CallMeterTest, CountsRefusalsByTheirKind) {
    HOLDFAST_CHECK("server F227");
    api::StartWorkflowExecutionRequest request;
    request.set_namespace_("shop");
    temporal::api::errordetails::v1::ResourceExhaustedFailure busy;
    busy.set_cause(temporal::api::enums::v1::RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW);
    busy.set_scope(temporal::api::enums::v1::RESOURCE_EXHAUSTED_SCOPE_NAMESPACE);
    call("StartWorkflowExecution", request, Refusal(StatusCode::resource_exhausted, "busy", busy));
    call("StartWorkflowExecution", request, Refusal(StatusCode::invalid_argument, "no"));
    const auto refusals = [&](const char* type) {
        return metrics.value("service_error_with_type",
                             {{"service_name", "frontend"},
                              {"operation", "StartWorkflowExecution"},
                              {"namespace", "shop"},
                              {"error_type", type}});
    };
    EXPECT_EQ(refusals("serviceerror_ResourceExhausted"), 1);
    EXPECT_EQ(refusals("serviceerror_InvalidArgument"), 1);
    EXPECT_EQ(metrics.value("service_errors_resource_exhausted",
                            {{"service_name", "frontend"},
                             {"operation", "StartWorkflowExecution"},
                             {"resource_exhausted_cause", "BusyWorkflow"},
                             {"resource_exhausted_scope", "Namespace"}}),
              1);
    EXPECT_THAT(metrics.expose(), Not(HasSubstr("service_errors{")))
        << "neither is the server's fault";
}

TEST_F(CallMeterTest, PollsAreWithATaskOrEmpty) {
    api::PollActivityTaskQueueRequest request;
    request.set_namespace_("shop");
    api::PollActivityTaskQueueResponse task;
    task.mutable_scheduled_time()->set_seconds(1);  // Of the first attempt.
    task.mutable_current_attempt_scheduled_time()->set_seconds(100);
    task.mutable_started_time()->set_seconds(103);
    call("PollActivityTaskQueue", request);
    call("PollActivityTaskQueue", request, task.SerializeAsString());
    const auto polls = [&](const char* name) {
        return metrics.value(name, {{"operation", "PollActivityTaskQueue"}, {"namespace", "shop"}});
    };
    EXPECT_EQ(polls("poll_timeouts"), 1);
    EXPECT_EQ(polls("poll_success"), 1);
    EXPECT_THAT(metrics.expose(),
                HasSubstr("task_schedule_to_start_latency_sum{operation=\"PollActivityTaskQueue\"} "
                          "3"));
}

TEST_F(CallMeterTest, AReadThatWaitsIsAnotherOperation) {
    api::GetWorkflowExecutionHistoryRequest request;
    request.set_namespace_("shop");
    call("GetWorkflowExecutionHistory", request);
    request.set_wait_new_event(true);
    call("GetWorkflowExecutionHistory", request);
    EXPECT_EQ(requests("GetWorkflowExecutionHistory", "shop"), 1);
    EXPECT_EQ(requests("PollWorkflowExecutionHistory", "shop"), 1);
}

// Nothing that callers make up becomes a label.
TEST_F(CallMeterTest, LabelsAreBounded) {
    HOLDFAST_CHECK("server F228");
    for (int i = 0; i < 5000; ++i) {
        api::DescribeNamespaceRequest request;
        request.set_namespace_("shop" + std::to_string(i));
        call("DescribeNamespace", request);
        request.set_namespace_("made up " + std::to_string(i));
        call("DescribeNamespace", request);
    }
    EXPECT_EQ(requests("DescribeNamespace", "_unknown_"), 5000);
    EXPECT_EQ(requests("DescribeNamespace", "_other_"),
              5000 - static_cast<double>(CallMeter::namespaces_max));
    EXPECT_EQ(requests("DescribeNamespace", "shop0"), 1);
}

TEST_F(CallMeterTest, BytesThatAreNotARequestAreCountedWithoutANamespace) {
    for (const char* const bytes : {"\xff\xff\xff", "\x0a\x7fx"}) {
        meter.begin(method_named("StartWorkflowExecution"), bytes)
            .end(Refusal(StatusCode::invalid_argument, "no"));
    }
    EXPECT_EQ(requests("StartWorkflowExecution", "_unknown_"), 2);
    meter.begin("/grpc.health.v1.Health/Check", "").end(std::string());
    EXPECT_THAT(metrics.expose(), Not(HasSubstr("Check")));
}

}  // namespace
}  // namespace holdfast::server::rpc

#include "rpc/http/http_api.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "executor/test/manual_alarms.hpp"
#include "rpc/call_meter.hpp"
#include "rpc/test/dispatch_fixture.hpp"
#include <gmock/gmock.h>
#include <temporal/api/errordetails/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::rpc::tests {
namespace {

namespace api = temporal::api::workflowservice::v1;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* start_path = "/api/v1/namespaces/n/workflows/w";

// Two methods: a start, whose handler each test replaces, and a read of the history, which waits.
class HttpApiTest : public DispatchTest {
protected:
    using History = Reply<api::GetWorkflowExecutionHistoryResponse>;

    HttpApiTest() {
        dispatch
            .add<api::GetWorkflowExecutionHistoryRequest, api::GetWorkflowExecutionHistoryResponse>(
                "/temporal.api.workflowservice.v1.WorkflowService/GetWorkflowExecutionHistory",
                [this](const auto& request, History reply) {
                    if (!request.wait_new_event()) {
                        std::move(reply).send();
                        return;
                    }
                    reply.on_end([this](Ending ending) { endings.push_back(ending); });
                    waiting.push_back(std::move(reply));
                });
        api.emplace(dispatch, alarms, clock, &meter);
    }
    ~HttpApiTest() override {  // Before `api`, which their calls need.
        waiting.clear();
        parked.clear();
    }

    // The answer; nothing while the call waits.
    std::shared_ptr<std::optional<HttpAnswer>> send(const ReceivedRequest& request) {
        auto answer = std::make_shared<std::optional<HttpAnswer>>();
        api->answer(request, [answer](HttpAnswer given) {
            EXPECT_FALSE(answer->has_value()) << "answered twice";
            *answer = std::move(given);
        });
        return answer;
    }
    HttpAnswer answer_of(const ReceivedRequest& request) {
        const auto answer = send(request);
        return answer->value_or(HttpAnswer{.status = 0, .body = "it waits"});
    }
    HttpAnswer post(const std::string& body) {
        return answer_of({.method = "POST", .path = start_path, .headers = {}, .body = body});
    }
    std::shared_ptr<std::optional<HttpAnswer>> read_and_wait() {
        return send({.method = "GET",
                     .path = std::string(start_path) + "/history",
                     .query = "waitNewEvent=true",
                     .headers = {},
                     .body = {}});
    }
    static std::string header(const HttpAnswer& answer, const std::string& name) {
        for (const auto& [known, value] : answer.headers) {
            if (known == name) {
                return value;
            }
        }
        return "none";
    }

    void refuse_with(const Refusal& refusal) {
        serve([refusal](const StartRequest&, Reply<StartResponse> reply) {
            std::move(reply).refuse(refusal);
        });
    }

    ManualClock clock;
    server::tests::ManualAlarms alarms{clock};
    Metrics metrics;
    CallMeter meter{metrics, [](const std::string& name) { return name == "n"; }};
    std::optional<HttpApi> api;
    std::vector<History> waiting;
};

TEST_F(HttpApiTest, APostReachesTheHandlerAndItsReplyIsJson) {
    StartRequest seen;
    CallInfo info;
    serve([&](const StartRequest& request, Reply<StartResponse> reply) {
        seen = request;
        info = reply.info();
        reply.message().set_run_id("r-1");
        std::move(reply).send();
    });
    const HttpAnswer answer = post(R"({"workflowType":{"name":"Order"},"input":[7]})");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.type, "application/json");
    EXPECT_EQ(answer.body, R"({"runId":"r-1"})");
    EXPECT_EQ(seen.namespace_(), "n");
    EXPECT_EQ(seen.workflow_id(), "w");
    EXPECT_EQ(seen.input().payloads(0).data(), "7");
    EXPECT_EQ(info.caller.client_name, "temporal-server-http");
    EXPECT_EQ(info.deadline, clock.wall_now() + 60s);
    EXPECT_EQ(alarms.waiting(), 0U) << "the alarm of an answered call is cancelled";
}

TEST_F(HttpApiTest, HeadersArePassedOnAsMetadata) {
    CallInfo info;
    serve([&](const StartRequest&, Reply<StartResponse> reply) {
        info = reply.info();
        std::move(reply).send();
    });
    answer_of({.method = "POST",
               .path = start_path,
               .headers = {{"authorization", "Bearer x"},
                           {"client-name", "temporal-ui"},
                           {"client-version", "2.53.3"},
                           {"caller-type", "operator"},
                           {"grpc-metadata-supported-features", "follows-next-run-id"},
                           {"supported-server-versions", "<1.0.0"},
                           {"grpc-timeout", "1500m"}},
               .body = "{}"});
    EXPECT_EQ(info.caller.authorization, "Bearer x");
    EXPECT_EQ(info.caller.client_name, "temporal-ui");
    EXPECT_EQ(info.caller.client_version, "2.53.3");
    EXPECT_EQ(info.caller.caller_type, "operator");
    EXPECT_EQ(info.caller.supported_features, "follows-next-run-id");
    EXPECT_EQ(info.caller.supported_server_versions, "") << "not one of those without the prefix";
    EXPECT_EQ(info.deadline, clock.wall_now() + 1500ms);
}

TEST_F(HttpApiTest, ARefusalIsAStatusAndAnObjectWithItsDetail) {
    HOLDFAST_CHECK("server F203");
    refuse_with({StatusCode::not_found,
                 "workflow not found for ID: w",
                 temporal::api::errordetails::v1::NotFoundFailure()});
    const HttpAnswer answer = post("{}");
    EXPECT_EQ(answer.status, 404);
    EXPECT_EQ(answer.body,
              R"({"code":5,"message":"workflow not found for ID: w","details":[{)"
              R"("@type":"type.googleapis.com/temporal.api.errordetails.v1.NotFoundFailure"}]})");
}

TEST_F(HttpApiTest, EachCodeHasItsStatus) {
    HOLDFAST_CHECK("server F204");
    for (const auto& [code, status] : {std::pair{StatusCode::already_exists, 409},
                                       {StatusCode::resource_exhausted, 429},
                                       {StatusCode::unimplemented, 501},
                                       {StatusCode::permission_denied, 403},
                                       {StatusCode::invalid_argument, 400},
                                       {StatusCode::failed_precondition, 400},
                                       {StatusCode::unauthenticated, 401},
                                       {StatusCode::unavailable, 503},
                                       {StatusCode::internal, 500}}) {
        refuse_with({code, "no"});
        EXPECT_EQ(post("{}").status, status);
    }
}

TEST_F(HttpApiTest, WhatCannotBeReadIsRefusedWithTheReason) {
    const HttpAnswer unknown = post(R"({"workflowName":"x"})");
    EXPECT_EQ(unknown.status, 400);
    EXPECT_THAT(unknown.body, StartsWith("{\"code\":3,\"message\":"));
    EXPECT_THAT(unknown.body, HasSubstr("workflowName"));
    EXPECT_EQ(post("{").status, 400);
}

TEST_F(HttpApiTest, OtherPathsAndMethodsSayWhatThereIs) {
    const auto ask = [&](const std::string& method, const std::string& path) {
        return answer_of({.method = method, .path = path, .headers = {}, .body = {}});
    };
    EXPECT_EQ(ask("GET", "/api/v1/nothing").status, 404);
    EXPECT_EQ(ask("GET", "/api/v1/namespaces").status, 404) << "its method is not in the table";
    const HttpAnswer wrong = ask("DELETE", start_path);
    EXPECT_EQ(wrong.status, 405);
    EXPECT_THAT(wrong.body, StartsWith("{\"code\":12,"));
    EXPECT_EQ(header(wrong, "Allow"), "POST, OPTIONS");
    const HttpAnswer options = ask("OPTIONS", std::string(start_path) + "/history");
    EXPECT_EQ(options.status, 204);
    EXPECT_EQ(options.body, "");
    EXPECT_EQ(header(options, "Allow"), "GET, HEAD, OPTIONS");
    EXPECT_EQ(ask("HEAD", std::string(start_path) + "/history").status, 200);
}

TEST_F(HttpApiTest, TheAnswerIsInTheFormThatIsAskedFor) {
    const HttpAnswer answer = answer_of(
        {.method = "POST", .path = start_path, .query = "pretty", .headers = {}, .body = "{}"});
    EXPECT_EQ(answer.body, "{}\n");
    const HttpAnswer refused = answer_of({.method = "POST",
                                          .path = start_path,
                                          .headers = {{"accept", "application/json+pretty"}},
                                          .body = "{"});
    EXPECT_THAT(refused.body, StartsWith("{\n  \"code\": 3,\n  \"message\": "));
}

TEST_F(HttpApiTest, ACallThatWaitsEndsAtItsDeadline) {
    const auto answer = read_and_wait();
    EXPECT_FALSE(answer->has_value());
    EXPECT_EQ(api->long_calls(), 1U);
    alarms.advance(59s);
    EXPECT_FALSE(answer->has_value());
    alarms.advance(1s);
    ASSERT_TRUE(answer->has_value());
    EXPECT_EQ((*answer)->status, 504);
    EXPECT_EQ(endings, std::vector{Ending::cancelled}) << "the handler lets its wait go";
    EXPECT_EQ(api->long_calls(), 0U);
}

TEST_F(HttpApiTest, NoMoreThanThirtyTwoCallsWait) {
    std::vector<std::shared_ptr<std::optional<HttpAnswer>>> calls;
    for (int i = 0; i < 32; ++i) {
        calls.push_back(read_and_wait());
        EXPECT_FALSE(calls.back()->has_value());
    }
    const auto refused = read_and_wait();
    ASSERT_TRUE(refused->has_value());
    EXPECT_EQ((*refused)->status, 429);
    EXPECT_EQ(header(**refused, "X-Resource-Exhausted-Cause"), "ConcurrentLimit");
    EXPECT_EQ(post("{}").status, 200) << "calls that do not wait are served";
    std::move(waiting.back()).send();
    waiting.pop_back();
    EXPECT_EQ(calls.back()->value().status, 200);
    EXPECT_FALSE(read_and_wait()->has_value()) << "a place is free again";
}

TEST_F(HttpApiTest, AStoppingServerTellsCallsThatWait) {
    const auto answer = read_and_wait();
    dispatch.stop();
    EXPECT_EQ(endings, std::vector{Ending::stopping});
    std::move(waiting.front()).send();
    waiting.clear();
    EXPECT_EQ(answer->value().status, 200);
    EXPECT_EQ(post("{}").status, 503);
}

TEST_F(HttpApiTest, CallsAreCountedByMethodAndNamespace) {
    post("{}");
    refuse_with({StatusCode::unavailable, "later"});
    post("{}");
    answer_of({.method = "POST",
               .path = "/api/v1/namespaces/nowhere/workflows/w",
               .headers = {},
               .body = "{}"});
    const auto requests = [&](const char* in) {
        return metrics.value("service_requests",
                             {{"service_name", "frontend"},
                              {"operation", "StartWorkflowExecution"},
                              {"namespace", in}});
    };
    EXPECT_EQ(requests("n"), 2);
    EXPECT_EQ(requests("_unknown_"), 1);
    EXPECT_EQ(metrics.value("http_service_requests"), 3);
    EXPECT_EQ(metrics.value("service_errors",
                            {{"service_name", "frontend"},
                             {"operation", "StartWorkflowExecution"},
                             {"namespace", "n"}}),
              1);
}

TEST(GrpcTimeout, HasAUnit) {
    EXPECT_EQ(grpc_timeout("5S"), 5s);
    EXPECT_EQ(grpc_timeout("10m"), 10ms);
    EXPECT_EQ(grpc_timeout("99999999H"), 24h);
    for (const char* const text : {"", "5", "S", "-1S", "5s", "123456789S", "1.5S"}) {
        EXPECT_EQ(grpc_timeout(text), std::nullopt) << text;
    }
}

}  // namespace
}  // namespace holdfast::server::rpc::tests

#include <string>
#include <vector>

#include "rpc/test/grpc_fixture.hpp"
#include <grpc/health/v1/health.pb.h>
#include <gtest/gtest.h>
#include <server/rpc/reflection.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::rpc {

namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using tests::Answered;
using tests::GrpcTest;

constexpr const char* check_method = "/grpc.health.v1.Health/Check";
constexpr const char* watch_method = "/grpc.health.v1.Health/Watch";
constexpr const char* workflow_service = "temporal.api.workflowservice.v1.WorkflowService";
constexpr const char* operator_service = "temporal.api.operatorservice.v1.OperatorService";

std::string health_request(const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return request.SerializeAsString();
}

class GrpcStreamsTest : public GrpcTest {
protected:
    HealthCheckResponse::ServingStatus checked(const std::string& service) {
        const Answered answered = ann.call(check_method, health_request(service));
        HealthCheckResponse response;
        EXPECT_TRUE(answered.status.ok()) << answered.status.error_message();
        EXPECT_TRUE(response.ParseFromString(answered.bytes));
        return response.status();
    }
    static HealthCheckResponse::ServingStatus status_in(const std::optional<std::string>& bytes) {
        HealthCheckResponse response;
        EXPECT_TRUE(bytes && response.ParseFromString(*bytes));
        return response.status();
    }

    tests::GrpcClient ann = started();
};

TEST_F(GrpcStreamsTest, HealthIsToldUnderTheNamesOfTheServices) {
    HOLDFAST_CHECK("server F17");
    health.set_serving(true);
    for (const char* name : {"", workflow_service, operator_service}) {
        EXPECT_EQ(checked(name), HealthCheckResponse::SERVING) << name;
    }
}

TEST_F(GrpcStreamsTest, HealthAnswersWhileTheGateIsClosed) {
    dispatch.stop();
    EXPECT_EQ(checked(""), HealthCheckResponse::NOT_SERVING);
}

TEST_F(GrpcStreamsTest, HealthOfAnUnknownServiceIsNotFound) {
    HOLDFAST_CHECK("server F18");
    const Answered answered = ann.call(check_method, health_request("temporal.api.X"));
    EXPECT_EQ(answered.status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(GrpcStreamsTest, AWatchIsToldEachChangeAndTheStop) {
    HOLDFAST_CHECK("server F19");
    const auto watch = ann.stream(watch_method);
    watch->write(health_request(workflow_service));
    watch->writes_done();
    EXPECT_EQ(status_in(watch->read()), HealthCheckResponse::NOT_SERVING);
    health.set_serving(true);
    EXPECT_EQ(status_in(watch->read()), HealthCheckResponse::SERVING);
    server->stop();
    EXPECT_EQ(status_in(watch->read()), HealthCheckResponse::NOT_SERVING);
    EXPECT_FALSE(watch->read());
    EXPECT_EQ(watch->finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcStreamsTest, AWatchOfAnUnknownServiceSaysSoAndStays) {
    const auto watch = ann.stream(watch_method);
    watch->write(health_request("temporal.api.X"));
    EXPECT_EQ(status_in(watch->read()), HealthCheckResponse::SERVICE_UNKNOWN);
    server->stop();
    EXPECT_FALSE(watch->read());
}

TEST_F(GrpcStreamsTest, AClientThatGoesAwayLeavesNoWatch) {
    {
        const auto watch = ann.stream(watch_method);
        watch->write(health_request(""));
        EXPECT_TRUE(watch->read());
    }
    health.set_serving(true);
    server->stop();
    EXPECT_EQ(health.watching(), 0U);
}

class GrpcReflectionTest : public GrpcStreamsTest,
                           public testing::WithParamInterface<const char*> {};

TEST_P(GrpcReflectionTest, ToolsListTheServicesOnOneStream) {
    HOLDFAST_CHECK("server F20");
    reflection::Request request;
    request.set_list_services("*");
    const auto stream = ann.stream(GetParam());
    for (int round = 0; round < 2; ++round) {
        stream->write(request.SerializeAsString());
        const auto bytes = stream->read();
        reflection::Response response;
        ASSERT_TRUE(bytes && response.ParseFromString(*bytes));
        std::vector<std::string> names;
        for (const auto& service : response.services().service()) {
            names.push_back(service.name());
        }
        EXPECT_EQ(names,
                  (std::vector<std::string>{
                      "grpc.health.v1.Health", operator_service, workflow_service}));
    }
    stream->writes_done();
    EXPECT_FALSE(stream->read());
    EXPECT_TRUE(stream->finish().ok());
}

INSTANTIATE_TEST_SUITE_P(
    Versions,
    GrpcReflectionTest,
    testing::Values("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"),
    [](const auto& version) {
        return std::string(version.param).find("alpha") == std::string::npos ? "v1" : "v1alpha";
    });

}  // namespace

}  // namespace holdfast::server::rpc

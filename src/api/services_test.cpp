#include <holdfast/api/services.hpp>

#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>
#include <temporal/api/export/v1/message.pb.h>
#include <temporal/api/namespace/v1/message.pb.h>

namespace holdfast::api {

namespace {

TEST(Services, AreThoseThatReflectionShows) {
    std::vector<std::string> names;
    for (const auto* service : services()) {
        names.push_back(service->full_name());
    }
    EXPECT_EQ(names,
              (std::vector<std::string>{"temporal.api.workflowservice.v1.WorkflowService",
                                        "temporal.api.operatorservice.v1.OperatorService",
                                        "temporal.api.testservice.v1.TestService",
                                        "grpc.health.v1.Health"}));
}

// protoc does not escape these keywords in C++; mending its text must not rename what clients see.
TEST(Services, APackageNamedByAKeywordKeepsItsNameOnTheWire) {
    EXPECT_EQ(temporal::api::namespace_::v1::NamespaceInfo::descriptor()->full_name(),
              "temporal.api.namespace.v1.NamespaceInfo");
    EXPECT_EQ(temporal::api::export_::v1::WorkflowExecutions::descriptor()->full_name(),
              "temporal.api.export.v1.WorkflowExecutions");
}

}  // namespace

}  // namespace holdfast::api

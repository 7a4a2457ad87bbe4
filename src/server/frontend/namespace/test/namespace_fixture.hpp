// The calls of the namespace service on a real store, answered within the call.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "executor/executor.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include "namespaces/namespaces.hpp"
#include "rpc/dispatch.hpp"
#include <gtest/gtest.h>
#include <temporal/api/operatorservice/v1/request_response.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/log_capture.hpp>
#include <holdfast/store/catalogue.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::server::frontend::tests {

namespace workflow = temporal::api::workflowservice::v1;
namespace operators = temporal::api::operatorservice::v1;

// Runs each job where it is posted.
class PromptExecutor final : public Executor {
public:
    void post(const std::string& /*key*/, Job job) override { std::move(job)(); }
};

// What a call was answered with.
template <class Response>
struct Said {
    Response response;
    std::optional<rpc::Refusal> refusal;

    [[nodiscard]] bool ok() const { return !refusal; }
    [[nodiscard]] rpc::StatusCode code() const {
        return refusal ? refusal->code : rpc::StatusCode{};
    }
    [[nodiscard]] std::string text() const { return refusal ? refusal->message : "(no refusal)"; }
};

class NamespaceServiceTest : public testing::Test {
protected:
    NamespaceServiceTest() {
        registry.open();
        add_namespace_service(dispatch, parts(), options);
        dispatch.open();
    }

    NamespaceServiceParts parts() {
        return {.db = db, .namespaces = registry, .executor = executor, .clock = system_clock()};
    }

    template <class Response, class Request>
    Said<Response> call(const std::string& method, const Request& request) {
        const bool of_operators =
            Request::descriptor()->full_name().starts_with("temporal.api.operatorservice");
        Said<Response> said;
        auto call = std::make_shared<rpc::Call>(
            rpc::CallInfo{
                .method = (of_operators ? "/temporal.api.operatorservice.v1.OperatorService/"
                                        : "/temporal.api.workflowservice.v1.WorkflowService/") +
                          method,
                .deadline = {},
                .caller = {}},
            [&said](rpc::Answer answer) {
                if (auto* const refusal = std::get_if<rpc::Refusal>(&answer)) {
                    said.refusal = *refusal;
                } else {
                    EXPECT_TRUE(said.response.ParseFromString(std::get<std::string>(answer)));
                }
            });
        dispatch.run(call, request.SerializeAsString());
        return said;
    }

    Said<workflow::RegisterNamespaceResponse> add(const std::string& name,
                                                  std::int64_t retention_s = 86400) {
        workflow::RegisterNamespaceRequest request;
        request.set_namespace_(name);
        request.mutable_workflow_execution_retention_period()->set_seconds(retention_s);
        return call<workflow::RegisterNamespaceResponse>("RegisterNamespace", request);
    }
    Said<workflow::DescribeNamespaceResponse> describe(const std::string& name,
                                                       const std::string& id = {}) {
        workflow::DescribeNamespaceRequest request;
        request.set_namespace_(name);
        request.set_id(id);
        return call<workflow::DescribeNamespaceResponse>("DescribeNamespace", request);
    }
    Said<workflow::UpdateNamespaceResponse> update(
        const workflow::UpdateNamespaceRequest& request) {
        return call<workflow::UpdateNamespaceResponse>("UpdateNamespace", request);
    }
    Said<workflow::UpdateNamespaceResponse> set_state(
        const std::string& name, temporal::api::enums::v1::NamespaceState state) {
        workflow::UpdateNamespaceRequest request;
        request.set_namespace_(name);
        request.mutable_update_info()->set_state(state);
        return update(request);
    }
    Said<operators::AddSearchAttributesResponse> add_attribute(
        const std::string& name, temporal::api::enums::v1::IndexedValueType type) {
        operators::AddSearchAttributesRequest request;
        request.set_namespace_("default");
        (*request.mutable_search_attributes())[name] = type;
        return call<operators::AddSearchAttributesResponse>("AddSearchAttributes", request);
    }

    holdfast::test::Database db{holdfast::test::Backend::sqlite, store::schema_part()};
    CapturingLogger log;
    PromptExecutor executor;
    namespaces::Registry registry{db};
    NamespaceServiceOptions options;
    rpc::Dispatch dispatch{log};
};

}  // namespace holdfast::server::frontend::tests

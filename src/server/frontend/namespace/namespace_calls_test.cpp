#include <set>
#include <string>
#include <vector>

#include "frontend/namespace/test/namespace_fixture.hpp"
#include <gtest/gtest.h>
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;
using rpc::StatusCode;

TEST_F(NamespaceServiceTest, ARequestWithoutANamespaceIsRefused) {
    HOLDFAST_CHECK("server F1");
    EXPECT_EQ(add("").text(), "Namespace not set on request.");
    EXPECT_EQ(describe("").code(), StatusCode::invalid_argument);
    EXPECT_EQ(std::get<rpc::Refusal>(registry.resolve("", NamespaceUse::start)),
              rpc::Refusal(StatusCode::invalid_argument, "Namespace is empty."));
}

TEST_F(NamespaceServiceTest, AnUnknownNamespaceIsNotFoundAndNamed) {
    HOLDFAST_CHECK("server F2");
    const auto said = describe("nowhere");
    EXPECT_EQ(said.code(), StatusCode::not_found);
    EXPECT_EQ(said.text(), "Namespace nowhere is not found.");
    temporal::api::errordetails::v1::NamespaceNotFoundFailure failure;
    EXPECT_EQ(said.refusal->detail_type, failure.GetTypeName());
    EXPECT_TRUE(failure.ParseFromString(said.refusal->detail));
    EXPECT_EQ(failure.namespace_(), "nowhere");
}

TEST_F(NamespaceServiceTest, ANameAboveTheLimitIsRefused) {
    HOLDFAST_CHECK("server F4");
    EXPECT_EQ(describe(std::string(1001, 'n')).text(), "Namespace length exceeds limit.");
    EXPECT_EQ(add(std::string(1001, 'n')).text(), "Namespace length exceeds limit.");
}

TEST_F(NamespaceServiceTest, ADeprecatedNamespaceStartsNothingAndServesTheRest) {
    HOLDFAST_CHECK("server F9");
    ASSERT_TRUE(add("old").ok());
    workflow::DeprecateNamespaceRequest request;
    request.set_namespace_("old");
    ASSERT_TRUE(call<workflow::DeprecateNamespaceResponse>("DeprecateNamespace", request).ok());
    const auto refused = std::get<rpc::Refusal>(registry.resolve("old", NamespaceUse::start));
    EXPECT_EQ(refused.code, StatusCode::failed_precondition);
    temporal::api::errordetails::v1::NamespaceInvalidStateFailure failure;
    ASSERT_TRUE(failure.ParseFromString(refused.detail));
    EXPECT_EQ(failure.state(), enums::NAMESPACE_STATE_DEPRECATED);
    EXPECT_EQ(failure.allowed_states_size(), 1);
    EXPECT_TRUE(
        std::holds_alternative<ResolvedNamespace>(registry.resolve("old", NamespaceUse::ordinary)));
}

TEST_F(NamespaceServiceTest, ANamespaceIsDescribedByItsNameOrItsIdButNotByBoth) {
    HOLDFAST_CHECK("server F12");
    const std::string id = describe("default").response.namespace_info().id();
    EXPECT_EQ(describe("", id).response.namespace_info().name(), "default");
    EXPECT_EQ(describe("default", id).code(), StatusCode::invalid_argument);
    EXPECT_EQ(describe("", "seven").code(), StatusCode::invalid_argument);
}

TEST_F(NamespaceServiceTest, ADescriptionShowsLimitsRetentionAndOneCluster) {
    HOLDFAST_CHECK("server F124");
    HOLDFAST_CHECK("server F134");
    const auto described = describe("default").response;
    EXPECT_EQ(described.namespace_info().state(), enums::NAMESPACE_STATE_REGISTERED);
    EXPECT_EQ(described.namespace_info().limits().blob_size_limit_error(), 2 << 20);
    EXPECT_EQ(described.namespace_info().limits().workflow_task_completion_size_limit_error(),
              4 << 20);
    EXPECT_TRUE(described.namespace_info().has_capabilities());
    EXPECT_EQ(described.config().workflow_execution_retention_ttl().seconds(), 24 * 3600);
    EXPECT_TRUE(described.config().has_bad_binaries());
    EXPECT_EQ(described.config().history_archival_state(), enums::ARCHIVAL_STATE_DISABLED);
    EXPECT_EQ(described.replication_config().active_cluster_name(), "active");
    EXPECT_EQ(described.replication_config().clusters_size(), 1);
}

TEST_F(NamespaceServiceTest, ANamespaceNeedsARetentionOfAnHourAtLeast) {
    HOLDFAST_CHECK("server F127");
    constexpr const char* text = "A valid retention period is not set on request.";
    workflow::RegisterNamespaceRequest without;
    without.set_namespace_("brief");
    EXPECT_EQ(call<workflow::RegisterNamespaceResponse>("RegisterNamespace", without).text(), text);
    EXPECT_EQ(add("brief", 0).text(), text);
    EXPECT_EQ(add("brief", 59 * 60).text(), text);
    EXPECT_TRUE(add("brief", 60 * 60).ok());
}

TEST_F(NamespaceServiceTest, ANameInUseIsRefusedWithItsDetail) {
    HOLDFAST_CHECK("server F128");
    const auto said = add("default");
    EXPECT_EQ(said.code(), StatusCode::already_exists);
    EXPECT_EQ(said.text(), "Namespace \"default\" already exists");
    EXPECT_EQ(said.refusal->detail_type,
              "temporal.api.errordetails.v1.NamespaceAlreadyExistsFailure");
}

TEST_F(NamespaceServiceTest, AGlobalNamespaceIsRefused) {
    HOLDFAST_CHECK("server F129");
    workflow::RegisterNamespaceRequest request;
    request.set_namespace_("world");
    request.mutable_workflow_execution_retention_period()->set_seconds(86400);
    request.set_is_global_namespace(true);
    EXPECT_EQ(call<workflow::RegisterNamespaceResponse>("RegisterNamespace", request).code(),
              StatusCode::invalid_argument);
}

TEST_F(NamespaceServiceTest, ANameMayHaveABlankInsideButNotAtItsEnds) {
    EXPECT_TRUE(add("my invoices").ok());
    EXPECT_EQ(add(" invoices").code(), StatusCode::invalid_argument);
    EXPECT_EQ(add("in\nvoices").code(), StatusCode::invalid_argument);
}

TEST_F(NamespaceServiceTest, AnUpdateMergesDataAndKeepsWhatItDoesNotName) {
    HOLDFAST_CHECK("server F130");
    HOLDFAST_CHECK("server F131");
    workflow::UpdateNamespaceRequest request;
    request.set_namespace_("default");
    request.mutable_update_info()->set_description("all we have");
    (*request.mutable_update_info()->mutable_data())["b"] = "2";
    ASSERT_TRUE(update(request).ok());
    request.mutable_update_info()->clear_description();
    request.mutable_update_info()->clear_data();
    (*request.mutable_update_info()->mutable_data())["a"] = "1";
    ASSERT_TRUE(update(request).ok());
    const auto info = describe("default").response.namespace_info();
    EXPECT_EQ(info.data().size(), 2U);
    EXPECT_EQ(info.description(), "all we have");
}

TEST_F(NamespaceServiceTest, ADeprecatedNamespaceIsNotRegisteredAgain) {
    HOLDFAST_CHECK("server F132");
    ASSERT_TRUE(add("old").ok());
    ASSERT_TRUE(set_state("old", enums::NAMESPACE_STATE_DEPRECATED).ok());
    EXPECT_EQ(set_state("old", enums::NAMESPACE_STATE_REGISTERED).text(),
              "Invalid namespace state update.");
}

TEST_F(NamespaceServiceTest, AnUpdateThatIsRefusedChangesNothing) {
    workflow::UpdateNamespaceRequest request;
    request.set_namespace_("default");
    request.mutable_update_info()->set_description("half");
    request.mutable_config()->mutable_workflow_execution_retention_ttl()->set_seconds(1);
    EXPECT_EQ(update(request).code(), StatusCode::invalid_argument);
    EXPECT_EQ(describe("default").response.namespace_info().description(), "");
}

TEST_F(NamespaceServiceTest, PagesShowEveryNamespaceOnceAndTheSystemsOwn) {
    HOLDFAST_CHECK("server F135");
    constexpr int made = 25;
    for (int i = 0; i < made; ++i) {
        ASSERT_TRUE(add("space-" + std::to_string(i)).ok());
    }
    std::multiset<std::string> names;
    workflow::ListNamespacesRequest request;
    request.set_page_size(10);
    do {
        const auto page =
            call<workflow::ListNamespacesResponse>("ListNamespaces", request).response;
        for (const auto& one : page.namespaces()) {
            names.insert(one.namespace_info().name());
        }
        request.set_next_page_token(page.next_page_token());
    } while (!request.next_page_token().empty());
    EXPECT_EQ(names.size(), made + 2U);
    EXPECT_EQ(names.count("temporal-system"), 1U);
    EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
}

class DeletedNamespaceTest : public NamespaceServiceTest {
protected:
    Said<operators::DeleteNamespaceResponse> remove(const std::string& name,
                                                    const std::string& id = {}) {
        operators::DeleteNamespaceRequest request;
        request.set_namespace_(name);
        request.set_namespace_id(id);
        return call<operators::DeleteNamespaceResponse>("DeleteNamespace", request);
    }
};

TEST_F(DeletedNamespaceTest, ADeletedNamespaceIsRenamedSoThatItsNameIsFree) {
    ASSERT_TRUE(add("gone").ok());
    const std::string id = describe("gone").response.namespace_info().id();
    const std::string renamed = remove("gone").response.deleted_namespace();
    EXPECT_EQ(renamed, "gone-deleted-" + id.substr(0, 5));
    EXPECT_EQ(describe("gone").code(), StatusCode::not_found);
    EXPECT_EQ(remove("", id).response.deleted_namespace(), renamed) << "a repeat says the same";
    EXPECT_TRUE(add("gone").ok());
    EXPECT_EQ(std::get<rpc::Refusal>(registry.resolve(renamed, NamespaceUse::ordinary)).code,
              StatusCode::failed_precondition);
}

TEST_F(DeletedNamespaceTest, TheSystemsNamespaceIsNotDeleted) {
    HOLDFAST_CHECK("server F137");
    EXPECT_EQ(remove("temporal-system").code(), StatusCode::failed_precondition);
}

TEST_F(DeletedNamespaceTest, AListShowsADeletedNamespaceOnlyIfAsked) {
    HOLDFAST_CHECK("server F140");
    ASSERT_TRUE(add("gone").ok());
    ASSERT_TRUE(remove("gone").ok());
    workflow::ListNamespacesRequest request;
    const auto count = [&] {
        return call<workflow::ListNamespacesResponse>("ListNamespaces", request)
            .response.namespaces_size();
    };
    EXPECT_EQ(count(), 2);
    request.mutable_namespace_filter()->set_include_deleted(true);
    EXPECT_EQ(count(), 3);
}

}  // namespace

}  // namespace holdfast::server::frontend::tests

#include <set>
#include <string>

#include "frontend/namespace/test/namespace_fixture.hpp"
#include "namespaces/cluster_identity.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

// A capability that the API gains must be decided on, too.
void expect_every_flag(const std::vector<Capability>& table,
                       const google::protobuf::Descriptor& message) {
    std::set<std::string> decided;
    for (const Capability& capability : table) {
        EXPECT_TRUE(decided.insert(std::string(capability.name)).second) << capability.name;
        EXPECT_FALSE(capability.because.empty()) << capability.name;
    }
    std::set<std::string> known;
    for (int i = 0; i < message.field_count(); ++i) {
        known.insert(message.field(i)->name());
    }
    EXPECT_EQ(decided, known);
}

TEST_F(NamespaceServiceTest, EveryCapabilityOfTheApiIsDecidedOn) {
    expect_every_flag(system_capabilities({}),
                      *workflow::GetSystemInfoResponse::Capabilities::descriptor());
    expect_every_flag(namespace_capabilities({}),
                      *temporal::api::namespace_::v1::NamespaceInfo::Capabilities::descriptor());
}

TEST_F(NamespaceServiceTest, OnlyWhatIsBuiltIsClaimed) {
    HOLDFAST_CHECK("server F119");
    const auto info =
        call<workflow::GetSystemInfoResponse>("GetSystemInfo", workflow::GetSystemInfoRequest())
            .response;
    EXPECT_EQ(info.server_version(), "1.32.0");
    workflow::GetSystemInfoResponse::Capabilities built;
    built.set_signal_and_query_header(true);
    built.set_internal_error_differentiation(true);
    built.set_activity_failure_include_heartbeat(true);
    built.set_encoded_failure_attributes(true);
    built.set_build_id_based_versioning(true);
    built.set_upsert_memo(true);
    built.set_sdk_metadata(true);
    built.set_count_group_by_execution_status(true);
    EXPECT_EQ(info.capabilities().DebugString(), built.DebugString());
    temporal::api::namespace_::v1::NamespaceInfo::Capabilities of_namespaces;
    of_namespaces.set_sync_update(true);
    of_namespaces.set_async_update(true);
    of_namespaces.set_worker_heartbeats(true);
    of_namespaces.set_poller_autoscaling(true);
    EXPECT_EQ(describe("default").response.namespace_info().capabilities().DebugString(),
              of_namespaces.DebugString());
}

TEST_F(NamespaceServiceTest, EagerStartsAreClaimedByTheSwitch) {
    const Switches on{.eager_workflow_start = true};
    workflow::GetSystemInfoResponse::Capabilities claimed;
    claim(system_capabilities(on), claimed);
    EXPECT_TRUE(claimed.eager_workflow_start());
    temporal::api::namespace_::v1::NamespaceInfo::Capabilities of_namespace;
    claim(namespace_capabilities(on), of_namespace);
    EXPECT_TRUE(of_namespace.eager_workflow_start());
}

TEST_F(NamespaceServiceTest, TheClustersIdIsThatOfTheDatabase) {
    HOLDFAST_CHECK("server F125");
    const auto info =
        call<workflow::GetClusterInfoResponse>("GetClusterInfo", workflow::GetClusterInfoRequest())
            .response;
    EXPECT_EQ(info.cluster_id().size(), 36U);
    EXPECT_EQ(info.supported_clients().at("temporal-ui"), "<3.0.0");
    EXPECT_EQ(info.cluster_name(), "active");
    EXPECT_EQ(info.persistence_store(), "sqlite");
    db.reopen();
    EXPECT_EQ(namespaces::cluster_id(db), info.cluster_id());
}

TEST_F(NamespaceServiceTest, ThereIsOneClusterOurselves) {
    const auto listed =
        call<operators::ListClustersResponse>("ListClusters", operators::ListClustersRequest())
            .response;
    ASSERT_EQ(listed.clusters_size(), 1);
    EXPECT_EQ(listed.clusters(0).cluster_name(), "active");
    EXPECT_TRUE(listed.clusters(0).is_connection_enabled());
}

}  // namespace

}  // namespace holdfast::server::frontend::tests

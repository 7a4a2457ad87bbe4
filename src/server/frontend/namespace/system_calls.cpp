#include <array>
#include <string_view>
#include <utility>

#include "frontend/namespace/blocking_call.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include "namespaces/cluster_identity.hpp"
#include <temporal/api/operatorservice/v1/request_response.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/sql/database.hpp>

namespace holdfast::server::frontend {

namespace {

namespace operators = temporal::api::operatorservice::v1;
namespace workflow = temporal::api::workflowservice::v1;

constexpr std::int64_t first_failover_version = 1;
constexpr std::int64_t failover_version_step = 10;

// Clients with these names are refused outside of the range.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> supported_clients{
    std::pair{"Nexus-go-sdk", "<2.0.0"},
    std::pair{"temporal-cli", "<2.0.0"},
    std::pair{"temporal-go", "<2.0.0"},
    std::pair{"temporal-java", "<2.0.0"},
    std::pair{"temporal-php", "<2.0.0"},
    std::pair{"temporal-server", "<2.0.0"},
    std::pair{"temporal-typescript", "<2.0.0"},
    std::pair{"temporal-ui", "<3.0.0"}};

void fill(workflow::GetClusterInfoResponse& response,
          const NamespaceServiceParts& parts,
          const NamespaceServiceOptions& options) {
    for (const auto& [name, range] : supported_clients) {
        (*response.mutable_supported_clients())[std::string(name)] = std::string(range);
    }
    response.set_server_version(options.server_version);
    response.set_cluster_id(namespaces::cluster_id(parts.db));
    response.set_cluster_name(namespaces::cluster_name);
    response.set_history_shard_count(options.history_shards);
    const std::string store{parts.db.dialect().name};
    response.set_persistence_store(store);
    response.set_visibility_store(store);
    response.set_initial_failover_version(first_failover_version);
    response.set_failover_version_increment(failover_version_step);
}

void fill(operators::ListClustersResponse& response,
          const NamespaceServiceParts& parts,
          const NamespaceServiceOptions& options) {
    operators::ClusterMetadata& self = *response.add_clusters();
    self.set_cluster_name(namespaces::cluster_name);
    self.set_cluster_id(namespaces::cluster_id(parts.db));
    self.set_address(options.address);
    self.set_initial_failover_version(first_failover_version);
    self.set_history_shard_count(options.history_shards);
    self.set_is_connection_enabled(true);
}

}  // namespace

void add_system_calls(rpc::Dispatch& dispatch,
                      const NamespaceServiceParts& parts,
                      const NamespaceServiceOptions& options) {
    // Every client asks this first, and some take it for a probe: it neither blocks nor fails.
    dispatch.add<workflow::GetSystemInfoRequest, workflow::GetSystemInfoResponse>(
        "/temporal.api.workflowservice.v1.WorkflowService/GetSystemInfo",
        [options](const workflow::GetSystemInfoRequest&,
                  rpc::Reply<workflow::GetSystemInfoResponse> reply) {
            workflow::GetSystemInfoResponse& response = reply.message();
            response.set_server_version(options.server_version);
            claim(system_capabilities(options.switches), *response.mutable_capabilities());
            std::move(reply).send();
        });
    add_blocking<workflow::GetClusterInfoRequest, workflow::GetClusterInfoResponse>(
        dispatch,
        parts.executor,
        "/temporal.api.workflowservice.v1.WorkflowService/GetClusterInfo",
        [parts, options](const auto&, auto& response) -> std::optional<rpc::Refusal> {
            fill(response, parts, options);
            return std::nullopt;
        });
    add_blocking<operators::ListClustersRequest, operators::ListClustersResponse>(
        dispatch,
        parts.executor,
        "/temporal.api.operatorservice.v1.OperatorService/ListClusters",
        [parts, options](const auto&, auto& response) -> std::optional<rpc::Refusal> {
            fill(response, parts, options);
            return std::nullopt;
        });
}

}  // namespace holdfast::server::frontend

#include "namespaces/cluster_identity.hpp"

#include <optional>
#include <span>

#include <server/namespaces/namespace.pb.h>

#include <holdfast/base/uuid.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/store/cluster.hpp>

namespace holdfast::server::namespaces {

namespace {

std::optional<std::string> stored_id(const store::Cluster& clusters) {
    const std::optional<store::ClusterMetadata> found = clusters.find(cluster_name);
    if (!found) {
        return std::nullopt;
    }
    stored::ClusterIdentity identity;
    const sql::Bytes& bytes = found->blob.data;
    if (!identity.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
        identity.id().empty()) {
        throw store::DamagedData("the identity of the cluster cannot be decoded");
    }
    return identity.id();
}

}  // namespace

std::string cluster_id(sql::Database& db) {
    store::Cluster clusters(db);
    if (std::optional<std::string> known = stored_id(clusters)) {
        return *std::move(known);
    }
    stored::ClusterIdentity identity;
    identity.set_min_reader(1);
    identity.set_id(Uuid::v4().text());
    const std::string text = identity.SerializeAsString();
    const auto bytes = std::as_bytes(std::span(text));
    try {
        clusters.save(
            cluster_name,
            {.blob = {.data = {bytes.begin(), bytes.end()}, .encoding = "Proto3"}, .version = 0});
    } catch (const store::ConditionFailed&) {
        // Another process was faster.
    }
    return stored_id(clusters).value();
}

}  // namespace holdfast::server::namespaces

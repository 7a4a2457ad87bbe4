#include <holdfast/store/cluster.hpp>

#include <algorithm>

#include "cluster/statements_cluster.hpp"
#include "times.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

ClusterMetadata metadata_of(const sql::Row& row, std::size_t column) {
    return {.blob = {.data = row.get<sql::Bytes>(column + 1),
                     .encoding = row.get<std::string>(column + 2)},
            .version = row.get<std::int64_t>(column)};
}

sql::Timestamp moment(const sql::Row& row, std::size_t column) {
    return sql::Timestamp{std::chrono::microseconds{row.get<std::int64_t>(column)}};
}

Member member_of(const sql::Row& row) {
    return {.host = HostId{row.get<Uuid>(0)},
            .rpc_address = row.get<std::string>(1),
            .rpc_port = row.get<std::uint16_t>(2),
            .role = Role{row.get<std::uint8_t>(3)},
            .session_start = row.get<sql::Timestamp>(4),
            .last_heartbeat = moment(row, 5),
            .record_expiry = moment(row, 6)};
}

}  // namespace

void Cluster::save(const std::string& cluster, const ClusterMetadata& metadata, const Call& call) {
    require_name("the cluster's name", cluster, name_bytes_max);
    require_blob(db_.dialect(), metadata.blob);
    sql::TxOptions options = options_of(operation::save_cluster, call);
    options.on_duplicate = sql::OnDuplicate::retry;  // The second creator finds it on retry.
    transact(db_, operation::save_cluster, options, [&](sql::Tx& tx) {
        sql::LockedRow locked = tx.ask_locked(
            fmt::format("cluster \"{}\"", cluster), {cluster}, statements::lock_cluster);
        const auto row = locked.rows().single();
        const std::int64_t found = row ? row->get<std::int64_t>(0) : 0;
        if (found != metadata.version) {
            throw ConditionFailed(
                fmt::format("cluster \"{}\" has version {}, not {}; read it again",
                            cluster,
                            found,
                            metadata.version));
        }
        const Blob& blob = metadata.blob;
        if (found == 0) {
            tx.exec(statements::insert_cluster, cluster, blob.data, blob.encoding);
        } else {
            tx.fenced(locked.verify({found}), statements::update_cluster, blob.data, blob.encoding);
        }
    });
}

std::optional<ClusterMetadata> Cluster::find(const std::string& cluster, const Call& call) const {
    require_name("the cluster's name", cluster, name_bytes_max);
    const sql::Result found =
        run(db_, operation::get_cluster, call, statements::select_cluster, cluster);
    const auto row = found.rows.single();
    return row ? std::optional(metadata_of(*row, 0)) : std::nullopt;
}

std::vector<std::pair<std::string, ClusterMetadata>> Cluster::list(std::int64_t page_size,
                                                                   const std::string& after,
                                                                   const Call& call) const {
    const sql::Result found = run(db_,
                                  operation::list_clusters,
                                  call,
                                  statements::page_of_clusters,
                                  after,
                                  require_page_size(page_size));
    std::vector<std::pair<std::string, ClusterMetadata>> page;
    for (const sql::Row row : found.rows) {
        page.emplace_back(row.get<std::string>(0), metadata_of(row, 1));
    }
    return page;
}

void Cluster::remove(const std::string& cluster, const Call& call) {
    require_name("the cluster's name", cluster, name_bytes_max);
    (void)run(db_, operation::delete_cluster, call, statements::delete_cluster, cluster);
}

void Cluster::heartbeat(const Member& member, std::chrono::microseconds ttl, const Call& call) {
    if (ttl.count() <= 0 || ttl > member_ttl_max || member.role == Role::all) {
        throw InvalidArgument(
            "a member has a role, and lives for more than no time and less than a century");
    }
    require_time("the start of a host's session", member.session_start);
    if (!member.rpc_address.empty()) {
        require_name("the host's address", member.rpc_address, name_bytes_max);
    }
    (void)run(db_,
              operation::upsert_member,
              call,
              statements::upsert_member,
              member.host.value,
              member.rpc_address,
              member.rpc_port,
              static_cast<std::int32_t>(member.role),
              member.session_start,
              static_cast<std::int64_t>(ttl.count()));
}

std::vector<Member> Cluster::members(const MemberFilter& filter,
                                     std::int64_t page_size,
                                     HostId after,
                                     const Call& call) const {
    const sql::Result found =
        run(db_,
            operation::get_members,
            call,
            statements::page_of_members,
            after.value,
            !filter.host.has_value(),
            filter.host.value_or(HostId{}).value,
            !filter.rpc_address.has_value(),
            filter.rpc_address.value_or(""),
            static_cast<std::int32_t>(filter.role),
            std::int64_t{filter.heartbeat_within.value_or(std::chrono::microseconds{-1}).count()},
            std::clamp(filter.session_started_after.value_or(earliest), earliest, latest),
            require_page_size(page_size));
    std::vector<Member> page;
    for (const sql::Row row : found.rows) {
        page.push_back(member_of(row));
    }
    return page;
}

std::int64_t Cluster::prune(std::int64_t limit, const Call& call) {
    return in_chunks(require_page_size(limit), [&](std::int64_t rows) {
        return run(db_, operation::prune_members, call, statements::prune_members, rows).changed;
    });
}

}  // namespace holdfast::store

#include <holdfast/store/nexus.hpp>

#include "cluster/statements_nexus.hpp"
#include "transaction.hpp"

namespace holdfast::store {
namespace {

constexpr std::int64_t the_table = 0;

sql::LockedRow lock_table(sql::Tx& tx) {
    return tx.ask_locked(
        "the table of nexus endpoints", {the_table}, statements::lock_endpoints_version);
}
sql::LockedRow lock_endpoint(sql::Tx& tx, EndpointId id) {
    return tx.ask_locked("nexus endpoint " + id.text(), {id.value}, statements::lock_endpoint);
}

// 0 if there is no row: a table without changes, an endpoint that does not exist.
std::int64_t version_of(const sql::Rows& rows) {
    const auto row = rows.single();
    return row ? row->get<std::int64_t>(0) : 0;
}

void require_table(std::int64_t found, std::int64_t expected) {
    if (found != expected) {
        throw ConditionFailed("nexus endpoints table version mismatch");
    }
}

// Requires: `table` holds `version`; 0 if there is no row.
void move_table(sql::Tx& tx, sql::LockedRow& table, std::int64_t version) {
    if (version == 0) {
        tx.exec(statements::insert_endpoints_version);
    } else {
        tx.fenced(table.verify({version}), statements::update_endpoints_version);
    }
}

Endpoint endpoint_of(const sql::Row& row) {
    return {.id = EndpointId{row.get<Uuid>(0)},
            .blob = {.data = row.get<sql::Bytes>(2), .encoding = row.get<std::string>(3)},
            .version = row.get<std::int64_t>(1)};
}

}  // namespace

void NexusEndpoints::put(const Endpoint& endpoint, std::int64_t table_version, const Call& call) {
    require_blob(db_.dialect(), endpoint.blob);
    sql::TxOptions options = options_of(operation::put_endpoint, call);
    options.on_duplicate = sql::OnDuplicate::retry;  // The second creator finds the row on retry.
    transact(db_, operation::put_endpoint, options, [&](sql::Tx& tx) {
        sql::LockedRow table = lock_table(tx);
        sql::LockedRow itself = lock_endpoint(tx, endpoint.id);
        require_table(version_of(table.rows()), table_version);
        if (version_of(itself.rows()) != endpoint.version) {
            throw ConditionFailed("nexus endpoint version mismatch");
        }
        move_table(tx, table, table_version);
        const Blob& blob = endpoint.blob;
        if (endpoint.version == 0) {
            tx.exec(statements::insert_endpoint, endpoint.id.value, blob.data, blob.encoding);
        } else {
            tx.fenced(itself.verify({endpoint.version}),
                      statements::update_endpoint,
                      blob.data,
                      blob.encoding);
        }
    });
}

void NexusEndpoints::remove(EndpointId id, std::int64_t table_version, const Call& call) {
    transact(db_, operation::delete_endpoint, call, [&](sql::Tx& tx) {
        sql::LockedRow table = lock_table(tx);
        sql::LockedRow itself = lock_endpoint(tx, id);
        require_table(version_of(table.rows()), table_version);
        const std::int64_t version = version_of(itself.rows());
        if (version == 0) {
            throw NotFound("nexus endpoint not found");
        }
        move_table(tx, table, table_version);
        tx.fenced(itself.verify({version}), statements::delete_endpoint);
    });
}

std::optional<Endpoint> NexusEndpoints::find(EndpointId id, const Call& call) const {
    const sql::Result found =
        run(db_, operation::get_endpoint, call, statements::select_endpoint, id.value);
    const auto row = found.rows.single();
    return row ? std::optional(endpoint_of(*row)) : std::nullopt;
}

EndpointPage NexusEndpoints::list(std::int64_t page_size,
                                  EndpointId after,
                                  std::int64_t table_version,
                                  const Call& call) const {
    const std::int64_t rows_wanted = page_size == 0 ? 0 : require_page_size(page_size);
    return transact(db_, operation::list_endpoints, call, [&](sql::Tx& tx) {
        sql::Answer table = tx.ask(statements::select_endpoints_version);
        sql::Answer rows = tx.ask(statements::page_of_endpoints, after.value, rows_wanted);
        EndpointPage page{.table_version = version_of(table.rows()), .endpoints = {}};
        if (table_version != 0) {
            require_table(page.table_version, table_version);
        }
        for (const sql::Row row : rows.rows()) {
            page.endpoints.push_back(endpoint_of(row));
        }
        return page;
    });
}

}  // namespace holdfast::store

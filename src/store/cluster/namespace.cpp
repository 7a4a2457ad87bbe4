#include <holdfast/store/namespace.hpp>

#include "cluster/statements_namespace.hpp"
#include "id_digest.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

#include <holdfast/sql/error.hpp>

namespace holdfast::store {
namespace {

constexpr std::int64_t partition = 54321;

Namespace namespace_of(const sql::Row& row) {
    return {.id = NamespaceId{row.get<Uuid>(0)},
            .name = row.get<std::string>(1),
            .info = {.data = row.get<sql::Bytes>(3), .encoding = row.get<std::string>(4)},
            .is_global = row.get<bool>(5),
            .notification_version = row.get<std::int64_t>(2)};
}

std::optional<Namespace> single(const sql::Rows& rows) {
    const auto row = rows.single();
    return row ? std::optional(namespace_of(*row)) : std::nullopt;
}

std::int64_t counter_of(const sql::Rows& rows) {
    const auto row = rows.single();
    if (!row) {
        throw DamagedData("the counter of namespaces is missing; apply the schema again");
    }
    return row->get<std::int64_t>(0);
}

sql::LockedRow lock_counter(sql::Tx& tx) {
    return tx.ask_locked(
        "the counter of namespaces", {partition}, statements::lock_namespace_metadata);
}

// Requires: `counter` is what `locked` holds.
void write(sql::Tx& tx,
           const sql::Statement& statement,
           const Namespace& made,
           sql::LockedRow& locked,
           std::int64_t counter) {
    tx.exec(statement,
            made.id.value,
            key_digest(made.name),
            made.name,
            counter,
            made.info.data,
            made.info.encoding,
            made.is_global);
    tx.fenced(locked.verify({counter}), statements::update_namespace_metadata);
}

void require_namespace(const sql::Dialect& dialect, const Namespace& made) {
    require_name("the namespace's name", made.name, id_bytes_max);
    require_blob(dialect, made.info);
}

}  // namespace

void Namespaces::create(const Namespace& made, const Call& call) {
    require_namespace(db_.dialect(), made);
    transact(db_, operation::create_namespace, call, [&](sql::Tx& tx) {
        sql::LockedRow locked = lock_counter(tx);
        sql::Answer by_id = tx.ask(statements::select_namespace, made.id.value);
        sql::Answer by_name = tx.ask(statements::select_namespace_by_name, key_digest(made.name));
        const std::int64_t counter = counter_of(locked.rows());
        if (!by_id.rows().empty() || !by_name.rows().empty()) {
            throw NamespaceAlreadyExists(fmt::format(
                "there is a namespace \"{}\" or {} already", made.name, made.id.text()));
        }
        write(tx, statements::insert_namespace, made, locked, counter);
    });
}

void Namespaces::update(const Namespace& made, const Call& call) {
    require_namespace(db_.dialect(), made);
    transact(db_, operation::update_namespace, call, [&](sql::Tx& tx) {
        sql::LockedRow locked = lock_counter(tx);
        sql::Answer by_id = tx.ask(statements::select_namespace, made.id.value);
        sql::Answer by_name = tx.ask(statements::select_namespace_by_name, key_digest(made.name));
        const std::int64_t counter = counter_of(locked.rows());
        if (counter != made.notification_version) {
            throw ConditionFailed(
                fmt::format("namespaces have changed {} times, not {}; read again",
                            counter,
                            made.notification_version));
        }
        if (by_id.rows().empty()) {
            throw NotFound(fmt::format("there is no namespace {}", made.id.text()));
        }
        const std::optional<Namespace> same_name = single(by_name.rows());
        if (same_name && same_name->id != made.id) {
            throw ConditionFailed(fmt::format("another namespace is called \"{}\"", made.name));
        }
        write(tx, statements::update_namespace, made, locked, counter);
    });
}

void Namespaces::remove(NamespaceId id, const Call& call) {
    transact(db_, operation::delete_namespace, call, [&](sql::Tx& tx) {
        (void)lock_counter(tx).rows();
        tx.exec(statements::delete_namespace, id.value);
    });
}

void Namespaces::remove(const std::string& name, const Call& call) {
    require_name("the namespace's name", name, id_bytes_max);
    transact(db_, operation::delete_namespace, call, [&](sql::Tx& tx) {
        (void)lock_counter(tx).rows();
        tx.exec(statements::delete_namespace_by_name, key_digest(name), name);
    });
}

std::optional<Namespace> Namespaces::find(NamespaceId id, const Call& call) const {
    return single(
        run(db_, operation::get_namespace, call, statements::select_namespace, id.value).rows);
}

std::optional<Namespace> Namespaces::find(const std::string& name, const Call& call) const {
    require_name("the namespace's name", name, id_bytes_max);
    const Uuid digest = key_digest(name);
    auto found = single(
        run(db_, operation::get_namespace, call, statements::select_namespace_by_name, digest)
            .rows);
    if (found) {
        require_same_id("the namespace", found->name, name);
    }
    return found;
}

std::vector<Namespace> Namespaces::list(std::int64_t page_size,
                                        NamespaceId after,
                                        const Call& call) const {
    const sql::Result found = run(db_,
                                  operation::list_namespaces,
                                  call,
                                  statements::page_of_namespaces,
                                  after.value,
                                  require_page_size(page_size));
    std::vector<Namespace> page;
    for (const sql::Row row : found.rows) {
        page.push_back(namespace_of(row));
    }
    return page;
}

std::int64_t Namespaces::notification_version(const Call& call) const {
    return counter_of(
        run(db_, operation::get_namespace_metadata, call, statements::select_namespace_metadata)
            .rows);
}

}  // namespace holdfast::store

#include "sql_provider_deletes.hpp"

#include <set>

#include "sql_provider_parts.hpp"
#include "statements.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::flow {

std::optional<LockedInstance> lock_instance(sql::Tx& tx, std::string_view instance) {
    const sql::Rows rows = tx.query(statements::lock_instance, instance);
    if (rows.empty()) {
        return std::nullopt;
    }
    return LockedInstance{.instance = std::string(instance),
                          .token = rows[0].get<Uuid>(0),
                          .status = stored_status(rows[0].get<std::string>(1)),
                          .parent = rows[0].get<std::optional<std::string>>(2),
                          .execution = rows[0].get<ExecutionId>(3)};
}

std::vector<std::string> children_of(sql::Tx& tx, std::string_view instance) {
    std::vector<std::string> children;
    for (const sql::Row row : tx.query(statements::list_children, instance)) {
        children.push_back(row.get<std::string>(0));
    }
    return children;
}

std::vector<LockedInstance> lock_tree(sql::Tx& tx, std::string_view root) {
    std::vector<std::string> found{std::string(root)};
    std::set<std::string> known{found.front()};
    std::vector<LockedInstance> locked;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (auto instance = lock_instance(tx, found[i])) {
            locked.push_back(std::move(*instance));
        }
        for (std::string& child : children_of(tx, found[i])) {
            if (known.insert(child).second) {
                found.push_back(std::move(child));
            }
        }
    }
    if (locked.empty() || locked.front().instance != root) {
        throw Error(Code::not_found,
                    Outcome::not_applied,
                    fmt::format("there is no workflow '{}'; check its id", root));
    }
    return locked;
}

DeleteCounts delete_instance(sql::Tx& tx, const LockedInstance& instance) {
    const std::string& id = instance.instance;
    tx.fenced(instance_guard(id, instance.token), statements::delete_instance);
    tx.exec(statements::close_mailbox, id);
    sql::Answer messages = tx.ask(statements::delete_messages, id);
    sql::Answer executions = tx.ask(statements::delete_executions, id);
    sql::Answer history = tx.ask(statements::delete_history, id);
    tx.exec(statements::drop_activities, id);
    tx.exec(statements::delete_kv, id);
    tx.exec(statements::delete_attributes, id);
    DeleteCounts counts{.instances = 1};
    counts.messages = int64(messages.rows().size());
    counts.executions = int64(executions.rows().size()) + 1;
    for (const sql::Row row : history.rows()) {
        counts.events += row.get<std::int64_t>(0);
    }
    return counts;
}

DeleteCounts& operator+=(DeleteCounts& sum, const DeleteCounts& more) {
    sum.instances += more.instances;
    sum.executions += more.executions;
    sum.events += more.events;
    sum.messages += more.messages;
    return sum;
}

}  // namespace holdfast::flow

#include "flow/access.hpp"

#include <algorithm>
#include <vector>

#include "database.hpp"
#include "flow/text.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/sql/schema.hpp>

namespace holdfast::app {
namespace {

// Opening a store creates the tables of a file; a read must not.
sql::Database& with_tables(sql::Database& db, const std::stop_token& stop) {
    sql::schema_require(db, flow::schema_part(), {.stop = stop});
    return db;
}

}  // namespace

FlowAccess::FlowAccess(const Context& context)
    : db_(required_database_url(context), database_options(context)),
      store_(with_tables(db_, context.stop)),
      client_(store_) {}

flow::InstanceInfo FlowAccess::info(std::string_view id) {
    std::optional<flow::InstanceInfo> found = client_.info(id);
    if (!found) {
        throw Error(Code::not_found,
                    Outcome::not_applied,
                    fmt::format("there is no workflow '{}'; see holdfast flow list", id));
    }
    return std::move(*found);
}

flow::InstanceInfo FlowAccess::running(std::string_view id, std::string_view what) {
    flow::InstanceInfo found = info(id);
    if (is_final(found.status)) {
        throw Error(Code::condition_failed,
                    Outcome::not_applied,
                    fmt::format("workflow '{}' has {}; it is too late to {} it",
                                id,
                                found.status == flow::Status::cancelled ? "been cancelled"
                                                                        : to_string(found.status),
                                what));
    }
    return found;
}

flow::ExecutionId FlowAccess::execution_of(const flow::InstanceInfo& info,
                                           flow::ExecutionId wanted) {
    if (wanted == 0 || wanted == info.execution) {
        return info.execution;
    }
    const std::vector<flow::ExecutionInfo> all = client_.executions(info.instance);
    if (std::ranges::find(all, wanted, &flow::ExecutionInfo::execution) == all.end()) {
        throw Error(Code::not_found,
                    Outcome::not_applied,
                    fmt::format("workflow '{}' has no execution {}; the current one is {}, and "
                                "earlier ones may have been pruned",
                                info.instance,
                                wanted,
                                info.execution));
    }
    return wanted;
}

flow::Moment FlowAccess::now() {
    return client_.provider().now();
}

}  // namespace holdfast::app

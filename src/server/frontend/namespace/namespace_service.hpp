// The calls about the server itself, its namespaces, their search attributes, and lists of runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "frontend/namespace/capabilities.hpp"
#include "frontend/parts.hpp"
#include "history/limits.hpp"

namespace holdfast {
class Clock;
}

namespace holdfast::sql {
class Database;
}

namespace holdfast::server {
class Executor;
}

namespace holdfast::server::namespaces {
class Registry;
}

namespace holdfast::server::rpc {
class Dispatch;
}

namespace holdfast::server::frontend {

struct NamespaceServiceParts {
    sql::Database& db;
    namespaces::Registry& namespaces;
    Executor& executor;  // Calls that read or write the store run there.
    const Clock& clock;
    // Deletes what a namespace holds that was marked; nothing: it stays.
    std::function<void(const std::string& namespace_id)> begin_deletion = {};
};

// What the server says of itself; the limits must be those that it keeps to.
struct NamespaceServiceOptions {
    Switches switches{};
    std::string server_version = "1.32.0";  // Of the API: clients decide by it.
    std::int32_t history_shards = 1;
    std::string address = "127.0.0.1:7233";
    std::size_t blob_bytes_max = history::Limits{}.blob_bytes_max;
    std::size_t memo_bytes_max = history::Limits{}.blob_bytes_max;
    std::size_t completion_bytes_max = 4 * history::mib;  // That of a request.
    std::int32_t list_rows_max = 1000;                    // Of one page.
};

// All of the below. Requires: what `parts` names outlives the dispatch and the executor's jobs, and
// the registry is open before the dispatch is.
void add_namespace_service(rpc::Dispatch& dispatch,
                           const NamespaceServiceParts& parts,
                           const NamespaceServiceOptions& options = {});

// What FrontendParts::check_attributes is: the values that a request brings, against the registry.
// Requires: `registry` outlives it.
[[nodiscard]] AttributeCheck attribute_check(const namespaces::Registry& registry);

// GetSystemInfo, GetClusterInfo, ListClusters.
void add_system_calls(rpc::Dispatch& dispatch,
                      const NamespaceServiceParts& parts,
                      const NamespaceServiceOptions& options);
// Register, Describe, List, Update, Deprecate and DeleteNamespace.
void add_namespace_calls(rpc::Dispatch& dispatch,
                         const NamespaceServiceParts& parts,
                         const NamespaceServiceOptions& options);
// Add, Remove and ListSearchAttributes, GetSearchAttributes.
void add_search_attribute_calls(rpc::Dispatch& dispatch, const NamespaceServiceParts& parts);
// List, Scan, Count, ListOpen, ListClosed and ListArchivedWorkflowExecutions.
void add_list_calls(rpc::Dispatch& dispatch,
                    const NamespaceServiceParts& parts,
                    const NamespaceServiceOptions& options);

}  // namespace holdfast::server::frontend

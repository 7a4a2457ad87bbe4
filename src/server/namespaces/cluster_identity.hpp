// The id of the cluster that a database belongs to.
#pragma once

#include <string>

namespace holdfast::sql {
class Database;
}

namespace holdfast::server::namespaces {

inline constexpr const char* cluster_name = "active";

// A UUID, drawn when it is first asked for and the same ever after, for every process on the
// database. Blocks. Requires: the schema of `db` holds the part `store`.
[[nodiscard]] std::string cluster_id(sql::Database& db);

}  // namespace holdfast::server::namespaces

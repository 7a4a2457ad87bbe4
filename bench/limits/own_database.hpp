// A database that a benchmark makes for itself on a server, and drops.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/sql/statement.hpp>

namespace holdfast::bench {

// Tables of ours have names that a service may have given to its own.
struct OwnDatabase {
    std::string_view name;
    sql::Statement create;
    sql::Statement drop;
};

// The same server, another database.
[[nodiscard]] std::string url_of_database(const std::string& server, std::string_view database);

}  // namespace holdfast::bench

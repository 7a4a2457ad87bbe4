#include <holdfast/lock/verify.hpp>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

#include "statements/statements.hpp"
#include <fmt/core.h>

#include <holdfast/lock/error.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::lock {
namespace {

enum class Type : std::uint8_t { text, number };

struct Table {
    std::string name;
    std::initializer_list<std::pair<std::string_view, Type>> columns;
    // Each by itself: ON CONFLICT and the guard depend on them.
    std::initializer_list<std::string_view> unique;
};

// What the database says about one table.
struct Found {
    std::set<std::pair<std::string, std::string>> columns;  // Name and type.
    std::set<std::string> unique;
    bool ordinary = true;  // Logged, and of this server.
};

Found look(sql::Database& db,
           const std::string& schema,
           const std::string& table,
           const CallOptions& options) {
    const sql::TxOptions reading{
        .deadline = options.deadline.value_or(Deadline::after(std::chrono::seconds{5})),
        .stop = options.stop,
        .read_only = true};
    const sql::Rows rows =
        db.dialect().embedded
            ? db.run("LockVerify", reading, statements::describe_file, table).rows
            : db.run("LockVerify", reading, statements::describe_server, table, schema).rows;
    Found found;
    for (const sql::Row row : rows) {
        const auto [what, name, detail] = row.as<std::string, std::string, std::string>();
        if (what == "column") {
            found.columns.emplace(name, detail);
        } else if (what == "unique") {
            found.unique.insert(name);
        } else {
            found.ordinary = detail == "p" && (name == "r" || name == "p");
        }
    }
    return found;
}

bool has_type(std::string_view type, Type wanted) {
    // As PostgreSQL and SQLite call them.
    return wanted == Type::text ? type == "text" : type == "bigint" || type == "integer";
}

void compare(const Table& wanted, const Found& found, std::vector<std::string>& problems) {
    if (found.columns.empty()) {
        problems.push_back(fmt::format(
            "the table {} is missing; run `holdfast schema apply --part lock`", wanted.name));
        return;
    }
    for (const auto& [column, type] : wanted.columns) {
        const auto there =
            std::ranges::find(found.columns, column, &std::pair<std::string, std::string>::first);
        if (there == found.columns.end()) {
            problems.push_back(fmt::format("the table {} has no column {}", wanted.name, column));
        } else if (!has_type(there->second, type)) {
            problems.push_back(fmt::format("the column {} of {} is {} and not {}",
                                           column,
                                           wanted.name,
                                           there->second,
                                           type == Type::text ? "text" : "bigint"));
        }
    }
    for (const std::string_view column : wanted.unique) {
        if (!found.unique.contains(std::string(column))) {
            problems.push_back(
                fmt::format("{} has no valid unique index on {} alone, of all rows: duplicate "
                            "rows are possible",
                            wanted.name,
                            column));
        }
    }
    if (!found.ordinary) {
        problems.push_back(fmt::format(
            "the table {} is UNLOGGED or not an ordinary table: a crash can set it back",
            wanted.name));
    }
}

}  // namespace

std::vector<std::string> schema_problems(Locks& locks, const CallOptions& options) {
    using enum Type;
    const Names& names = locks.options().names;
    const std::initializer_list<Table> tables{
        {names.locks,
         {{"key", text},
          {"lock_id", text},
          {"expires_at_ms", number},
          {"acquired_at_ms", number},
          {"fence", text},
          {"user_key", text},
          {"owner", text},
          {"meta", text},
          {"group_id", text}},
         {"key", "lock_id"}},
        {names.fences,
         {{"fence_key", text}, {"fence", number}, {"key_debug", text}},
         {"fence_key"}},
        {names.locks + "_waiters",
         {{"key", text},
          {"since_us", number},
          {"lock_id", text},
          {"waiter", text},
          {"until_ms", number}},
         {}},
        {names.locks + "_permits",
         {{"key", text},
          {"slot", number},
          {"permit_id", text},
          {"expires_at_ms", number},
          {"acquired_at_ms", number},
          {"fence", number},
          {"permits", number},
          {"owner", text}},
         {"permit_id"}},
        {names.locks + "_resources", {{"resource", text}, {"last_fence", number}}, {"resource"}}};
    std::vector<std::string> problems;
    try {
        for (const Table& table : tables) {
            compare(table, look(locks.database(), names.schema, table.name, options), problems);
        }
    } catch (const std::exception&) {
        throw to_lock_error(std::current_exception());
    }
    return problems;
}

}  // namespace holdfast::lock

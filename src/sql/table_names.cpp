#include <holdfast/sql/table_names.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sql {
namespace {

constexpr std::size_t suffix_bytes_max = 10;

// Words that PostgreSQL or SQLite reserve. Our statements quote names, but other tools that read
// the tables may not.
constexpr std::array<std::string_view, 103> reserved_words{
    "add",        "all",         "alter",   "analyse",     "analyze",      "and",
    "any",        "array",       "as",      "asc",         "asymmetric",   "authorization",
    "between",    "binary",      "both",    "case",        "cast",         "check",
    "collate",    "collation",   "column",  "commit",      "concurrently", "constraint",
    "create",     "cross",       "default", "deferrable",  "delete",       "desc",
    "distinct",   "do",          "drop",    "else",        "end",          "escape",
    "except",     "exists",      "false",   "fetch",       "for",          "foreign",
    "freeze",     "from",        "full",    "grant",       "group",        "having",
    "ilike",      "in",          "index",   "initially",   "inner",        "insert",
    "intersect",  "into",        "is",      "isnull",      "join",         "lateral",
    "leading",    "left",        "like",    "limit",       "localtime",    "natural",
    "not",        "notnull",     "null",    "offset",      "on",           "only",
    "or",         "order",       "outer",   "overlaps",    "placing",      "primary",
    "references", "returning",   "right",   "select",      "set",          "similar",
    "some",       "symmetric",   "table",   "tablesample", "then",         "to",
    "trailing",   "transaction", "true",    "union",       "unique",       "update",
    "user",       "using",       "values",  "variadic",    "verbose",      "when",
    "where"};

void check_name(std::string_view what, std::string_view name, std::size_t bytes_max) {
    const auto refuse = [&](std::string_view why) {
        throw InvalidArgument(fmt::format(
            "{} {}; choose 1 to {} lower-case letters, digits and underscores, a letter first",
            what,
            why,
            table_name_bytes_max));
    };
    if (name.empty()) {
        refuse("must not be empty");
    }
    if (name.size() > bytes_max) {
        refuse(fmt::format("has {} bytes, which is too long", name.size()));
    }
    const bool plain = std::ranges::all_of(
        name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
    if (!plain || (name[0] >= '0' && name[0] <= '9')) {
        refuse("has a character that is not allowed there");
    }
    if (std::ranges::find(reserved_words, name) != reserved_words.end()) {
        refuse("is a word that SQL reserves");
    }
}

}  // namespace

void check_table_name(std::string_view what, std::string_view name) {
    check_name(what, name, table_name_bytes_max);
}

TableNames::TableNames(std::string schema, std::vector<std::pair<std::string, std::string>> tables)
    : schema_(std::move(schema)), tables_(std::move(tables)) {
    static std::atomic<std::uint64_t> made = 0;
    id_ = ++made;
    if (!schema_.empty()) {
        check_table_name("the schema's name", schema_);
    }
    std::set<std::string_view> seen;
    for (const auto& [hole, name] : tables_) {
        check_name(fmt::format("the name of the table for {}", hole),
                   name,
                   table_name_bytes_max + suffix_bytes_max);
        if (!seen.insert(name).second) {
            throw InvalidArgument(
                fmt::format("the name of the table for {} is taken by another; choose different "
                            "names",
                            hole));
        }
    }
}

std::string TableNames::fill(std::string_view hole) const {
    const std::size_t dot = hole.find('.');
    const std::string_view kind = hole.substr(0, dot);
    std::string_view table = hole.substr(dot + 1);
    std::string_view index;
    if (kind == "index") {
        const std::size_t second = table.find('.');
        if (second == std::string_view::npos) {
            return {};
        }
        index = table.substr(second + 1);
        table = table.substr(0, second);
    }
    const auto found = std::ranges::find(
        tables_, table, [](const auto& entry) { return std::string_view(entry.first); });
    if (found == tables_.end()) {
        return {};
    }
    if (!index.empty()) {  // An index lives in its table's schema.
        return fmt::format("\"idx_{}_{}\"", found->second, index);
    }
    return schema_.empty() ? fmt::format("\"{}\"", found->second)
                           : fmt::format("\"{}\".\"{}\"", schema_, found->second);
}

}  // namespace holdfast::sql

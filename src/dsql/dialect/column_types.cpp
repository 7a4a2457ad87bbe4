#include "dialect/column_types.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "dialect/name_list.hpp"
#include <nlohmann/json.hpp>

namespace holdfast::dsql {
namespace {

using nlohmann::json;
using Pair = std::pair<std::string_view, std::string_view>;

// Types a column may have: the name in the catalogue, and how it is displayed.
constexpr std::array stored{
    Pair{"int2", "smallint"},
    Pair{"int4", "integer"},
    Pair{"int8", "bigint"},
    Pair{"float4", "real"},
    Pair{"float8", "double precision"},
    Pair{"numeric", "numeric"},
    Pair{"bpchar", "character"},
    Pair{"varchar", "character varying"},
    Pair{"text", "text"},
    Pair{"date", "date"},
    Pair{"time", "time without time zone"},
    Pair{"timetz", "time with time zone"},
    Pair{"timestamp", "timestamp without time zone"},
    Pair{"timestamptz", "timestamp with time zone"},
    Pair{"interval", "interval"},
    Pair{"bool", "boolean"},
    Pair{"bytea", "bytea"},
    Pair{"uuid", "uuid"},
    Pair{"json", "json"},
    Pair{"jsonb", "jsonb"},
};

// Types of PostgreSQL that a column may not have, and that no query may name either.
constexpr std::array<std::string_view, 39> refused{
    "money",
    "xml",
    "cidr",
    "macaddr",
    "macaddr8",
    "point",
    "line",
    "lseg",
    "box",
    "path",
    "polygon",
    "circle",
    "tsvector",
    "tsquery",
    "int4range",
    "int8range",
    "numrange",
    "tsrange",
    "tstzrange",
    "daterange",
    "int4multirange",
    "int8multirange",
    "nummultirange",
    "tsmultirange",
    "tstzmultirange",
    "datemultirange",
    "bit",
    "varbit",
    "pg_lsn",
    "pg_snapshot",
    "txid_snapshot",
    "jsonpath",
    "refcursor",
    "gtsvector",
    "aclitem",
    "pg_node_tree",
    "pg_ndistinct",
    "pg_mcv_list",
    "pg_dependencies",
};

// Types for queries, not for columns.
constexpr std::array<std::string_view, 18> query_only{
    "inet",
    "oid",
    "name",
    "char",
    "tid",
    "xid",
    "xid8",
    "cid",
    "regclass",
    "regtype",
    "regproc",
    "regprocedure",
    "regoper",
    "regoperator",
    "regnamespace",
    "regrole",
    "regcollation",
    "regconfig",
};

constexpr std::array<std::string_view, 6> serials{
    "serial", "serial2", "serial4", "serial8", "bigserial", "smallserial"};

std::string_view display_of(std::string_view name) {
    for (const auto& [internal, display] : stored) {
        if (internal == name) {
            return display;
        }
    }
    return name == "varbit" ? "bit varying" : name;
}

std::optional<std::int64_t> length_of(const json& type_name) {
    const auto mods = type_name.find("typmods");
    if (mods == type_name.end() || !mods->is_array() || mods->size() != 1) {
        return std::nullopt;
    }
    const json* constant = &(*mods)[0];
    for (const char* field : {"A_Const", "ival"}) {
        const auto next = constant->find(field);
        if (next == constant->end()) {
            return std::nullopt;
        }
        constant = &*next;
    }
    return constant->value("ival", std::int64_t{0});
}

}  // namespace

bool type_in_key(std::string_view display) {
    return display != "bytea" && display != "json" && display != "jsonb" &&
           display != "time with time zone" && display != "interval";
}

ColumnType column_type(const json& type_name) {
    ColumnType type;
    std::string name;
    bool builtin = false;
    if (const auto names = type_name.find("names"); names != type_name.end() && !names->empty()) {
        const auto part = [](const json& node) {
            const auto string = node.find("String");
            return string == node.end() ? std::string{} : string->value("sval", "");
        };
        name = part(names->back());
        builtin = names->size() == 1 || part(names->front()) == "pg_catalog";
    }
    type.array = type_name.contains("arrayBounds") || (builtin && name.starts_with('_'));
    if (!builtin) {
        type.display = name;
        type.in_column = !type.array;
        return type;
    }
    type.serial = lists(serials, name);
    type.display = display_of(name.starts_with('_') ? std::string_view(name).substr(1) : name);
    type.in_query = !lists(refused, name);
    type.in_column = type.in_query && !lists(query_only, name) && !type.array;
    type.in_key = type_in_key(type.display);
    type.length = length_of(type_name);
    if (type.array) {
        type.display += "[]";
    }
    return type;
}

}  // namespace holdfast::dsql

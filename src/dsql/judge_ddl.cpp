// What makes, changes and drops things.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "column_types.hpp"
#include "judge_parts.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {
namespace {

template <class List>
bool lists(const List& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

TableName name_from_list(const Json& items, std::size_t length) {
    TableName name;
    if (length > 0 && length <= items.size()) {
        name.name = string_value(items[length - 1]);
        name.schema = length > 1 ? string_value(items[length - 2]) : "";
    }
    return name;
}

void keep_target(const Judging& judging, TableName name) {
    if (!name.name.empty()) {
        judging.out.tables.push_back(name);
        judging.out.target = std::move(name);
    }
}

void judge_drop(const Judging& judging, const Json& node) {
    static constexpr std::array<std::string_view, 8> droppable{"OBJECT_TABLE",
                                                               "OBJECT_VIEW",
                                                               "OBJECT_SEQUENCE",
                                                               "OBJECT_SCHEMA",
                                                               "OBJECT_DOMAIN",
                                                               "OBJECT_STATISTIC_EXT",
                                                               "OBJECT_FUNCTION",
                                                               "OBJECT_INDEX"};
    const std::string type = text_field(node, "removeType");
    if (!lists(droppable, type)) {
        judging.refuse("drop-object", not_supported, "unsupported object in DROP statement");
    }
    if (flag_field(node, "concurrent")) {
        judging.refuse(
            "index-concurrently", not_supported, "CONCURRENTLY not supported for DROP INDEX");
    }
    if (type == "OBJECT_TABLE" || type == "OBJECT_VIEW") {
        for (const Json& object : field(node, "objects")) {
            const Json& items = field(field(object, "List"), "items");
            keep_target(judging, name_from_list(items, items.size()));
        }
    }
}

void judge_rename(const Judging& judging, const Json& node) {
    static constexpr std::array<std::string_view, 12> renamable{"OBJECT_TABLE",
                                                                "OBJECT_COLUMN",
                                                                "OBJECT_VIEW",
                                                                "OBJECT_SEQUENCE",
                                                                "OBJECT_SCHEMA",
                                                                "OBJECT_DOMAIN",
                                                                "OBJECT_ROLE",
                                                                "OBJECT_INDEX",
                                                                "OBJECT_FUNCTION",
                                                                "OBJECT_TABCONSTRAINT",
                                                                "OBJECT_DOMCONSTRAINT",
                                                                "OBJECT_STATISTIC_EXT"};
    if (!lists(renamable, text_field(node, "renameType"))) {
        judging.refuse("rename-object", not_supported, "unsupported object in RENAME statement");
    }
    if (text_field(node, "renameType") != "OBJECT_INDEX" && node.contains("relation")) {
        keep_target(judging, table_name(field(node, "relation")));
    }
}

// ALTER ... OWNER TO and ALTER ... SET SCHEMA.
void judge_moved(const Judging& judging, std::string_view name, const Json& node) {
    static constexpr std::array<std::string_view, 7> movable{"OBJECT_TABLE",
                                                             "OBJECT_VIEW",
                                                             "OBJECT_SEQUENCE",
                                                             "OBJECT_SCHEMA",
                                                             "OBJECT_DOMAIN",
                                                             "OBJECT_STATISTIC_EXT",
                                                             "OBJECT_FUNCTION"};
    if (!lists(movable, text_field(node, "objectType"))) {
        judging.refuse("statement",
                       not_supported,
                       fmt::format("unsupported statement: {}", name.substr(0, name.size() - 4)));
    }
    if (node.contains("relation")) {
        keep_target(judging, table_name(field(node, "relation")));
    }
}

void judge_create_function(const Judging& judging, const Json& node) {
    if (flag_field(node, "is_procedure")) {
        judging.refuse("procedure", not_supported, "PROCEDURE is not supported");
        return;
    }
    for (const Json& option : field(node, "options")) {
        const Json& element = field(option, "DefElem");
        const std::string language = string_value(field(element, "arg"));
        if (text_field(element, "defname") == "language" && language != "sql") {
            judging.refuse("function-language",
                           not_supported,
                           fmt::format("CREATE FUNCTION with language {} not supported", language),
                           location_of(element));
        }
    }
    judge_inside(judging, field(node, "sql_body"));
}

void judge_create_sequence(const Judging& judging, const Json& node) {
    const Json& sequence = field(node, "sequence");
    if (text_field(sequence, "relpersistence") != "p") {
        judging.refuse("temporary-table",
                       not_supported,
                       "TEMPORARY or TEMP sequence not supported for CREATE SEQUENCE");
    }
    for (const Json& option : field(node, "options")) {
        const Json& element = field(option, "DefElem");
        if (text_field(element, "defname") != "as") {
            continue;
        }
        const ColumnType type = column_type(field(field(element, "arg"), "TypeName"));
        if (type.display != "bigint") {
            judging.refuse("sequence-type",
                           not_supported,
                           fmt::format("datatype {} not supported, sequence type must be bigint",
                                       type.display),
                           location_of(element));
        }
    }
    judge_cache(judging, field(node, "options"), false, true);
    judging.hint("sequence", "older versions of the service had no sequences");
}

void judge_view(const Judging& judging, const Json& node) {
    const Json& view = field(node, "view");
    if (text_field(view, "relpersistence") != "p") {
        judging.refuse("temporary-table",
                       not_supported,
                       "TEMPORARY or TEMP view not supported for CREATE VIEW");
    }
    judge_inside(judging, field(node, "query"));
    keep_target(judging, table_name(view));
}

void judge_domain(const Judging& judging, const Json& node) {
    judge_type(judging, field(node, "typeName"));
    if (node.contains("collClause")) {
        judging.refuse("collate", not_supported, "COLLATE clause not supported");
    }
    for (const Json& constraint : field(node, "constraints")) {
        judge_inside(judging, field(field(constraint, "Constraint"), "raw_expr"));
    }
}

void judge_grant(const Judging& judging, const Json& node) {
    for (const Json& object : field(node, "objects")) {
        if (const Json& table = field(object, "RangeVar"); table.is_object()) {
            keep_target(judging, table_name(table));
        } else if (text_field(node, "objtype") == "OBJECT_SCHEMA" &&
                   string_value(object) == "public") {
            judging.refuse(
                "system-entity", not_supported, "feature not supported on system entity");
        }
    }
}

void judge_comment(const Judging& judging, const Json& node) {
    const Json& items = field(field(field(node, "object"), "List"), "items");
    const std::string type = text_field(node, "objtype");
    if (type == "OBJECT_TABLE" || type == "OBJECT_VIEW") {
        keep_target(judging, name_from_list(items, items.size()));
    } else if (type == "OBJECT_COLUMN" && items.size() > 1) {
        keep_target(judging, name_from_list(items, items.size() - 1));
    }
}

void judge_create_schema(const Judging& judging, const Json& node) {
    if (node.contains("schemaElts")) {
        judging.refuse(
            "schema-elements", not_supported, "schema elements not supported for CREATE SCHEMA");
    }
}

void judge_role_setting(const Judging& judging, const Json& node) {
    judge_parameter(judging, text_field(field(node, "setstmt"), "name"), 0);
}

void judge_alter_sequence(const Judging& judging, const Json& node) {
    judge_cache(judging, field(node, "options"), false, false);
}

void judge_alter_function(const Judging& judging, const Json& node) {
    if (text_field(node, "objtype") != "OBJECT_FUNCTION") {
        judging.refuse("procedure", not_supported, "PROCEDURE is not supported");
    }
}

void accept(const Judging& /*judging*/, const Json& /*node*/) {}

}  // namespace

bool judge_ddl(const Judging& judging, std::string_view name, const Json& node) {
    using Judge = void (*)(const Judging&, const Json&);
    static const std::unordered_map<std::string_view, Judge> accepted{
        {"CreateStmt", judge_create_table},
        {"AlterTableStmt", judge_alter_table},
        {"IndexStmt", judge_create_index},
        {"DropStmt", judge_drop},
        {"RenameStmt", judge_rename},
        {"CreateFunctionStmt", judge_create_function},
        {"AlterFunctionStmt", judge_alter_function},
        {"CreateSeqStmt", judge_create_sequence},
        {"AlterSeqStmt", judge_alter_sequence},
        {"ViewStmt", judge_view},
        {"CreateDomainStmt", judge_domain},
        {"AlterDomainStmt", accept},
        {"CreateSchemaStmt", judge_create_schema},
        {"CreateRoleStmt", accept},
        {"AlterRoleStmt", accept},
        {"AlterRoleSetStmt", judge_role_setting},
        {"DropRoleStmt", accept},
        {"GrantStmt", judge_grant},
        {"GrantRoleStmt", accept},
        {"AlterDefaultPrivilegesStmt", accept},
        {"CommentStmt", judge_comment},
        {"CreateStatsStmt", accept},
        {"AlterStatsStmt", accept},
    };
    if (name == "AlterOwnerStmt" || name == "AlterObjectSchemaStmt") {
        judge_moved(judging, name, node);
        return true;
    }
    const auto found = accepted.find(name);
    if (found == accepted.end()) {
        return false;
    }
    found->second(judging, node);
    return true;
}

}  // namespace holdfast::dsql

// CREATE, ALTER and DROP.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "dialect/column_types.hpp"
#include "dialect/name_list.hpp"
#include "dialect/rules_parts.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {
namespace {

TableName name_from_list(const Json& items, std::size_t length) {
    TableName name;
    if (length > 0 && length <= items.size()) {
        name.name = string_value(items[length - 1]);
        name.schema = length > 1 ? string_value(items[length - 2]) : "";
    }
    return name;
}

void keep_target(const Checking& checking, TableName name) {
    if (!name.name.empty()) {
        checking.out.tables.push_back(name);
        checking.out.target = std::move(name);
    }
}

void check_drop(const Checking& checking, const Json& node) {
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
        checking.refuse("drop-object", not_supported, "unsupported object in DROP statement");
    }
    if (flag_field(node, "concurrent")) {
        checking.refuse(
            "index-concurrently", not_supported, "CONCURRENTLY not supported for DROP INDEX");
    }
    if (type == "OBJECT_TABLE" || type == "OBJECT_VIEW") {
        for (const Json& object : field(node, "objects")) {
            const Json& items = field(field(object, "List"), "items");
            keep_target(checking, name_from_list(items, items.size()));
        }
    }
}

void check_rename(const Checking& checking, const Json& node) {
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
        checking.refuse("rename-object", not_supported, "unsupported object in RENAME statement");
    }
    if (text_field(node, "renameType") != "OBJECT_INDEX" && node.contains("relation")) {
        keep_target(checking, table_name(field(node, "relation")));
    }
}

// ALTER ... OWNER TO and ALTER ... SET SCHEMA.
void check_moved(const Checking& checking, std::string_view name, const Json& node) {
    static constexpr std::array<std::string_view, 7> movable{"OBJECT_TABLE",
                                                             "OBJECT_VIEW",
                                                             "OBJECT_SEQUENCE",
                                                             "OBJECT_SCHEMA",
                                                             "OBJECT_DOMAIN",
                                                             "OBJECT_STATISTIC_EXT",
                                                             "OBJECT_FUNCTION"};
    if (!lists(movable, text_field(node, "objectType"))) {
        checking.refuse("statement",
                        not_supported,
                        fmt::format("unsupported statement: {}", name.substr(0, name.size() - 4)));
    }
    if (node.contains("relation")) {
        keep_target(checking, table_name(field(node, "relation")));
    }
}

// A body in quotes is checked like one without: it may only query and change rows.
void check_body(const Checking& checking, const std::string& body) {
    for (CheckedStatement& statement : check_statements(body, checking.rules, checking.tables)) {
        if (statement.refusal) {
            checking.refuse(
                statement.refusal->rule, statement.refusal->code, statement.refusal->message);
        } else if (statement.kind == Kind::unparsed) {
            checking.refuse("function-body", "42601", statement.syntax_error);
        } else if (statement.kind != Kind::read && statement.kind != Kind::write &&
                   statement.kind != Kind::lock && statement.kind != Kind::empty) {
            checking.refuse(
                "function-body", not_supported, "a function may only query and change rows");
        }
        for (std::string& name : statement.system_functions) {
            checking.out.system_functions.push_back(std::move(name));
        }
    }
}

void check_function_option(const Checking& checking, const Json& element) {
    static constexpr std::array<std::string_view, 10> plain{"language",
                                                            "as",
                                                            "volatility",
                                                            "strict",
                                                            "security",
                                                            "leakproof",
                                                            "parallel",
                                                            "cost",
                                                            "rows",
                                                            "window"};
    const std::string name = text_field(element, "defname");
    const Json& arg = field(element, "arg");
    if (name == "set") {
        check_setting(checking, field(arg, "VariableSetStmt"));
    } else if (name == "as") {
        for (const Json& text : field(field(arg, "List"), "items")) {
            check_body(checking, string_value(text));
        }
    } else if (!lists(plain, name)) {
        checking.refuse("function-option",
                        not_supported,
                        fmt::format("function option {} not supported", name),
                        location_of(element));
    }
}

void check_create_function(const Checking& checking, const Json& node) {
    if (flag_field(node, "is_procedure")) {
        checking.refuse("procedure", not_supported, "PROCEDURE is not supported");
        return;
    }
    for (const Json& option : field(node, "options")) {
        const Json& element = field(option, "DefElem");
        const std::string language = string_value(field(element, "arg"));
        if (text_field(element, "defname") == "language" && language != "sql") {
            checking.refuse("function-language",
                            not_supported,
                            fmt::format("CREATE FUNCTION with language {} not supported", language),
                            location_of(element));
            return;
        }
    }
    for (const Json& option : field(node, "options")) {
        check_function_option(checking, field(option, "DefElem"));
    }
    for (const Json& parameter : field(node, "parameters")) {
        check_inside(checking, field(field(parameter, "FunctionParameter"), "defexpr"));
    }
    check_inside(checking, field(node, "sql_body"));
}

void check_create_sequence(const Checking& checking, const Json& node) {
    const Json& sequence = field(node, "sequence");
    if (text_field(sequence, "relpersistence") != "p") {
        checking.refuse("temporary-table",
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
            checking.refuse("sequence-type",
                            not_supported,
                            fmt::format("datatype {} not supported, sequence type must be bigint",
                                        type.display),
                            location_of(element));
        }
    }
    check_cache(checking, field(node, "options"), false, true);
    checking.hint("sequence", "older versions of the service had no sequences");
}

void check_view(const Checking& checking, const Json& node) {
    const Json& view = field(node, "view");
    if (text_field(view, "relpersistence") != "p") {
        checking.refuse("temporary-table",
                        not_supported,
                        "TEMPORARY or TEMP view not supported for CREATE VIEW");
    }
    check_inside(checking, field(node, "query"));
    keep_target(checking, table_name(view));
}

void check_domain(const Checking& checking, const Json& node) {
    check_type(checking, field(node, "typeName"));
    if (node.contains("collClause")) {
        checking.refuse("collate", not_supported, "COLLATE clause not supported");
    }
    for (const Json& constraint : field(node, "constraints")) {
        check_inside(checking, field(field(constraint, "Constraint"), "raw_expr"));
    }
}

void check_grant(const Checking& checking, const Json& node) {
    for (const Json& object : field(node, "objects")) {
        if (const Json& table = field(object, "RangeVar"); table.is_object()) {
            keep_target(checking, table_name(table));
        } else if (text_field(node, "objtype") == "OBJECT_SCHEMA" &&
                   string_value(object) == "public") {
            checking.refuse(
                "system-entity", not_supported, "feature not supported on system entity");
        }
    }
}

void check_comment(const Checking& checking, const Json& node) {
    const Json& items = field(field(field(node, "object"), "List"), "items");
    const std::string type = text_field(node, "objtype");
    if (type == "OBJECT_TABLE" || type == "OBJECT_VIEW") {
        keep_target(checking, name_from_list(items, items.size()));
    } else if (type == "OBJECT_COLUMN" && items.size() > 1) {
        keep_target(checking, name_from_list(items, items.size() - 1));
    }
}

void check_create_schema(const Checking& checking, const Json& node) {
    if (node.contains("schemaElts")) {
        checking.refuse(
            "schema-elements", not_supported, "schema elements not supported for CREATE SCHEMA");
    }
}

void check_alter_domain(const Checking& checking, const Json& node) {
    const Json& def = field(node, "def");
    const Json& constraint = field(def, "Constraint");
    check_inside(checking, constraint.is_object() ? field(constraint, "raw_expr") : def);
}

void check_statistics(const Checking& checking, const Json& node) {
    for (const Json& element : field(node, "exprs")) {
        check_inside(checking, field(field(element, "StatsElem"), "expr"));
    }
}

void check_alter_sequence(const Checking& checking, const Json& node) {
    check_cache(checking, field(node, "options"), false, false);
}

void check_alter_function(const Checking& checking, const Json& node) {
    if (text_field(node, "objtype") != "OBJECT_FUNCTION") {
        checking.refuse("procedure", not_supported, "PROCEDURE is not supported");
    }
    for (const Json& option : field(node, "actions")) {
        check_function_option(checking, field(option, "DefElem"));
    }
}

void accept(const Checking& /*checking*/, const Json& /*node*/) {}

}  // namespace

bool check_ddl(const Checking& checking, std::string_view name, const Json& node) {
    using StatementRules = void (*)(const Checking&, const Json&);
    static const std::unordered_map<std::string_view, StatementRules> accepted{
        {"CreateStmt", check_create_table},
        {"AlterTableStmt", check_alter_table},
        {"IndexStmt", check_create_index},
        {"DropStmt", check_drop},
        {"RenameStmt", check_rename},
        {"CreateFunctionStmt", check_create_function},
        {"AlterFunctionStmt", check_alter_function},
        {"CreateSeqStmt", check_create_sequence},
        {"AlterSeqStmt", check_alter_sequence},
        {"ViewStmt", check_view},
        {"CreateDomainStmt", check_domain},
        {"AlterDomainStmt", check_alter_domain},
        {"CreateSchemaStmt", check_create_schema},
        {"GrantStmt", check_grant},
        {"AlterDefaultPrivilegesStmt", accept},
        {"CommentStmt", check_comment},
        {"CreateStatsStmt", check_statistics},
        {"AlterStatsStmt", accept},
    };
    if (check_role(checking, name, node)) {
        return true;
    }
    if (name == "AlterOwnerStmt" || name == "AlterObjectSchemaStmt") {
        check_moved(checking, name, node);
        return true;
    }
    const auto found = accepted.find(name);
    if (found == accepted.end()) {
        return false;
    }
    found->second(checking, node);
    return true;
}

}  // namespace holdfast::dsql

// Tables and their indexes.
#include <algorithm>
#include <array>
#include <map>

#include "dialect/column_types.hpp"
#include "dialect/rules_parts.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {
namespace {

constexpr std::size_t key_columns_max = 8;
constexpr std::size_t columns_max = 255;
constexpr std::int64_t char_max = 4096;
constexpr std::int64_t varchar_max = 65535;
constexpr std::int64_t large_cache_min = 65536;

using TypesOfColumns = std::map<std::string, std::string, std::less<>>;

void refuse_key_type(const Checking& checking, std::string_view type, std::size_t location) {
    checking.refuse("key-type",
                    not_supported,
                    fmt::format("datatype {} is not supported in a key", type),
                    location);
}

void check_key(const Checking& checking,
               const Json& columns,
               const TypesOfColumns& types,
               std::size_t location) {
    if (columns.size() > key_columns_max) {
        checking.refuse("key-columns",
                        "54011",
                        "more than 8 column keys in an index are not supported",
                        location);
    }
    for (const Json& column : columns) {
        const auto type = types.find(string_value(column));
        if (type != types.end() && !type_in_key(type->second)) {
            refuse_key_type(checking, type->second, location);
        }
    }
}

void refuse_clause(const Checking& checking, std::string_view clause, std::string_view statement) {
    checking.refuse(
        "table-clause", not_supported, fmt::format("{} not supported for {}", clause, statement));
}

// Of a constraint at the creation of a table, its own line or part of a column.
class Constraints {
public:
    Constraints(const Checking& checking, const TypesOfColumns& types)
        : checking_(checking), types_(types) {}

    void check_statements(const Json& constraint, const Json* column) {
        const std::string type = text_field(constraint, "contype");
        const std::size_t location = location_of(constraint);
        if (type == "CONSTR_PRIMARY" || type == "CONSTR_UNIQUE") {
            key(constraint, column, location);
            if (type == "CONSTR_UNIQUE") {
                checking_.hint("unique", "older versions had UNIQUE only as an index", location);
            }
        } else if (type == "CONSTR_CHECK") {
            checking_.hint("check", "older versions of the service had no CHECK", location);
        } else if (type == "CONSTR_EXCLUSION") {
            checking_.refuse(
                "exclude", not_supported, "EXCLUDE constraint not supported", location);
        } else if (type == "CONSTR_FOREIGN") {
            checking_.out.tables.push_back(table_name(field(constraint, "pktable")));
            checking_.hint(
                "foreign-key", "foreign keys are refused by versions before August 2026", location);
        } else if (type == "CONSTR_IDENTITY") {
            identity(constraint, column, location);
        } else if (type == "CONSTR_GENERATED" && is_mutable(field(constraint, "raw_expr"))) {
            checking_.refuse(
                "immutable", "42P17", "generation expression is not immutable", location);
        } else if (type == "CONSTR_ATTR_DEFERRABLE" || type == "CONSTR_ATTR_DEFERRED") {
            deferrable(location);
        }
        if (flag_field(constraint, "deferrable") && type != "CONSTR_FOREIGN") {
            previous_ = type;
            deferrable(location);
        }
        check_inside(checking_, field(constraint, "raw_expr"));
        if (!type.starts_with("CONSTR_ATTR")) {
            previous_ = type;
        }
    }

private:
    void key(const Json& constraint, const Json* column, std::size_t location) {
        if (constraint.contains("options")) {
            refuse_clause(checking_, "WITH", "constraints");
        }
        if (constraint.contains("indexspace")) {
            refuse_clause(checking_, "TABLESPACE", "constraints");
        }
        if (column == nullptr) {
            check_key(checking_, field(constraint, "keys"), types_, location);
        } else if (const ColumnType type = column_type(field(*column, "typeName")); !type.in_key) {
            refuse_key_type(checking_, type.display, location);
        }
    }

    void identity(const Json& constraint, const Json* column, std::size_t location) {
        if (column != nullptr) {
            const ColumnType type = column_type(field(*column, "typeName"));
            if (type.display != "bigint") {
                checking_.refuse(
                    "identity-type",
                    not_supported,
                    fmt::format("datatype {} not supported, identity column type must be bigint",
                                type.display),
                    location);
            }
        }
        check_cache(checking_, field(constraint, "options"), true, true, location);
    }

    // Only a foreign key may be checked late.
    void deferrable(std::size_t location) {
        if (previous_ == "CONSTR_CHECK") {
            checking_.refuse("deferrable",
                             not_supported,
                             "CHECK constraints cannot be marked DEFERRABLE",
                             location);
        } else if (previous_ != "CONSTR_FOREIGN") {
            checking_.refuse(
                "deferrable", not_supported, "DEFERRABLE constraint not supported", location);
        }
    }

    const Checking& checking_;
    const TypesOfColumns& types_;
    std::string previous_;  // The constraint that an attribute belongs to.
};

void check_column(const Checking& checking, const Json& column) {
    if (column.contains("typeName")) {
        check_type(checking, field(column, "typeName"));
    }
    if (column.contains("collClause")) {
        checking.refuse("collate",
                        not_supported,
                        "COLLATE clause not supported",
                        location_of(field(column, "collClause")));
    }
    if (column.contains("compression")) {
        refuse_clause(checking, "COMPRESSION", "columns");
    }
}

void check_table_clauses(const Checking& checking, const Json& node) {
    const std::string persistence = text_field(field(node, "relation"), "relpersistence");
    if (persistence == "t") {
        checking.refuse("temporary-table",
                        not_supported,
                        "TEMPORARY or TEMP table not supported for CREATE TABLE");
    } else if (persistence == "u") {
        checking.refuse(
            "unlogged-table", not_supported, "UNLOGGED table not supported for CREATE TABLE");
    }
    static constexpr std::array<std::pair<const char*, std::string_view>, 7> clauses{{
        {"partbound", "PARTITION OF"},
        {"partspec", "PARTITION BY"},
        {"inhRelations", "INHERITS"},
        {"ofTypename", "OF"},
        {"options", "WITH"},
        {"tablespacename", "TABLESPACE"},
        {"accessMethod", "USING"},
    }};
    for (const auto& [name, clause] : clauses) {
        if (node.contains(name)) {
            refuse_clause(checking, clause, "CREATE TABLE");
        }
    }
}

// The types of an existing table's columns.
TypesOfColumns types_of(const TableFacts* facts) {
    TypesOfColumns types;
    if (facts != nullptr) {
        for (const Column& column : facts->columns) {
            types.emplace(column.name, column.type);
        }
    }
    return types;
}

// Columns and key of a table, as its own statement gives them.
TableFacts facts_of(const Json& create) {
    TableFacts facts;
    const auto keep_key = [&](const Json& constraint, const std::string& column) {
        if (text_field(constraint, "contype") != "CONSTR_PRIMARY") {
            return;
        }
        for (const Json& name : field(constraint, "keys")) {
            facts.key.push_back(string_value(name));
        }
        if (facts.key.empty()) {
            facts.key.push_back(column);
        }
    };
    for (const Json& element : field(create, "tableElts")) {
        const Json& column = field(element, "ColumnDef");
        if (column.is_object()) {
            const std::string name = text_field(column, "colname");
            facts.columns.push_back({name, column_type(field(column, "typeName")).display});
            for (const Json& constraint : field(column, "constraints")) {
                keep_key(field(constraint, "Constraint"), name);
            }
        }
        keep_key(field(element, "Constraint"), {});
    }
    return facts;
}

void check_added_column(const Checking& checking, const Json& column) {
    check_column(checking, column);
    if (column.contains("constraints")) {
        checking.refuse("add-column",
                        not_supported,
                        "ALTER TABLE ADD COLUMN with constraint not supported",
                        location_of(field(column, "constraints")[0].front()));
    }
}

void check_added_constraint(const Checking& checking, const Json& constraint) {
    const std::string type = text_field(constraint, "contype");
    const bool late = type == "CONSTR_CHECK" || type == "CONSTR_FOREIGN";
    const bool by_index = type == "CONSTR_UNIQUE" && constraint.contains("indexname");
    if (!(late && flag_field(constraint, "skip_validation")) && !by_index) {
        checking.refuse("add-constraint",
                        not_supported,
                        "unsupported ALTER TABLE ADD CONSTRAINT statement",
                        location_of(constraint));
    }
    if (by_index && flag_field(constraint, "deferrable")) {
        checking.refuse("deferrable",
                        not_supported,
                        "DEFERRABLE constraint not supported",
                        location_of(constraint));
    }
    if (type == "CONSTR_FOREIGN") {
        checking.out.tables.push_back(table_name(field(constraint, "pktable")));
    }
    check_inside(checking, field(constraint, "raw_expr"));
}

void check_dropped_column(const Checking& checking,
                          const TableName& table,
                          const std::string& column) {
    const TableFacts* facts = checking.facts(table);
    if (facts != nullptr &&
        std::find(facts->key.begin(), facts->key.end(), column) != facts->key.end()) {
        checking.refuse("drop-key-column",
                        not_supported,
                        fmt::format("cannot drop primary key column {}", column));
    }
}

// What an ALTER TABLE does, in the words of its refusal.
std::string action_words(std::string_view subtype) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> words{{
        {"AT_AlterColumnType", "ALTER COLUMN ... SET DATA TYPE"},
        {"AT_SetStatistics", "ALTER COLUMN ... SET STATISTICS"},
        {"AT_SetNotNull", "ALTER COLUMN ... SET NOT NULL"},
        {"AT_SetCompression", "ALTER COLUMN ... SET COMPRESSION"},
        {"AT_SetOptions", "ALTER COLUMN ... SET OPTIONS"},
        {"AT_ResetOptions", "ALTER COLUMN ... RESET OPTIONS"},
        {"AT_ValidateConstraint", "VALIDATE CONSTRAINT"},
        {"AT_SetTableSpace", "SET TABLESPACE"},
    }};
    for (const auto& [name, phrase] : words) {
        if (name == subtype) {
            return std::string(phrase);
        }
    }
    std::string spelled;  // AT_EnableRowSecurity: ENABLE ROW SECURITY.
    for (const char c : subtype.substr(std::min<std::size_t>(3, subtype.size()))) {
        if (c >= 'A' && c <= 'Z' && !spelled.empty()) {
            spelled += ' ';
        }
        spelled += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    return spelled;
}

void check_action(const Checking& checking, const TableName& table, const Json& action) {
    const std::string subtype = text_field(action, "subtype");
    const Json& def = field(action, "def");
    if (subtype == "AT_AddColumn") {
        check_added_column(checking, field(def, "ColumnDef"));
    } else if (subtype == "AT_AddConstraint") {
        check_added_constraint(checking, field(def, "Constraint"));
    } else if (subtype == "AT_DropColumn") {
        check_dropped_column(checking, table, text_field(action, "name"));
    } else if (subtype == "AT_AddIdentity") {
        const Json& identity = field(def, "Constraint");
        check_cache(checking, field(identity, "options"), true, true, location_of(identity));
    } else if (subtype == "AT_SetIdentity") {
        check_cache(checking, field(field(def, "List"), "items"), true, false);
    } else if (subtype == "AT_ColumnDefault") {
        check_inside(checking, def);
    } else if (subtype == "AT_DropNotNull" || subtype == "AT_DropExpression" ||
               subtype == "AT_DropIdentity" || subtype == "AT_SetStorage" ||
               subtype == "AT_DropConstraint" || subtype == "AT_AlterConstraint" ||
               subtype == "AT_ChangeOwner" ||
               (subtype == "AT_ValidateConstraint" && checking.out.async)) {
        return;
    } else {
        const std::string words = action_words(subtype);
        checking.refuse(subtype == "AT_ValidateConstraint" ? "validate-constraint" : "alter-table",
                        not_supported,
                        fmt::format("unsupported ALTER TABLE {} statement", words));
    }
}

void check_index_key(const Checking& checking, const Json& element, const TypesOfColumns& types) {
    const std::size_t location = checking.out.refusal ? 0 : location_of(field(element, "expr"));
    if (const std::string order = text_field(element, "ordering");
        order == "SORTBY_ASC" || order == "SORTBY_DESC") {
        checking.refuse("index-order",
                        not_supported,
                        "specifying sort order not supported for index keys",
                        location);
    }
    if (element.contains("opclass")) {
        checking.refuse(
            "index-opclass", not_supported, "opclass not supported for index keys", location);
    }
    if (element.contains("collation")) {
        checking.refuse("collate", not_supported, "COLLATE clause not supported", location);
    }
    if (element.contains("expr")) {
        if (is_mutable(element["expr"])) {
            checking.refuse("immutable",
                            "42P17",
                            "functions in index expression must be marked IMMUTABLE",
                            location);
        }
        check_inside(checking, element["expr"]);
    }
    const auto type = types.find(text_field(element, "name"));
    if (type != types.end() && !type_in_key(type->second)) {
        refuse_key_type(checking, type->second, location);
    }
}

// The USING of this index statement, by its tokens, because the tree has the default.
std::optional<std::size_t> place_of_using(const Checking& checking) {
    bool on = false;
    for (std::size_t i = 0; i < checking.tokens.size(); ++i) {
        on = on || checking.word(i, "ON");
        if (checking.tokens[i].depth > 0) {
            return std::nullopt;
        }
        if (on && checking.word(i, "USING")) {
            return checking.tokens[i].begin;
        }
    }
    return std::nullopt;
}

}  // namespace

bool check_type(const Checking& checking, const Json& type_name) {
    const ColumnType type = column_type(type_name);
    const std::size_t location = location_of(type_name);
    if (type.serial) {
        checking.refuse(
            "serial", "42704", fmt::format("type \"{}\" does not exist", type.display), location);
        return false;
    }
    if (!type.in_column) {
        checking.refuse("column-type",
                        not_supported,
                        fmt::format("datatype {} not supported", type.display),
                        location);
        return false;
    }
    const bool fixed = type.display == "character";
    const std::int64_t limit = fixed ? char_max : varchar_max;
    if ((fixed || type.display == "character varying") && type.length.value_or(0) > limit) {
        checking.refuse("type-length",
                        "54000",
                        fmt::format("Datatype limit greater than {} bytes not supported for {}",
                                    limit,
                                    fixed ? "char" : "varchar"),
                        location);
        return false;
    }
    return true;
}

void check_cache(const Checking& checking,
                 const Json& options,
                 bool identity,
                 bool obligatory,
                 std::size_t location) {
    constexpr std::string_view cure =
        "please define CACHE greater than or equal to 65536 or equal to 1";
    const std::string_view rule = identity ? "identity-cache" : "sequence-cache";
    for (const Json& option : options) {
        const Json& element = field(option, "DefElem");
        if (text_field(element, "defname") != "cache") {
            continue;
        }
        const Json& number = field(field(element, "arg"), "Integer");
        const bool huge = field(element, "arg").contains("Float");
        const std::int64_t cache = number.is_object() ? number.value("ival", std::int64_t{0}) : 0;
        if (!huge && cache != 1 && cache < large_cache_min) {
            checking.refuse(rule,
                            not_supported,
                            fmt::format("cache size {} is not supported. {}", cache, cure),
                            location_of(element));
        }
        return;
    }
    if (obligatory) {
        checking.refuse(rule,
                        not_supported,
                        fmt::format("{} is not supported without an explicit cache size. {}",
                                    identity ? "identity column" : "CREATE SEQUENCE",
                                    cure),
                        location);
    }
}

void check_create_table(const Checking& checking, const Json& node) {
    checking.out.target = table_name(field(node, "relation"));
    checking.out.tables.push_back(table_name(field(node, "relation")));
    check_table_clauses(checking, node);
    const TableFacts facts = facts_of(node);
    checking.out.created = facts;
    const TypesOfColumns types = types_of(&facts);
    for (const Json& element : field(node, "tableElts")) {
        const auto [name, part] = unwrapped(element);
        if (name == "ColumnDef") {
            check_column(checking, *part);
            Constraints constraints(checking, types);
            for (const Json& constraint : field(*part, "constraints")) {
                constraints.check_statements(field(constraint, "Constraint"), part);
            }
        } else if (name == "Constraint") {
            Constraints(checking, types).check_statements(*part, nullptr);
        } else if (name == "TableLikeClause") {
            checking.out.tables.push_back(table_name(field(*part, "relation")));
            checking.out.created.reset();  // Its columns are unknown.
        }
    }
    if (facts.columns.size() > columns_max) {
        checking.refuse("column-count", "54011", "tables can have at most 255 columns");
    }
}

void check_alter_table(const Checking& checking, const Json& node) {
    const TableName table = table_name(field(node, "relation"));
    checking.out.target = table;
    checking.out.tables.push_back(table);
    const std::string type = text_field(node, "objtype");
    if (type == "OBJECT_TYPE") {
        checking.refuse("alter-type", not_supported, "ALTER TYPE not supported");
    }
    if (type != "OBJECT_TABLE" && type != "OBJECT_VIEW" && type != "OBJECT_SEQUENCE") {
        checking.refuse("statement", not_supported, "unsupported statement: AlterTable");
    }
    for (const Json& action : field(node, "cmds")) {
        check_action(checking, table, field(action, "AlterTableCmd"));
    }
}

void check_create_index(const Checking& checking, const Json& node) {
    CheckedStatement& out = checking.out;
    const TableName table = table_name(field(node, "relation"));
    out.target = table;
    out.tables.push_back(table);
    out.index_name = text_field(node, "idxname");
    if (flag_field(node, "concurrent")) {
        checking.refuse(
            "index-concurrently", not_supported, "CONCURRENTLY not supported for CREATE INDEX");
    }
    if (!out.async && !checking.rules.sync_create_index) {
        checking.refuse(
            "index-async", not_supported, "unsupported mode. please use CREATE INDEX ASYNC.");
    }
    if (const auto place = place_of_using(checking)) {
        checking.refuse(
            "index-using", not_supported, "USING not supported for CREATE INDEX", *place);
    }
    if (node.contains("options")) {
        refuse_clause(checking, "WITH", "CREATE INDEX");
    }
    if (node.contains("tableSpace")) {
        refuse_clause(checking, "TABLESPACE", "CREATE INDEX");
    }
    const TypesOfColumns types = types_of(checking.facts(table));
    const Json& keys = field(node, "indexParams");
    if (keys.size() > key_columns_max) {
        checking.refuse(
            "key-columns", "54011", "more than 8 column keys in an index are not supported");
    }
    for (const Json& key : keys) {
        check_index_key(checking, field(key, "IndexElem"), types);
    }
    for (const Json& included : field(node, "indexIncludingParams")) {
        if (field(included, "IndexElem").contains("expr")) {
            checking.refuse("index-include",
                            not_supported,
                            "expressions are not supported in included columns");
        }
    }
    check_inside(checking, field(node, "whereClause"));
}

}  // namespace holdfast::dsql

// Queries and changes of rows.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "dialect/column_types.hpp"
#include "dialect/name_list.hpp"
#include "dialect/rules_parts.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {
namespace {

const std::unordered_set<std::string_view>& accepted_nodes() {
    static const std::unordered_set<std::string_view> names{
        "A_ArrayExpr",      "A_Const",        "A_Expr",        "A_Indices",
        "A_Indirection",    "A_Star",         "Alias",         "BitString",
        "BoolExpr",         "Boolean",        "BooleanTest",   "CTECycleClause",
        "CTESearchClause",  "CaseExpr",       "CaseWhen",      "CoalesceExpr",
        "CollateClause",    "ColumnDef",      "ColumnRef",     "CommonTableExpr",
        "DeleteStmt",       "Float",          "FuncCall",      "GroupingFunc",
        "GroupingSet",      "IndexElem",      "InferClause",   "InsertStmt",
        "Integer",          "JoinExpr",       "List",          "LockingClause",
        "MinMaxExpr",       "MultiAssignRef", "NamedArgExpr",  "NullTest",
        "OnConflictClause", "ParamRef",       "RangeFunction", "RangeSubselect",
        "RangeVar",         "ResTarget",      "ReturnStmt",    "RowExpr",
        "SQLValueFunction", "SelectStmt",     "SetToDefault",  "SortBy",
        "String",           "SubLink",        "TypeCast",      "TypeName",
        "UpdateStmt",       "WindowDef",      "WithClause",
    };
    return names;
}

constexpr std::array<std::string_view, 9> text_search_functions{"to_tsvector",
                                                                "to_tsquery",
                                                                "plainto_tsquery",
                                                                "phraseto_tsquery",
                                                                "websearch_to_tsquery",
                                                                "ts_headline",
                                                                "json_to_tsvector",
                                                                "jsonb_to_tsvector",
                                                                "ts_debug"};

constexpr std::array<std::string_view, 7> geometric_functions{
    "line", "lseg", "box", "circle", "polygon", "path", "point"};

constexpr std::array<std::string_view, 11> volatile_functions{"nextval",
                                                              "setval",
                                                              "gen_random_uuid",
                                                              "random",
                                                              "setseed",
                                                              "clock_timestamp",
                                                              "statement_timestamp",
                                                              "timeofday",
                                                              "uuid_generate_v1",
                                                              "uuid_generate_v4",
                                                              "random_normal"};

// An argument of a call, if it is a constant text.
std::optional<std::string> text_at(const Json& call, std::size_t index) {
    const Json& args = field(call, "args");
    if (args.size() <= index) {
        return std::nullopt;
    }
    const Json& value = field(field(args[index], "A_Const"), "sval");
    return value.is_object() ? std::optional(text_field(value, "sval")) : std::nullopt;
}

bool has_constant_value(const Json& expression) {
    std::vector<const Json*> rest{&expression};
    while (!rest.empty()) {
        const Json& node = *rest.back();
        rest.pop_back();
        if (!node.is_structured()) {
            continue;
        }
        if (node.contains("ColumnRef") || node.contains("SubLink")) {
            return false;
        }
        if (const Json& call = field(node, "FuncCall"); call.is_object()) {
            const Json& name = field(call, "funcname");
            if (!name.empty() && is_volatile_function(string_value(name.back()))) {
                return false;
            }
        }
        for (const Json& inner : node) {
            rest.push_back(&inner);
        }
    }
    return true;
}

// The columns of one table that a condition binds to constants.
class Equalities {
public:
    // `alone`: no other table is in sight, so a plain column name is its own.
    Equalities(const Json& range_var, bool alone)
        : schema_(text_field(range_var, "schemaname")),
          table_(text_field(range_var, "relname")),
          alias_(text_field(field(range_var, "alias"), "aliasname")),
          alone_(alone) {}

    std::vector<std::string> of(const Json& condition) {
        std::vector<const Json*> rest{&condition};
        while (!rest.empty()) {
            const Json& node = *rest.back();
            rest.pop_back();
            const Json& both = field(node, "BoolExpr");
            if (text_field(both, "boolop") == "AND_EXPR") {
                for (const Json& side : field(both, "args")) {
                    rest.push_back(&side);
                }
            } else if (const Json& comparison = field(node, "A_Expr"); comparison.is_object()) {
                compare(comparison);
            }
        }
        return std::move(found_);
    }

private:
    void compare(const Json& comparison) {
        const Json& name = field(comparison, "name");
        if (name.size() != 1 || string_value(name[0]) != "=") {
            return;
        }
        const std::string kind = text_field(comparison, "kind");
        const Json& left = field(comparison, "lexpr");
        const Json& right = field(comparison, "rexpr");
        if (kind == "AEXPR_IN") {  // IN with one value is an equality.
            const Json& items = field(field(right, "List"), "items");
            if (items.size() == 1) {
                bind(left, items[0]);
            }
        } else if (kind == "AEXPR_OP") {
            const Json& columns = field(field(left, "RowExpr"), "args");
            const Json& values = field(field(right, "RowExpr"), "args");
            if (columns.empty()) {
                bind(left, right);
                bind(right, left);
            } else if (columns.size() == values.size()) {
                for (std::size_t i = 0; i < columns.size(); ++i) {
                    bind(columns[i], values[i]);
                }
            }
        }
    }

    void bind(const Json& column, const Json& value) {
        const Json& parts = field(field(column, "ColumnRef"), "fields");
        if (parts.empty() || !parts.back().contains("String") || !has_constant_value(value)) {
            return;
        }
        const bool ours =
            parts.size() == 1
                ? alone_
                : string_value(parts[parts.size() - 2]) == (alias_.empty() ? table_ : alias_) &&
                      (parts.size() == 2 || string_value(parts[parts.size() - 3]) == schema_);
        if (std::string name = string_value(parts.back()); ours && !lists(found_, name)) {
            found_.push_back(std::move(name));
        }
    }

    std::string schema_, table_, alias_;
    bool alone_;
    std::vector<std::string> found_;
};

struct Lock {
    const Json* select = nullptr;
    const Json* clause = nullptr;
};

// Walks over a tree without recursion: chains of operators make it as deep as the text is long.
class Walk {
public:
    explicit Walk(const Checking& checking) : checking_(checking) {}

    void run(std::string_view name, const Json& node) {
        rest_.push_back({name, &node});
        while (!rest_.empty()) {
            const Entry entry = rest_.back();
            rest_.pop_back();
            if (!entry.name.empty()) {
                visit(entry);
            }
            descend(entry);
        }
        keep_tables();
    }

    std::vector<Lock> locks;
    bool writes = false;
    [[nodiscard]] bool is_cte(const TableName& table) const {
        return table.schema.empty() && ctes_.contains(table.name);
    }

private:
    struct Entry {
        std::string_view name;  // Of the node whose fields these are; empty for a list or wrapper.
        const Json* value;
    };

    void descend(const Entry& entry) {
        if (entry.name == "LockingClause") {
            return;  // FOR UPDATE OF a: an alias, not a table.
        }
        const Json& value = *entry.value;
        if (value.is_array()) {
            for (const Json& element : value) {
                rest_.push_back({{}, &element});
            }
        } else if (value.is_object()) {
            for (const auto& [key, inner] : value.items()) {
                if (inner.is_structured()) {
                    rest_.push_back({node_name(entry.name, key), &inner});
                }
            }
        }
    }

    // Some fields hold a node without its name.
    static std::string_view node_name(std::string_view owner, const std::string& key) {
        if (key.front() >= 'A' && key.front() <= 'Z') {
            return key;
        }
        if (key == "typeName") {
            return "TypeName";
        }
        if (key == "intoClause") {
            return "IntoClause";
        }
        if (key == "relation" && owner != "RangeTableSample") {
            return "RangeVar";
        }
        if (owner == "SelectStmt" && (key == "larg" || key == "rarg")) {
            return "SelectStmt";
        }
        return {};
    }

    void visit(const Entry& entry) {
        const Json& node = *entry.value;
        if (entry.name == "RangeVar") {
            tables_.push_back(table_name(node));
        } else if (entry.name == "FuncCall") {
            call(node);
        } else if (entry.name == "SelectStmt") {
            for (const Json& clause : field(node, "lockingClause")) {
                locks.push_back({&node, &field(clause, "LockingClause")});
            }
        } else if (entry.name == "TypeName") {
            type(node);
        } else if (entry.name == "CommonTableExpr") {
            ctes_.insert(text_field(node, "ctename"));
        } else if (entry.name == "JoinExpr") {
            join(node);
        } else if (entry.name == "InsertStmt" || entry.name == "UpdateStmt" ||
                   entry.name == "DeleteStmt") {
            writes = true;
        } else if (!accepted_nodes().contains(entry.name)) {
            refuse_node(entry.name, node);
        }
    }

    void refuse_node(std::string_view name, const Json& node) {
        const std::size_t location = location_of(node);
        if (name == "IntoClause") {
            checking_.refuse(
                "statement", not_supported, "unsupported statement: CreateTableAs", location);
        } else if (name == "MergeStmt") {
            checking_.refuse("merge", not_supported, "unsupported statement type: MERGE", location);
        } else if (name == "RangeTableSample") {
            checking_.refuse(
                "tablesample", not_supported, "TABLESAMPLE clause not supported", location);
        } else if (name == "XmlExpr" || name == "XmlSerialize" || name == "RangeTableFunc") {
            checking_.refuse("column-type", not_supported, "datatype xml not supported", location);
        } else {
            checking_.refuse("expression",
                             not_supported,
                             fmt::format("unsupported expression: {}", name),
                             location);
        }
    }

    void type(const Json& node) {
        const ColumnType type = column_type(node);
        if (type.serial) {
            checking_.refuse("serial",
                             "42704",
                             fmt::format("type \"{}\" does not exist", type.display),
                             location_of(node));
        } else if (!type.in_query) {
            checking_.refuse("column-type",
                             not_supported,
                             fmt::format("datatype {} not supported", type.display),
                             location_of(node));
        }
    }

    void call(const Json& node) {
        const Json& names = field(node, "funcname");
        if (names.empty()) {
            return;
        }
        const std::string name = string_value(names.back());
        const std::string schema = names.size() > 1 ? string_value(names[names.size() - 2]) : "";
        checking_.out.calls_volatile = checking_.out.calls_volatile || is_volatile_function(name);
        checking_.out.functions.push_back(name);
        const std::size_t location = location_of(node);
        if (schema == "sys" && name == "wait_for_job") {
            checking_.refuse(
                "wait-for-job", "42809", "sys.wait_for_job(text) is a procedure", location);
        }
        if (!schema.empty() && schema != "pg_catalog") {
            return;
        }
        checking_.out.system_functions.push_back(name);
        if (name.starts_with("pg_advisory_") || name.starts_with("pg_try_advisory_")) {
            checking_.refuse("advisory-lock",
                             not_supported,
                             fmt::format("function {} not supported", name),
                             location);
        } else if (lists(text_search_functions, name)) {
            const bool configured = field(node, "args").size() > 1;
            checking_.refuse(
                "text-search",
                "42704",
                fmt::format("text search configuration \"{}\" does not exist",
                            (configured ? text_at(node, 0) : std::nullopt).value_or("english")),
                location);
        } else if (lists(geometric_functions, name)) {
            checking_.refuse("column-type",
                             not_supported,
                             fmt::format("datatype {} not supported", name),
                             location);
        } else if (name == "set_config") {
            set_config(node, location);
        }
    }

    // The parameter must be a constant, and for some also the value.
    void set_config(const Json& node, std::size_t location) {
        checking_.out.sets_rules = true;
        const auto parameter = text_at(node, 0);
        if (!parameter) {
            checking_.refuse("parameter",
                             not_supported,
                             "set_config needs the name of its parameter as a plain constant",
                             location);
            return;
        }
        check_parameter(checking_, *parameter, location);
        std::string name = *parameter;
        std::transform(name.begin(), name.end(), name.begin(), ::tolower);
        if (name == "client_encoding") {
            check_encoding(checking_, text_at(node, 1).value_or(""), location);
        }
    }

    // A defect of the service's planner: the outer table in the select list of a LEFT JOIN LATERAL.
    void join(const Json& node) {
        const Json& inner = field(field(node, "rarg"), "RangeSubselect");
        if (text_field(node, "jointype") != "JOIN_LEFT" || !flag_field(inner, "lateral")) {
            return;
        }
        const Json& outer = field(field(node, "larg"), "RangeVar");
        const std::string table = text_field(outer, "relname");
        const std::string alias = text_field(field(outer, "alias"), "aliasname");
        const Json& select = field(field(inner, "subquery"), "SelectStmt");
        for (const Json& target : field(select, "targetList")) {
            const Json& column = field(field(field(target, "ResTarget"), "val"), "ColumnRef");
            const Json& parts = field(column, "fields");
            if (!table.empty() && parts.size() > 1 &&
                string_value(parts.front()) == (alias.empty() ? table : alias)) {
                checking_.refuse("lateral",
                                 "42804",
                                 fmt::format("attribute 1 of type {} has wrong type", table),
                                 location_of(column));
            }
        }
    }

    void keep_tables() {
        for (TableName& table : tables_) {
            if (!is_cte(table) && !lists_table(table)) {
                checking_.out.tables.push_back(std::move(table));
            }
        }
        tables_.clear();
    }

    [[nodiscard]] bool lists_table(const TableName& table) const {
        const auto& known = checking_.out.tables;
        return std::find(known.begin(), known.end(), table) != known.end();
    }

    const Checking& checking_;
    std::vector<Entry> rest_;
    std::vector<TableName> tables_;
    std::unordered_set<std::string> ctes_;
};

bool includes_all(const std::vector<std::string>& columns, const std::vector<std::string>& key) {
    return std::all_of(
        key.begin(), key.end(), [&](const std::string& column) { return lists(columns, column); });
}

// The service's guide refuses it; the service was seen to accept it.
void outside_the_guide(const Checking& checking,
                       std::string_view rule,
                       const std::string& message,
                       std::size_t location) {
    if (checking.rules.documented_for_update) {
        checking.refuse(rule, not_supported, message, location);
    } else {
        checking.hint(rule, "accepted, but not documented: " + message, location);
    }
}

void check_lock(const Checking& checking, const Walk& walk, const Lock& lock, bool at_top) {
    const std::string strength = text_field(*lock.clause, "strength");
    const bool for_update = strength == "LCS_FORUPDATE";
    if (!for_update && strength != "LCS_FORKEYSHARE") {
        checking.refuse("for-share",
                        not_supported,
                        "locking clauses other than FOR UPDATE/FOR KEY SHARE are not supported",
                        lock_clause_location(checking, strength));
        return;
    }
    if (const std::string wait = text_field(*lock.clause, "waitPolicy");
        wait == "LockWaitError" || wait == "LockWaitSkip") {
        checking.hint("lock-wait",
                      "statements never wait for a row, so NOWAIT and SKIP LOCKED have no effect",
                      lock_clause_location(checking, strength));
    }
    const Json& from = field(*lock.select, "fromClause");
    if (from.empty()) {
        return;
    }
    const Json& range = field(from[0], "RangeVar");
    const bool single = from.size() == 1 && range.is_object();
    if (!single) {
        outside_the_guide(checking,
                          "for-update-join",
                          "locking clause such as FOR UPDATE can be applied on a single table",
                          lock_clause_location(checking, strength));
    }
    if (!single || walk.is_cte(table_name(range))) {
        return;
    }
    RowLock row_lock{.for_update = for_update, .table = table_name(range), .touch = {}};
    auto equal = Equalities(range, true).of(field(*lock.select, "whereClause"));
    const TableFacts* facts = checking.facts(row_lock.table);
    if (facts != nullptr && (facts->key.empty() || !includes_all(equal, facts->key))) {
        outside_the_guide(checking,
                          "for-update-key",
                          "locking clause such as FOR UPDATE can be applied only on tables with "
                          "equality predicates on the key",
                          lock_clause_location(checking, strength));
    }
    if (at_top && facts != nullptr) {
        row_lock.touch = touch_of_rows(checking, *lock.select, *facts);
    }
    if (at_top) {
        checking.out.equal_columns = std::move(equal);
    }
    checking.out.row_locks.push_back(std::move(row_lock));
}

void check_change(const Checking& checking, std::string_view name, const Json& node) {
    CheckedStatement& out = checking.out;
    const Json& relation = field(node, "relation");
    out.target = table_name(relation);
    out.returning = node.contains("returningList");
    out.on_conflict = node.contains("onConflictClause");
    if (name == "InsertStmt") {
        if (const Json& conflict = field(node, "onConflictClause"); conflict.is_object()) {
            checking.hint("on-conflict",
                          "older advice is to avoid ON CONFLICT: it reads before it writes",
                          location_of(conflict));
        }
        const Json& values = field(field(field(node, "selectStmt"), "SelectStmt"), "valuesLists");
        if (!node.contains("selectStmt")) {
            out.rows_of_values = 1;  // DEFAULT VALUES.
        } else if (!values.empty()) {
            out.rows_of_values = static_cast<std::int64_t>(values.size());
        }
        return;
    }
    const bool alone = !node.contains("fromClause") && !node.contains("usingClause");
    out.equal_columns = Equalities(relation, alone).of(field(node, "whereClause"));
    if (!out.returning && !node.contains("withClause")) {
        out.rewrite = count_of_changes(checking, name, node);
    }
}

}  // namespace

bool is_volatile_function(std::string_view name) {
    return lists(volatile_functions, name);
}

bool is_mutable(const Json& expression) {
    static constexpr std::array<std::string_view, 4> stable{
        "now", "transaction_timestamp", "currval", "lastval"};
    std::vector<const Json*> rest{&expression};
    while (!rest.empty()) {
        const Json& node = *rest.back();
        rest.pop_back();
        if (!node.is_structured()) {
            continue;
        }
        if (node.contains("SQLValueFunction")) {  // CURRENT_TIMESTAMP and its kind.
            return true;
        }
        const Json& name = field(field(node, "FuncCall"), "funcname");
        if (!name.empty()) {
            const std::string called = string_value(name.back());
            if (is_volatile_function(called) || lists(stable, called)) {
                return true;
            }
        }
        for (const Json& inner : node) {
            rest.push_back(&inner);
        }
    }
    return false;
}

void check_inside(const Checking& checking, const Json& tree) {
    Walk walk(checking);
    walk.run({}, tree);
    for (const Lock& lock : walk.locks) {
        check_lock(checking, walk, lock, false);
    }
}

void check_query(const Checking& checking, std::string_view name, const Json& node) {
    CheckedStatement& out = checking.out;
    Walk walk(checking);
    walk.run(name, node);
    const bool query = name == "SelectStmt";
    out.writes_by_cte = query && walk.writes;
    if (!query) {
        const Json& ctes = field(node, "withClause");
        Walk inside(checking);
        inside.run({}, ctes);
        out.writes_by_cte = inside.writes;
        out.kind = name == "MergeStmt" ? Kind::other : Kind::write;
        check_change(checking, name, node);
    } else if (walk.writes) {
        out.kind = Kind::write;
    } else {
        out.kind = walk.locks.empty() ? Kind::read : Kind::lock;
    }
    if (out.writes_by_cte) {
        checking.hint("writing-cte", "no probe has shown that a CTE may change rows");
    }
    for (const Lock& lock : walk.locks) {
        check_lock(checking, walk, lock, lock.select == &node);
    }
    if (out.kind == Kind::lock) {
        out.rewrite = without_lock_clauses(checking);
    }
}

}  // namespace holdfast::dsql

// How Aurora DSQL treats a statement, without a cluster.
//
// The lint and the gateway check by the same allow-list of parse nodes: what is not known to be
// accepted is refused, with the service's own SQLSTATE and the stable part of its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::dsql {

enum class Kind : std::uint8_t {
    empty,            // Nothing but spaces and comments.
    read,             // SELECT, VALUES, EXPLAIN.
    lock,             // A query with FOR UPDATE or FOR KEY SHARE, anywhere in it.
    write,            // INSERT, UPDATE, DELETE; a query with one of them in a CTE.
    ddl,              // CREATE, ALTER, DROP, GRANT, REVOKE, COMMENT, AWS IAM ...
    begin,            // BEGIN, START TRANSACTION.
    commit,           // COMMIT, END.
    rollback,         // ROLLBACK, ABORT.
    set,              // SET, SET LOCAL, RESET, SET TRANSACTION.
    set_constraints,  // SET CONSTRAINTS.
    show,
    copy_in,   // COPY ... FROM STDIN
    copy_out,  // COPY ... TO STDOUT
    call,
    analyze,
    deallocate,  // DEALLOCATE ALL
    other,       // A refused statement of any other kind.
    unparsed,    // Not SQL of PostgreSQL 15: the server makes the error.
};

struct TableName {
    std::string schema;  // Empty if the statement does not say.
    std::string name;
    friend bool operator==(const TableName&, const TableName&) = default;
};

// Why the service refuses a statement.
struct Refusal {
    std::string_view rule;   // A stable name, for lint: "sequence-cache", "for-share", ...
    std::string_view code;   // SQLSTATE.
    std::string message;     // As the service words it.
    std::size_t offset = 0;  // Of the offending part, in the whole text, in bytes.
};

struct Column {
    std::string name;
    std::string type;  // As PostgreSQL displays it: "integer", "character varying", "bytea".
};

// Facts about an existing table that some checks need.
struct TableFacts {
    std::vector<std::string> key;  // Columns of the primary key, in order. Empty: it has none.
    std::vector<Column> columns;
};

class Tables {
public:
    virtual ~Tables() = default;
    // Null if nothing is known of it; checks that depend on it then pass.
    [[nodiscard]] virtual const TableFacts* find(const TableName& name) const = 0;
};

struct Rules {
    // Refuse FOR UPDATE without equality on the whole key, and over joins, as the guide says. Else
    // it is a hint, for the service was seen to accept it.
    bool documented_for_update = false;
    bool sync_create_index =
        false;  // disable_sync_create_index = off: CREATE INDEX may lack ASYNC.
};

// One FOR UPDATE or FOR KEY SHARE at the top of a query over one table.
struct RowLock {
    bool for_update = true;
    TableName table;
    std::string
        touch;  // `UPDATE t SET k = k WHERE ...`: the same rows, same parameters, nothing changed.
};

// A change of roles, which a gateway makes for a client that has no right to do it by itself.
struct RoleChange {
    std::string text;                // The statement, made again from its parse tree.
    std::string tag;                 // As its CommandComplete has it.
    std::vector<std::string> roles;  // All that it names.
};

struct CheckedStatement {
    Kind kind = Kind::empty;
    std::size_t offset = 0;  // Where the statement begins in the whole text.
    // For a PostgreSQL 15: without ASYNC, STORAGE and what else it does not know. Spaces stand
    // where they were, so that a place in it is a place in the original, up to a subquery in FROM
    // that was given a name. Empty for AWS IAM.
    std::string text;
    std::optional<Refusal> refusal;
    std::vector<Refusal> further;   // Its other errors, so that all can be fixed at once.
    std::vector<Refusal> hints;     // Accepted, but without effect, or refused by older versions.
    std::string syntax_error;       // Of `unparsed`, in the parser's words.
    std::size_t syntax_offset = 0;  // And where, in the whole text.

    std::vector<TableName> tables;    // All it reads or writes; those of a DDL statement too.
    std::optional<TableName> target;  // The one it writes or changes.
    bool async = false;               // CREATE INDEX ASYNC, ALTER TABLE ASYNC.
    bool returning = false;
    bool on_conflict = false;
    bool writes_by_cte = false;
    bool calls_volatile =
        false;  // nextval, gen_random_uuid, random, clock_timestamp, ...: not the same twice.
    std::vector<std::string> functions;  // All it calls by name.
    // Those of them that PostgreSQL looks for in pg_catalog: without a schema, or in that one.
    std::vector<std::string> system_functions;
    bool read_only = false;  // BEGIN READ ONLY.
    bool has_parameters = false;
    // Columns that the WHERE clause of a write or lock binds by equality to something constant, at
    // its top level: all columns of the key among them means one row at most.
    std::vector<std::string> equal_columns;
    std::optional<std::int64_t> rows_of_values;  // INSERT ... VALUES: how many rows.
    // UPDATE and DELETE: `SELECT count(*)` of the rows they would change. A lock: the query without
    // its clause. Same parameter numbers. Empty where RETURNING or a CTE makes that impossible.
    std::string rewrite;
    std::vector<RowLock> row_locks;
    // SET, RESET, SHOW: the parameter, in lower case.
    std::string parameter;
    // Or may do so: search_path and disable_sync_create_index decide how later ones are checked.
    bool sets_rules = false;
    std::optional<bool> sync_create_index;  // SET disable_sync_create_index: as Rules has it.
    std::string index_name;                 // CREATE INDEX: its name, if it has one.
    std::optional<TableFacts> created;      // CREATE TABLE: what is known of the new table.
    std::string role, arn;                  // AWS IAM GRANT|REVOKE.
    bool iam_revoke = false;
    std::optional<RoleChange> role_change;
    bool binary_copy = false;      // COPY ... (FORMAT binary).
    std::size_t copy_columns = 0;  // COPY t (a, b): how many; 0: all of the table.
};

// The statement that begins at `from`, which is moved behind it. Of kind `empty` where only the end
// of the text, or a lone `;`, was left.
[[nodiscard]] CheckedStatement check_next(std::string_view sql,
                                          std::size_t& from,
                                          const Rules& rules,
                                          const Tables* tables = nullptr);

// One entry for each statement of the text; text without any gives one of kind `empty`.
[[nodiscard]] std::vector<CheckedStatement> check_statements(std::string_view sql,
                                                             const Rules& rules,
                                                             const Tables* tables = nullptr);

}  // namespace holdfast::dsql

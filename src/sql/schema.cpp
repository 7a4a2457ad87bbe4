#include <holdfast/sql/schema.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "driver.hpp"
#include "migration_text.hpp"
#include "statements.hpp"
#include <fmt/core.h>

#include <holdfast/sql/database.hpp>

namespace holdfast::sql {
namespace {

int known_version(const SchemaPart& part) {
    return static_cast<int>(part.files.size());
}

Error newer_schema(const PartStatus& status) {
    return {
        Code::condition_failed,
        Outcome::not_applied,
        fmt::format("the schema part '{}' has version {}, which is newer than the {} this program "
                    "knows; upgrade the program",
                    status.part,
                    status.version,
                    status.known)};
}

constexpr int builds_max = 3;

// What DSQL counts as DDL; everything else may share a transaction with the step's number.
bool is_definition(std::string_view text) {
    constexpr std::array words{"CREATE ", "ALTER ", "DROP ", "COMMENT ", "GRANT ", "REVOKE "};
    return std::any_of(
        words.begin(), words.end(), [&](const char* word) { return text.starts_with(word); });
}

// The name in `CREATE [UNIQUE] INDEX ASYNC [IF NOT EXISTS] name ON ...`.
std::optional<std::string> asynchronous_index(std::string_view text) {
    constexpr std::string_view order = "INDEX ASYNC ";
    constexpr std::string_view condition = "IF NOT EXISTS ";
    const std::size_t at = text.find(order);
    if (at == std::string_view::npos || !text.starts_with("CREATE ")) {
        return std::nullopt;
    }
    text.remove_prefix(at + order.size());
    if (text.starts_with(condition)) {
        text.remove_prefix(condition.size());
    }
    return std::string(text.substr(0, text.find_first_of(" \n")));
}

// As the database's own catalogue spells it.
std::string unquoted(std::string_view name) {
    if (name.starts_with('"')) {
        name = name.substr(1, name.size() - 2);  // Chosen names hold no quotes.
    }
    return std::string(name);
}

// A table, an index or a column of that name.
bool is_there_already(SqlState state) {
    return state == SqlState{"42P07"} || state == SqlState{"42710"} || state == SqlState{"42701"};
}

}  // namespace

// The steps of one part, on one database.
class SchemaSteps {
public:
    SchemaSteps(Database& db, const SchemaPart& part, const TxOptions& options)
        : db_(db), part_(part), options_(options) {
        // Two processes that create the same table or row at once meet as a duplicate key.
        options_.on_duplicate = OnDuplicate::retry;
        options_.retry = RetryPolicy{.max_retries = 20,
                                     .base_delay = std::chrono::milliseconds{5},
                                     .max_delay = std::chrono::milliseconds{500}};
    }

    PartStatus status() {
        PartStatus status{.part = std::string(part_.name), .known = known_version(part_)};
        if (!table_exists()) {
            return status;
        }
        const Rows rows =
            db_.run("SchemaStatus", reading(), statements::schema_read, part_.name).rows;
        if (const std::optional<Row> row = rows.single()) {
            status.version = row->get<int>(0);
            status.step = row->get<int>(1);
        }
        return status;
    }

    PartStatus apply() {
        prepare();
        for (;;) {
            const PartStatus now = status();
            if (now.version > now.known) {
                throw newer_schema(now);
            }
            if (now.version == now.known) {
                return now;
            }
            advance(now);
        }
    }

private:
    [[nodiscard]] TxOptions reading() const {
        TxOptions options = options_;
        options.read_only = true;
        return options;
    }

    bool table_exists() {
        const Statement& statement = db_.dialect().embedded ? statements::schema_table_sqlite
                                                            : statements::schema_table_postgres;
        const Result found = db_.run("SchemaStatus", reading(), statement);
        return found.rows[0].get<std::int64_t>(0) > 0;
    }

    void prepare() {
        if (!table_exists()) {
            db_.transact("SchemaCreate", options_, [](Tx& tx) {
                tx.session_.run_script(statements::create_schema_table);
            });
        }
        db_.run("SchemaPart", options_, statements::schema_insert, part_.name);
    }

    // One step, unless another process has done it meanwhile.
    void advance(const PartStatus& from) {
        const auto& file = part_.files[static_cast<std::size_t>(from.version)];
        const std::vector<std::string> steps = migration_steps(file, db_.dialect(), part_.names);
        const auto step = static_cast<std::size_t>(from.step);
        const bool last = step + 1 >= steps.size();
        const Guard guard{.what = fmt::format("the schema part '{}'", part_.name),
                          .key = {std::string(part_.name)},
                          .tokens = {std::int64_t{from.version}, std::int64_t{from.step}}};
        const std::int64_t version = last ? from.version + 1 : from.version;
        const std::int64_t next = last ? 0 : from.step + 1;
        const std::string* const text = step < steps.size() ? &steps[step] : nullptr;

        // Where DDL cannot share a transaction it comes first, and must be repeatable.
        const bool alone =
            text != nullptr && !db_.dialect().transactional_ddl && is_definition(*text);
        if (alone) {
            define(*text);
        }
        db_.transact("SchemaStep", options_, [&](Tx& tx) {
            if (!tx.try_fenced(guard, statements::schema_advance, version, next)) {
                return;
            }
            if (text != nullptr && !alone) {
                tx.session_.run_script(*text);
            }
        });
    }

    // A definition in a transaction of its own, by the first process that gets there.
    void define(const std::string& text) {
        const std::optional<std::string> index = asynchronous_index(text);
        if (!index) {
            return define_or_find(text);
        }
        const std::string name = unquoted(*index);
        for (int builds = 0;;) {
            const Rows found =
                db_.run("SchemaIndex", reading(), statements::schema_index, name).rows;
            const std::optional<Row> row = found.single();
            if (row && row->get<bool>(0)) {
                return;
            }
            const bool at_work =
                row && db_.run("SchemaIndex", reading(), statements::schema_index_jobs, name)
                               .rows[0]
                               .get<std::int64_t>(0) > 0;
            if (at_work) {
                wait_for_job(*index);
                continue;
            }
            if (++builds > builds_max) {
                throw Error(
                    Code::condition_failed,
                    Outcome::not_applied,
                    fmt::format("the index {} was built {} times and is not valid; see sys.jobs "
                                "for the reason, correct it and apply the schema again",
                                *index,
                                builds_max));
            }
            if (row) {  // What a failed build has left.
                define_or_find(fmt::format("DROP INDEX IF EXISTS {}", *index));
            }
            define_or_find(text);
        }
    }

    // Another process may have been faster, or this one may have died before it stored the step.
    void define_or_find(const std::string& text) {
        TxOptions options = options_;
        options.on_duplicate = OnDuplicate::fail;
        try {
            db_.transact("SchemaStep", options, [&](Tx& tx) { tx.session_.run_script(text); });
        } catch (const DatabaseError& error) {
            if (!is_there_already(error.state())) {
                throw;
            }
        }
    }

    void wait_for_job(const std::string& index) {
        constexpr std::chrono::milliseconds between_looks{20};
        const auto next_look = system_clock().steady_now() + between_looks;
        if (!system_clock().sleep_until(next_look, options_.stop) || options_.deadline.passed()) {
            throw Error(Code::deadline,
                        Outcome::not_applied,
                        fmt::format("the index {} is still being built; apply the schema again to "
                                    "wait for it",
                                    index));
        }
    }

    Database& db_;
    const SchemaPart& part_;
    TxOptions options_;
};

std::string schema_dump(const SchemaPart& part, const Dialect& dialect) {
    std::string text;
    for (const MigrationFile& file : part.files) {
        text += fmt::format("-- {} {}\n", part.name, file.name);
        for (const std::string& step : migration_steps(file, dialect, part.names)) {
            text += step + ";\n";
        }
    }
    return text;
}

PartStatus schema_apply(Database& db, const SchemaPart& part, const TxOptions& options) {
    return SchemaSteps(db, part, options).apply();
}

PartStatus schema_status(Database& db, const SchemaPart& part, const TxOptions& options) {
    return SchemaSteps(db, part, options).status();
}

void schema_require(Database& db, const SchemaPart& part, const TxOptions& options) {
    const PartStatus status = schema_status(db, part, options);
    if (status.version > status.known) {
        throw newer_schema(status);
    }
    if (status.version < part.oldest) {
        throw Error(
            Code::condition_failed,
            Outcome::not_applied,
            fmt::format("the schema part '{}' has version {}, but at least {} is needed; run "
                        "`holdfast schema apply --part {}`",
                        status.part,
                        status.version,
                        part.oldest,
                        status.part));
    }
}

}  // namespace holdfast::sql

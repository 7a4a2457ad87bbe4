#include <holdfast/sql/schema.hpp>

#include <optional>

#include "driver.hpp"
#include "migration_text.hpp"
#include "statements.hpp"
#include <fmt/core.h>

#include <holdfast/sql/database.hpp>

namespace holdfast::sql {
namespace {

constexpr const char* create_table =
    "CREATE TABLE IF NOT EXISTS holdfast_schema ("
    "part VARCHAR(100) PRIMARY KEY, version BIGINT NOT NULL, step BIGINT NOT NULL)";

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

}  // namespace

// The steps of one part, on one database.
class SchemaSteps {
public:
    SchemaSteps(Database& db, const SchemaPart& part, const TxOptions& options)
        : db_(db), part_(part), options_(options) {
        // Two processes that create the same table or row at once meet as a duplicate key.
        options_.duplicate_is_conflict = true;
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
        const Statement& statement = db_.dialect().product == Product::sqlite
                                         ? statements::schema_table_sqlite
                                         : statements::schema_table_postgres;
        const Result found = db_.run("SchemaStatus", reading(), statement);
        return found.rows[0].get<std::int64_t>(0) > 0;
    }

    void prepare() {
        if (!table_exists()) {
            db_.transact(
                "SchemaCreate", options_, [](Tx& tx) { tx.session_.run_script(create_table); });
        }
        db_.run("SchemaPart", options_, statements::schema_insert, part_.name);
    }

    // One step. If somebody else has done it meanwhile, that is as good.
    void advance(const PartStatus& from) {
        const auto& file = part_.files[static_cast<std::size_t>(from.version)];
        const std::vector<std::string> steps =
            migration_steps(file, db_.dialect().product, part_.names);
        const auto step = static_cast<std::size_t>(from.step);
        const bool last = step + 1 >= steps.size();
        const Guard guard{.what = fmt::format("the schema part '{}'", part_.name),
                          .key = {std::string(part_.name)},
                          .tokens = {std::int64_t{from.version}, std::int64_t{from.step}}};
        const std::int64_t version = last ? from.version + 1 : from.version;
        const std::int64_t next = last ? 0 : from.step + 1;
        const std::string* const text = step < steps.size() ? &steps[step] : nullptr;

        // Where DDL is no part of a transaction it comes first, and must bear repetition.
        if (text != nullptr && !db_.dialect().transactional_ddl) {
            db_.transact("SchemaStep", options_, [&](Tx& tx) { tx.session_.run_script(*text); });
        }
        db_.transact("SchemaStep", options_, [&](Tx& tx) {
            if (!tx.try_fenced(guard, statements::schema_advance, version, next)) {
                return;
            }
            if (text != nullptr && tx.dialect().transactional_ddl) {
                tx.session_.run_script(*text);
            }
        });
    }

    Database& db_;
    const SchemaPart& part_;
    TxOptions options_;
};

std::string schema_dump(const SchemaPart& part, Product product) {
    std::string text;
    for (const MigrationFile& file : part.files) {
        text += fmt::format("-- {} {}\n", part.name, file.name);
        for (const std::string& step : migration_steps(file, product, part.names)) {
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

// Schemas, in numbered migrations.
//
// A part is one floor's tables. Its migrations are files NNNN_name.sql, written once with holes for
// the dialects. Each statement of a migration is a step, and the number of steps done is stored in
// the same transaction as the step where the database can do that, so that a migration continues
// where it was interrupted and two processes that migrate at once share the work.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/sql/dialect.hpp>
#include <holdfast/sql/table_names.hpp>

namespace holdfast::sql {

class Database;
struct TxOptions;

// One file, as it was compiled in.
struct MigrationFile {
    std::string_view name;  // "0001_ledger"
    std::string_view text;
};

// One floor's tables. `oldest` is the oldest version this program can still work with: rolling
// upgrades run old and new programs side by side.
struct SchemaPart {
    std::string_view name;
    std::span<const MigrationFile> files;  // Versions 1, 2, 3, ... without a gap.
    int oldest = 1;
    const TableNames* names = nullptr;  // For the {table.x} holes of the files, if there are any.
};

struct PartStatus {
    std::string part;
    int version = 0;  // What the database has; 0 if nothing.
    int step = 0;     // Steps done of the migration after it; 0 unless one was interrupted.
    int known = 0;    // The newest this program knows.
};

// The statements of a part in a dialect, in order, ready to be run by hand.
[[nodiscard]] std::string schema_dump(const SchemaPart& part, const Dialect& dialect);

// Brings a part to the newest version this program knows. Does nothing if it is there already; safe
// when several processes do it at once; continues an interrupted migration.
// A schema that is newer than this program is refused with condition_failed and left alone.
PartStatus schema_apply(Database& db, const SchemaPart& part, const TxOptions& options);

[[nodiscard]] PartStatus schema_status(Database& db,
                                       const SchemaPart& part,
                                       const TxOptions& options);

// Throws unless this program can work with the schema that is there; the message names the command
// that corrects it.
void schema_require(Database& db, const SchemaPart& part, const TxOptions& options);

}  // namespace holdfast::sql

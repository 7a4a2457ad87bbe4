#include "sqlite/sqlite_errors.hpp"

#include <array>
#include <string_view>

#include <sqlite3.h>

namespace holdfast::sql::sqlite {
namespace {

struct Translation {
    int result_code;
    std::string_view state;
};

constexpr std::array translations{
    // Extended codes whose primary code says too little.
    Translation{SQLITE_CONSTRAINT_PRIMARYKEY, "23505"},
    Translation{SQLITE_CONSTRAINT_UNIQUE, "23505"},
    Translation{SQLITE_CONSTRAINT_ROWID, "23505"},
    Translation{SQLITE_CONSTRAINT_NOTNULL, "23502"},
    Translation{SQLITE_CONSTRAINT_FOREIGNKEY, "23503"},
    Translation{SQLITE_CONSTRAINT_CHECK, "23514"},
    Translation{SQLITE_CONSTRAINT_DATATYPE, "42804"},  // A STRICT table refused a value.
    Translation{SQLITE_CONSTRAINT_TRIGGER, "P0001"},   // RAISE(ABORT, ...)
    Translation{SQLITE_IOERR_NOMEM, "53200"},

    Translation{SQLITE_ERROR, "22000"},  // While it runs; when it is prepared, see Connection.
    Translation{SQLITE_PERM, "42501"},
    Translation{SQLITE_BUSY, "40001"},  // Also 517, a snapshot that has grown old.
    Translation{SQLITE_LOCKED, "40001"},
    Translation{SQLITE_NOMEM, "53200"},
    Translation{SQLITE_READONLY, "42501"},  // 25006 is a standby's, and passes; this does not.
    Translation{SQLITE_INTERRUPT, "57014"},
    Translation{SQLITE_IOERR, "58030"},
    Translation{SQLITE_CORRUPT, "XX001"},
    Translation{SQLITE_FULL, "53100"},
    Translation{SQLITE_CANTOPEN, "58030"},
    Translation{SQLITE_PROTOCOL, "55P03"},
    Translation{SQLITE_SCHEMA, "40001"},
    Translation{SQLITE_TOOBIG, "54000"},
    Translation{SQLITE_CONSTRAINT, "23000"},
    Translation{SQLITE_MISMATCH, "42804"},
    Translation{SQLITE_NOLFS, "58030"},
    Translation{SQLITE_AUTH, "42501"},
    Translation{SQLITE_NOTADB, "XX001"},
};

constexpr int primary(int result_code) noexcept {
    return result_code & 0xff;
}

}  // namespace

SqlState sql_state(int result_code) noexcept {
    for (const int wanted : {result_code, primary(result_code)}) {
        for (const Translation& translation : translations) {
            if (translation.result_code == wanted) {
                return SqlState{translation.state};
            }
        }
    }
    return SqlState{"XX000"};
}

Outcome outcome_of_commit(int result_code) noexcept {
    switch (primary(result_code)) {
        case SQLITE_BUSY:
        case SQLITE_CONSTRAINT:
        case SQLITE_FULL:  // The log ends before the frame that would make it a commit.
        case SQLITE_INTERRUPT:
        case SQLITE_LOCKED:
        case SQLITE_READONLY:
            return Outcome::not_applied;
        default:
            return Outcome::unknown;
    }
}

}  // namespace holdfast::sql::sqlite

#include "sqlite/sqlite_errors.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace holdfast::sql::sqlite {
namespace {

TEST(SqliteErrors, EveryCodeHasTheStateThatPostgresGivesForTheSameTrouble) {
    const std::vector<std::pair<int, std::string_view>> expected{
        {5, "40001"},     // BUSY
        {517, "40001"},   // BUSY_SNAPSHOT
        {6, "40001"},     // LOCKED
        {262, "40001"},   // LOCKED_SHAREDCACHE
        {17, "40001"},    // SCHEMA
        {15, "55P03"},    // PROTOCOL
        {1555, "23505"},  // CONSTRAINT_PRIMARYKEY
        {2067, "23505"},  // CONSTRAINT_UNIQUE
        {2579, "23505"},  // CONSTRAINT_ROWID
        {1299, "23502"},  // CONSTRAINT_NOTNULL
        {787, "23503"},   // CONSTRAINT_FOREIGNKEY
        {275, "23514"},   // CONSTRAINT_CHECK
        {3091, "42804"},  // CONSTRAINT_DATATYPE
        {1811, "P0001"},  // CONSTRAINT_TRIGGER
        {19, "23000"},    // CONSTRAINT
        {2323, "23000"},  // CONSTRAINT_VTAB, which has no state of its own
        {20, "42804"},    // MISMATCH
        {13, "53100"},    // FULL
        {7, "53200"},     // NOMEM
        {3082, "53200"},  // IOERR_NOMEM
        {10, "58030"},    // IOERR
        {1034, "58030"},  // IOERR_FSYNC
        {4618, "58030"},  // IOERR_SHMOPEN
        {14, "58030"},    // CANTOPEN
        {22, "58030"},    // NOLFS
        {11, "XX001"},    // CORRUPT
        {779, "XX001"},   // CORRUPT_INDEX
        {26, "XX001"},    // NOTADB
        {8, "42501"},     // READONLY
        {776, "42501"},   // READONLY_ROLLBACK
        {18, "54000"},    // TOOBIG
        {9, "57014"},     // INTERRUPT
        {3, "42501"},     // PERM
        {23, "42501"},    // AUTH
        {1, "22000"},     // ERROR
        {2, "XX000"},     // INTERNAL
        {21, "XX000"},    // MISUSE
        {4242, "XX000"},  // Not invented yet.
    };
    for (const auto& [code, state] : expected) {
        EXPECT_EQ(sql_state(code).text(), state) << "for SQLite's code " << code;
    }
}

TEST(SqliteErrors, ConflictsAreRetryableAndDuplicatesAreDuplicates) {
    EXPECT_EQ(classify(sql_state(SQLITE_BUSY_SNAPSHOT)), ErrorClass::retryable);
    EXPECT_EQ(classify(sql_state(SQLITE_CONSTRAINT_UNIQUE)), ErrorClass::duplicate);
    EXPECT_EQ(classify(sql_state(SQLITE_TOOBIG)), ErrorClass::limit_exceeded);
    EXPECT_EQ(classify(sql_state(SQLITE_FULL)), ErrorClass::permanent);
}

// The worst moment: a flush fails, and the log may or may not have reached the disk.
TEST(SqliteErrors, AFailedFlushLeavesACommitUnknownAndAFullDiskDoesNot) {
    for (const int code : {SQLITE_IOERR,
                           SQLITE_IOERR_FSYNC,
                           SQLITE_IOERR_WRITE,
                           SQLITE_IOERR_SHMMAP,
                           SQLITE_NOMEM,
                           SQLITE_CORRUPT}) {
        EXPECT_EQ(outcome_of_commit(code), Outcome::unknown) << "for SQLite's code " << code;
    }
    for (const int code :
         {SQLITE_FULL, SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_CONSTRAINT_FOREIGNKEY}) {
        EXPECT_EQ(outcome_of_commit(code), Outcome::not_applied) << "for SQLite's code " << code;
    }
}

}  // namespace
}  // namespace holdfast::sql::sqlite

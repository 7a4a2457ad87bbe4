#include "limits/bare_sqlite.hpp"

#include <fmt/core.h>
#include <sqlite3.h>

#include <holdfast/base/error.hpp>

namespace holdfast::bench {

void BareSqlite::Close::operator()(sqlite3* db) const noexcept {
    ::sqlite3_close_v2(db);
}

void BareSqlite::Finalize::operator()(sqlite3_stmt* statement) const noexcept {
    ::sqlite3_finalize(statement);
}

BareSqlite::BareSqlite(const std::filesystem::path& file, std::int64_t rows, std::int64_t token) {
    sqlite3* db = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int status = ::sqlite3_open_v2(file.c_str(), &db, flags, nullptr);
    db_.reset(db);
    if (status != SQLITE_OK) {
        fail();
    }
    run("PRAGMA journal_mode = WAL");
    run("PRAGMA synchronous = FULL");
    run("CREATE TABLE holdfast_bench (id INTEGER PRIMARY KEY, token INTEGER NOT NULL, "
        "value INTEGER NOT NULL) STRICT");
    run(
        fmt::format("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "
                    "INSERT INTO holdfast_bench SELECT i, {}, 0 FROM n",
                    rows,
                    token));
    sqlite3_stmt* update = nullptr;
    if (::sqlite3_prepare_v3(db,
                             "UPDATE holdfast_bench SET value = value + ?3 "
                             "WHERE id = ?1 AND token = ?2",
                             -1,
                             SQLITE_PREPARE_PERSISTENT,
                             &update,
                             nullptr) != SQLITE_OK) {
        fail();
    }
    update_.reset(update);
}

void BareSqlite::update(std::int64_t row, std::int64_t token, std::int64_t step) {
    ::sqlite3_bind_int64(update_.get(), 1, row);
    ::sqlite3_bind_int64(update_.get(), 2, token);
    ::sqlite3_bind_int64(update_.get(), 3, step);
    const int status = ::sqlite3_step(update_.get());
    ::sqlite3_reset(update_.get());
    if (status != SQLITE_DONE || ::sqlite3_changes(db_.get()) != 1) {
        fail();
    }
}

std::string BareSqlite::pragma(const std::string& name) {
    sqlite3_stmt* statement = nullptr;
    const std::string text = "PRAGMA " + name;
    ::sqlite3_prepare_v2(db_.get(), text.c_str(), -1, &statement, nullptr);
    const std::unique_ptr<sqlite3_stmt, Finalize> owned{statement};
    if (::sqlite3_step(statement) != SQLITE_ROW) {
        fail();
    }
    return reinterpret_cast<const char*>(::sqlite3_column_text(statement, 0));
}

void BareSqlite::run(const std::string& text) {
    if (::sqlite3_exec(db_.get(), text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        fail();
    }
}

void BareSqlite::fail() const {
    throw Error(Code::unavailable,
                Outcome::not_applied,
                fmt::format("the bare SQLite loop failed: {}", ::sqlite3_errmsg(db_.get())));
}

}  // namespace holdfast::bench

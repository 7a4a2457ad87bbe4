// The limit for what lies in an SQLite file: its C API in a plain loop, one commit for each write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace holdfast::bench {

// One connection with a table of rows, as durable as ours: WAL, synchronous=FULL. Not safe to share
// between threads.
class BareSqlite {
public:
    // Creates the file and fills the table.
    BareSqlite(const std::filesystem::path& file, std::int64_t rows, std::int64_t token);

    // The same write that ours makes, as a transaction of its own.
    void update(std::int64_t row, std::int64_t token, std::int64_t step);

    // "2" is FULL.
    [[nodiscard]] std::string pragma(const std::string& name);

private:
    struct Close {
        void operator()(sqlite3* db) const noexcept;
    };
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const noexcept;
    };

    void run(const std::string& text);
    [[noreturn]] void fail() const;

    std::unique_ptr<sqlite3, Close> db_;
    std::unique_ptr<sqlite3_stmt, Finalize> update_;
};

}  // namespace holdfast::bench

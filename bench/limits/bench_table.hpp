// The table that limits are measured on, and whether what is measured is durable at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>

#include "limits/bare_sqlite.hpp"

#include <holdfast/base/random.hpp>
#include <holdfast/bench/driver.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::bench {

// holdfast_bench (id, token, value), filled with 1,000 rows.
inline constexpr std::int64_t table_rows = 1000;
inline constexpr std::int64_t table_token = 7;
inline constexpr std::int64_t table_step = 1;

[[nodiscard]] std::int64_t random_row(Random& random);
void make_table(sql::Database& db, const sql::TxOptions& options);
void drop_table(sql::Database& db);
// One fenced update of a row, as a transaction of its own.
void update_row(sql::Database& db, std::int64_t row, const sql::TxOptions& options);
// The limit on a file: the same by the bare C API, one after another.
[[nodiscard]] Work update_bare(BareSqlite& bare,
                               std::chrono::nanoseconds time,
                               const std::stop_token& stop);
// The same in pgbench's language, as a file in `directory`.
[[nodiscard]] std::filesystem::path write_pgbench_script(const std::filesystem::path& directory);

// What the settings say. Throws condition_failed unless commits wait for the disk.
[[nodiscard]] std::map<std::string, std::string> server_durability(sql::Database& db);
// How many more clients the server lets in.
[[nodiscard]] std::int64_t free_server_connections(sql::Database& db);
[[nodiscard]] std::map<std::string, std::string> file_durability(sql::Database& db,
                                                                 BareSqlite& bare);

}  // namespace holdfast::bench

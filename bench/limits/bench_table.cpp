#include "limits/bench_table.hpp"

#include <fstream>

#include "workers.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::bench {
namespace {

using sql::Database;
using sql::FencedStatement;
using sql::Statement;

constexpr Statement drop{"bench.drop", "DROP TABLE IF EXISTS holdfast_bench"};
constexpr Statement create_on_server{
    "bench.create_on_server",
    "CREATE TABLE holdfast_bench (id BIGINT PRIMARY KEY, token BIGINT NOT NULL, "
    "value BIGINT NOT NULL)"};
constexpr Statement create_in_file{
    "bench.create_in_file",
    "CREATE TABLE holdfast_bench (id INTEGER PRIMARY KEY, token INTEGER NOT NULL, "
    "value INTEGER NOT NULL) STRICT"};
constexpr Statement insert_row{"bench.insert", "INSERT INTO holdfast_bench VALUES ($1, $2, 0)"};
constexpr FencedStatement update{
    "bench.update",
    "UPDATE holdfast_bench SET value = value + $3 WHERE id = $1 AND token = $2",
    "SELECT token FROM holdfast_bench WHERE id = $1"};

constexpr std::string_view pgbench_script =
    "\\set id random(1, 1000)\n"
    "\\set token 7\n"
    "\\set step 1\n"
    "UPDATE holdfast_bench SET value = value + :step WHERE id = :id AND token = :token;\n";

constexpr Statement show_fsync{"bench.show_fsync", "SHOW fsync"};
constexpr Statement show_commit{"bench.show_commit", "SHOW synchronous_commit"};
constexpr Statement show_version{"bench.show_version", "SHOW server_version"};
// Connections that are about to close still count; those reserved for superusers are not used.
constexpr Statement free_connections{
    "bench.free_connections",
    "SELECT CAST(current_setting('max_connections') AS bigint) "
    "- CAST(current_setting('superuser_reserved_connections') AS bigint) "
    "- COALESCE(CAST(current_setting('reserved_connections', TRUE) AS bigint), 0) "
    "- (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"};
constexpr Statement pragma_synchronous{"bench.pragma_synchronous", "PRAGMA synchronous"};
constexpr Statement pragma_journal{"bench.pragma_journal", "PRAGMA journal_mode"};

std::string setting(Database& db, const Statement& show) {
    return sql::to_text(db.run("bench.setting", {}, show).rows[0].cell(0));
}

void refuse_unless(bool durable, std::string_view what) {
    if (durable) {
        return;
    }
    throw Error(
        Code::condition_failed,
        Outcome::not_applied,
        fmt::format("{}, so its commits are not durable and a comparison would say nothing; "
                    "switch it on",
                    what));
}

}  // namespace

std::int64_t random_row(Random& random) {
    return 1 + static_cast<std::int64_t>(random.below(table_rows));
}

void make_table(Database& db, const sql::TxOptions& options) {
    const bool file = db.dialect().embedded;
    db.transact("bench.prepare", options, [file](sql::Tx& tx) {
        tx.exec(drop);
        tx.exec(file ? create_in_file : create_on_server);
        for (std::int64_t row = 1; row <= table_rows; ++row) {
            tx.exec(insert_row, row, table_token);
        }
    });
}

void drop_table(Database& db) {
    (void)db.run("bench.clean", {}, drop);
}

void update_row(Database& db, std::int64_t row, const sql::TxOptions& options) {
    const sql::Guard guard{.what = "row", .key = {row}, .tokens = {table_token}};
    (void)db.run("bench.update", options, guard, update, table_step);
}

Work update_bare(BareSqlite& bare, std::chrono::nanoseconds time, const std::stop_token& stop) {
    return run_workers(1, time, stop, [&bare](Random& random) {
        bare.update(random_row(random), table_token, table_step);
    });
}

std::filesystem::path write_pgbench_script(const std::filesystem::path& directory) {
    std::filesystem::path script = directory / "update.pgbench";
    std::ofstream(script) << pgbench_script;
    return script;
}

std::map<std::string, std::string> server_durability(Database& db) {
    std::map<std::string, std::string> facts{{"fsync", setting(db, show_fsync)},
                                             {"synchronous_commit", setting(db, show_commit)},
                                             {"server_version", setting(db, show_version)}};
    refuse_unless(facts["fsync"] == "on", "the server runs with fsync off");
    refuse_unless(facts["synchronous_commit"] == "on",
                  "the server runs with synchronous_commit " + facts["synchronous_commit"]);
    return facts;
}

std::int64_t free_server_connections(Database& db) {
    return db.run("bench.setting", {}, free_connections).rows[0].get<std::int64_t>(0);
}

std::map<std::string, std::string> file_durability(Database& db, BareSqlite& bare) {
    refuse_unless(setting(db, pragma_synchronous) == "2" && bare.pragma("synchronous") == "2",
                  "the SQLite file is not opened with synchronous=FULL");
    return {{"synchronous", "FULL"}, {"journal_mode", setting(db, pragma_journal)}};
}

}  // namespace holdfast::bench

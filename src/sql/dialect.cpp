#include <holdfast/sql/dialect.hpp>

#include <array>
#include <limits>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sql {
namespace {

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

constexpr std::array dialects{Dialect{.product = Product::sqlite,
                                      .name = "sqlite",
                                      .embedded = true,
                                      .schemas = false,
                                      .parameter_mark = '?',
                                      .value_bytes_max = no_limit,
                                      .key_bytes_max = 1700,
                                      .search_tables = true,
                                      .relaxed_commits = false,
                                      .pooling_proxies = false,
                                      .internal_errors_pass = false,
                                      .locks_block = true,
                                      .notifies = false,
                                      .transactional_ddl = true,
                                      .advisory_locks = false,
                                      .skip_locked = false,
                                      .clock_moves = false,
                                      .cancels = true},
                              Dialect{.product = Product::postgres,
                                      .name = "postgres",
                                      .embedded = false,
                                      .schemas = true,
                                      .parameter_mark = '$',
                                      .value_bytes_max = no_limit,
                                      .key_bytes_max = 1700,
                                      .search_tables = true,
                                      .relaxed_commits = true,
                                      .pooling_proxies = true,
                                      .internal_errors_pass = false,
                                      .locks_block = true,
                                      .notifies = true,
                                      .transactional_ddl = true,
                                      .advisory_locks = true,
                                      .skip_locked = true,
                                      .clock_moves = true,
                                      .cancels = true},
                              Dialect{.product = Product::dsql,
                                      .name = "dsql",
                                      .embedded = false,
                                      .schemas = true,
                                      .parameter_mark = '$',
                                      .value_bytes_max = std::size_t{1} << 20U,
                                      .key_bytes_max = 1000,
                                      .search_tables = true,
                                      .relaxed_commits = false,
                                      .pooling_proxies = false,
                                      .internal_errors_pass = true,
                                      .locks_block = false,
                                      .notifies = false,
                                      .transactional_ddl = false,
                                      .advisory_locks = false,
                                      .skip_locked = false,
                                      .clock_moves = false,
                                      .cancels = false}};

// `#` is the number of the clock's parameter. PostgreSQL's clock is read when the expression is
// evaluated, after any lock the statement waited for; its parameter is the test's offset. SQLite's
// clock is the process's, read once per transaction, after the write lock, and bound whole. DSQL
// never waits for a lock, so there the transaction's own time serves, and all its statements agree.
constexpr std::string_view server_clock =
    "(CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) + $#)";

constexpr std::string_view transaction_clock =
    "(CAST(extract(epoch FROM now()) * 1000000 AS bigint) + $#)";

struct Hole {
    std::string_view name;
    std::string_view sqlite;
    std::string_view postgres;
    std::string_view dsql;
};

constexpr std::array holes{
    Hole{"for_update", "", "FOR UPDATE", "FOR UPDATE"},
    Hole{"skip_locked", "", "FOR UPDATE SKIP LOCKED", ""},
    Hole{"for_key_share", "", "FOR KEY SHARE", "FOR UPDATE"},
    Hole{"now_us", "$#", server_clock, transaction_clock},
    Hole{"lease_us", "$#", server_clock, transaction_clock},
    Hole{"lease_epoch_us", "$#", "0", "0"},
    Hole{"uuid", "BLOB", "UUID", "UUID"},
    Hole{"bytes", "BLOB", "BYTEA", "BYTEA"},
    Hole{"timestamp", "INTEGER", "TIMESTAMPTZ", "TIMESTAMPTZ"},
    Hole{"json", "TEXT", "JSON", "TEXT"},
    Hole{"bool", "INTEGER", "BOOLEAN", "BOOLEAN"},
    Hole{"bigint", "INTEGER", "BIGINT", "BIGINT"},
    Hole{"real", "REAL", "DOUBLE PRECISION", "DOUBLE PRECISION"},
    Hole{"strict", "STRICT", "", ""},
    Hole{"async", "", "", "ASYNC"},
    Hole{"bytewise", "", "COLLATE \"C\"", ""},
    Hole{"hot", "", "WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)", ""},
};

}  // namespace

const Dialect& dialect_of(Product product) noexcept {
    return dialects[static_cast<std::size_t>(product)];
}

const Dialect& dialect_named(std::string_view name) {
    for (const Dialect& dialect : dialects) {
        if (dialect.name == name) {
            return dialect;
        }
    }
    throw InvalidArgument(
        fmt::format("there is no dialect '{}'; choose from sqlite, postgres, dsql", name));
}

std::span<const Dialect> every_dialect() noexcept {
    return dialects;
}

std::string_view fill_hole(const Dialect& dialect, std::string_view name) noexcept {
    for (const Hole& hole : holes) {
        if (hole.name != name) {
            continue;
        }
        switch (dialect.product) {
            case Product::postgres:
                return hole.postgres;
            case Product::dsql:
                return hole.dsql;
            case Product::sqlite:
                return hole.sqlite;
        }
    }
    return {};
}

}  // namespace holdfast::sql

// A database for one test, on every backend.
//
//   class Story : public testing::TestWithParam<test::Backend> {
//   protected:
//       test::Database db{GetParam()};
//   };
//   INSTANTIATE_TEST_SUITE_P(Every, Story, test::every_backend(), test::backend_name);
//
// The last line needs <holdfast/testing/backends.hpp>.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/sql/database.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/testing/postgres.hpp>

namespace holdfast::test {

enum class Backend : std::uint8_t { sqlite, postgres, dsql };

[[nodiscard]] std::string_view to_string(Backend backend) noexcept;

// The same, for a test that forks: servers that a database needs run in a process beside this one.
// Requires: this process has one thread.
[[nodiscard]] Backend that_forks(Backend backend);

class Place;

// What a test opens a database with: conflicts are retried after a millisecond or so.
[[nodiscard]] sql::DatabaseOptions quick_options();

// A new database, gone with its object: a SQLite file in a folder of its own, or a database
// on the shared PostgreSQL, or a cluster of the shared gateway. Tests that run at the same time do
// not see each other.
class Database {
public:
    explicit Database(Backend backend, sql::DatabaseOptions options = quick_options());
    // With the tables of a part, and no rows. On the shared PostgreSQL, the first test that needs a
    // part makes it, and later tests get a copy.
    Database(Backend backend,
             const sql::SchemaPart& part,
             sql::DatabaseOptions options = quick_options());
    // On a server of the test's own.
    explicit Database(const PostgresAddress& server,
                      sql::DatabaseOptions options = quick_options());
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    // NOLINTNEXTLINE(google-explicit-constructor): it stands for the database it has opened.
    operator sql::Database&() noexcept { return *handle_; }
    sql::Database* operator->() noexcept { return handle_.get(); }
    sql::Database& operator*() noexcept { return *handle_; }

    [[nodiscard]] Backend backend() const noexcept;
    // For a second handle. Its clock does not move with ours; `options` has what makes it do so.
    [[nodiscard]] const std::string& url() const noexcept;
    [[nodiscard]] const sql::DatabaseOptions& options() const noexcept { return options_; }
    // Of a PostgreSQL database: what a FaultProxy's address needs to lead to it.
    [[nodiscard]] const std::string& name() const noexcept;

    // Moves the database's clocks as `{now_us}` and `{lease_us}` tell them. Time that was moved
    // stays moved.
    void advance_clock(std::chrono::microseconds by) noexcept { offset_us_ += by.count(); }
    // What `{lease_us}` tells now, to compare stored leases with.
    [[nodiscard]] std::int64_t lease_now_us();

    // Without a handle: for tests that fork, or that watch what a handle leaves behind.
    void close();
    // Opens a new handle; the data stay.
    void reopen();

    using Cells = std::vector<std::optional<std::string>>;

    // From outside: by a connection of its own, past everything that is tested. Statements are
    // separated by semicolons, and the dialect's holes ({uuid}, {strict}, ...) are filled.
    void execute(std::string_view script) const;
    // What a query finds, as text.
    [[nodiscard]] std::vector<Cells> look(std::string_view query) const;
    // The only number a query finds.
    [[nodiscard]] std::int64_t number(std::string_view query) const;

private:
    Database(std::unique_ptr<Place> place, sql::DatabaseOptions options);

    std::atomic<std::int64_t> offset_us_ = 0;
    sql::DatabaseOptions options_;
    std::unique_ptr<Place> place_;
    std::unique_ptr<sql::Database> handle_;
};

}  // namespace holdfast::test

// A SQLite file with its driver, for tests of the driver itself.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "driver.hpp"
#include "sqlite/sqlite_driver.hpp"
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <holdfast/testing/check.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::sql::sqlite {

class DriverStory : public testing::Test {
protected:
    [[nodiscard]] std::string path() const { return (folder_ / "orders.db").string(); }

    [[nodiscard]] std::unique_ptr<Driver> open(std::string_view options = "?create=1",
                                               const DatabaseOptions& more = {}) const {
        return open_sqlite(parse_url("sqlite:" + path() + std::string(options)), more);
    }

    // With the table that most stories are about.
    [[nodiscard]] std::unique_ptr<Driver> open_orders(std::string_view options = "?create=1",
                                                      const DatabaseOptions& more = {}) {
        auto driver = open(options, more);
        run(*driver,
            "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT) STRICT");
        return driver;
    }

    // The statement of a text; the same one for the same text. From any thread.
    const Rendered& sql(std::string_view text) {
        const std::lock_guard lock(mutex_);
        auto& kept = statements_[std::string(text)];
        if (!kept) {
            kept = std::make_unique<Rendered>(render(dialect_named("sqlite"), text, text));
        }
        return *kept;
    }

    [[nodiscard]] static AttemptOptions in_time() {
        return {.deadline = Deadline::after(std::chrono::seconds{60}), .stop = {}};
    }
    [[nodiscard]] static AttemptOptions read_only() {
        AttemptOptions options = in_time();
        options.read_only = true;
        return options;
    }
    [[nodiscard]] static AttemptOptions until(std::stop_token stop) {
        AttemptOptions options = in_time();
        options.stop = std::move(stop);
        return options;
    }

    template <class... A>
    Result run(Driver& driver, std::string_view text, const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        return driver.run(in_time(), Call{&sql(text), params}, 0);
    }
    template <class... A>
    static void send(Session& session, const Rendered& statement, const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        session.send(Call{&statement, params}, false);
    }
    template <class... A>
    static Result ask(Session& session, const Rendered& statement, const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        return session.take(session.send(Call{&statement, params}, true));
    }

    // From a snapshot of its own.
    [[nodiscard]] std::set<std::int64_t> order_ids(Driver& driver) {
        std::set<std::int64_t> ids;
        const Result found = driver.run(read_only(), Call{&sql("SELECT id FROM orders"), {}}, 0);
        for (const Row row : found.rows) {
            ids.insert(row.get<std::int64_t>(0));
        }
        return ids;
    }

    [[nodiscard]] std::set<std::string> files() const {
        std::set<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
            names.insert(entry.path().filename().string());
        }
        return names;
    }

    // Waits until `count` requests stand in the writers' line.
    static void await_line(const Driver& driver, int count) {
        while (driver.pool_stats().waiting < count) {
            std::this_thread::yield();
        }
    }

    test::TempDir folder_;

private:
    std::mutex mutex_;
    std::map<std::string, std::unique_ptr<Rendered>> statements_;
};

// While it exists, every write to the disk fails.
class BrokenDisk {
public:
    BrokenDisk() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
        const rlimit nothing{.rlim_cur = 0, .rlim_max = before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &nothing), 0);
    }
    ~BrokenDisk() {
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
        static_cast<void>(std::signal(SIGXFSZ, handler_));
    }
    BrokenDisk(const BrokenDisk&) = delete;
    BrokenDisk& operator=(const BrokenDisk&) = delete;

private:
    rlimit before_{};
    void (*handler_)(int);
};

// The error that `body` throws; a test that expects one fails without.
template <class E = DatabaseError, class Body>
[[nodiscard]] std::optional<E> error_of(Body&& body) {
    try {
        body();
    } catch (const E& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return std::nullopt;
}

}  // namespace holdfast::sql::sqlite

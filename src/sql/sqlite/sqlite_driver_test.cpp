// What one SQLite transaction promises, seen at the driver.
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "sqlite/test/driver_fixture.hpp"
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <holdfast/base/manual_clock.hpp>

namespace holdfast::sql::sqlite {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SqliteDriverStory : public DriverStory {
protected:
    // The error's state, and that the error names the statement it is about.
    template <class... A>
    std::string state_of(Driver& driver, std::string_view text, const A&... args) {
        const auto error = error_of([&] { run(driver, text, args...); });
        EXPECT_EQ(error->outcome(), Outcome::not_applied);
        EXPECT_THAT(error->what(), HasSubstr(std::string(text)));
        return std::string(error->state().text());
    }

    static constexpr const char* add = "INSERT INTO orders (id, item) VALUES ($1, $2)";
};

TEST_F(SqliteDriverStory, EveryTypeComesBackAsItWentIn) {
    const auto driver = open();
    run(*driver,
        "CREATE TABLE kinds (i INTEGER, r REAL, b INTEGER, t TEXT, y BLOB, u BLOB, w INTEGER, "
        "j TEXT, n TEXT) STRICT");
    const Uuid uuid = Uuid::v4();
    const Bytes bytes{std::byte{0}, std::byte{255}};
    const Timestamp time{1234567890123456us};
    run(*driver,
        "INSERT INTO kinds VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        std::numeric_limits<std::int64_t>::min(),
        0.1,
        true,
        "na\xc3\xafve",
        bytes,
        uuid,
        time,
        Json{R"({"a": 1})"},
        null);
    const Rows rows = run(*driver, "SELECT * FROM kinds").rows;
    const Row row = rows[0];
    EXPECT_EQ(row.get<std::int64_t>(0), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(row.get<double>(1), 0.1);
    EXPECT_TRUE(row.get<bool>(2));
    EXPECT_EQ(row.get<std::string>(3), "na\xc3\xafve");
    EXPECT_EQ(row.get<Bytes>(4), bytes);
    EXPECT_EQ(row.get<Uuid>(5), uuid);
    EXPECT_EQ(row.get<Timestamp>(6), time);
    EXPECT_EQ(row.get<Json>(7), Json{R"({"a": 1})"});
    EXPECT_EQ(row.get<std::optional<std::string>>(8), std::nullopt);
}

TEST_F(SqliteDriverStory, NothingOfSomethingIsNotNull) {
    const auto driver = open();
    const Rows rows = run(*driver,
                          "SELECT $1 IS NULL, $2 IS NULL, $3 IS NULL, $1, $2",
                          std::string_view{},
                          Bytes{},
                          std::optional<std::string>{})
                          .rows;
    const Row row = rows[0];
    EXPECT_FALSE(row.get<bool>(0));
    EXPECT_FALSE(row.get<bool>(1));
    EXPECT_TRUE(row.get<bool>(2));
    EXPECT_EQ(row.get<std::string>(3), "");
    EXPECT_EQ(row.get<Bytes>(4), Bytes{});
}

TEST_F(SqliteDriverStory, WhatIsNotANumberIsRefusedAndNotTurnedIntoNull) {
    const auto driver = open();
    EXPECT_THROW(run(*driver, "SELECT $1", std::nan("")), InvalidArgument);
}

TEST_F(SqliteDriverStory, CountsTheRowsThatThisStatementChanged) {
    const auto driver = open_orders();
    EXPECT_EQ(run(*driver, add, 1, "pen").changed, 1);
    EXPECT_EQ(run(*driver, add, 2, "ink").changed, 1);
    EXPECT_EQ(run(*driver, "UPDATE orders SET item = 'cup'").changed, 2);
    EXPECT_EQ(run(*driver, "UPDATE orders SET item = 'cup' WHERE id = 3").changed, 0);
    EXPECT_EQ(run(*driver, "SELECT id FROM orders").changed, 0);
    EXPECT_EQ(run(*driver, "CREATE TABLE other (id INTEGER)").changed, 0);
    const Result deleted = run(*driver, "DELETE FROM orders WHERE id = 2 RETURNING item");
    EXPECT_EQ(deleted.changed, 1);
    EXPECT_EQ(deleted.rows[0].get<std::string>(0), "cup");
}

TEST_F(SqliteDriverStory, ABodyThatThrowsLeavesNothingAndItsExceptionComesOutUnchanged) {
    const auto driver = open_orders();
    const auto body = [&](Session& session) {
        send(session, sql(add), 1, "pen");
        throw std::runtime_error("changed my mind");
    };
    try {
        driver->attempt(in_time(), body);
        ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "changed my mind");
    }
    EXPECT_THAT(order_ids(*driver), IsEmpty());
    run(*driver, add, 1, "pen");
}

// After a failure only the end follows, as on every other database.
TEST_F(SqliteDriverStory, ABodyThatSwallowsAnErrorIsNotCommitted) {
    const auto driver = open_orders();
    run(*driver, add, 1, "pen");
    const auto error = error_of([&] {
        driver->attempt(in_time(), [&](Session& session) {
            send(session, sql(add), 2, "ink");
            EXPECT_THROW(send(session, sql(add), 1, "cup"), DatabaseError);
            EXPECT_THROW(send(session, sql(add), 3, "cup"), DatabaseError);
        });
    });
    EXPECT_EQ(error->error_class(), ErrorClass::duplicate);
    EXPECT_THAT(order_ids(*driver), ElementsAre(1));
}

TEST_F(SqliteDriverStory, AFenceThatIsCheckedAtCommitRollsBackWhenItChangedNoRow) {
    const auto driver = open_orders();
    run(*driver, add, 1, "pen");
    const auto fenced = [&](int id) {
        driver->attempt(in_time(), [&](Session& session) {
            const std::array<Param, 1> args{Param(id)};
            const Rendered& update = sql("UPDATE orders SET item = 'cup' WHERE id = $1");
            session.check_at_commit(session.send(Call{&update, args}, true));
        });
    };
    fenced(1);
    EXPECT_THROW(fenced(2), FenceMissed);
}

TEST_F(SqliteDriverStory, ErrorsCarryTheirStateAndTheNameOfTheirStatement) {
    const auto driver = open_orders();
    run(*driver,
        "CREATE TABLE lines (id INTEGER NOT NULL REFERENCES orders, n INTEGER CHECK (n > 0))");
    run(*driver, add, 1, "pen");
    EXPECT_EQ(state_of(*driver, add, 1, "pen"), "23505");
    EXPECT_EQ(state_of(*driver, add, 2, Bytes{}), "42804");
    EXPECT_EQ(state_of(*driver, "INSERT INTO lines VALUES (NULL, 1)"), "23502");
    EXPECT_EQ(state_of(*driver, "INSERT INTO lines VALUES (7, 1)"), "23503");
    EXPECT_EQ(state_of(*driver, "INSERT INTO lines VALUES (1, 0)"), "23514");
    EXPECT_EQ(state_of(*driver, "SELECT * FROM nowhere"), "42601");
    EXPECT_EQ(state_of(*driver, "SELEKT 1"), "42601");
    EXPECT_EQ(state_of(*driver, "SELECT json('{')"), "22000");
    EXPECT_EQ(state_of(*driver, "SELECT zeroblob(2000000000)"), "54000");
    EXPECT_EQ(state_of(*driver, "SELECT \"pen\""), "42601") << "quotes make a name, not a text";
}

// A body's own COMMIT would commit the work of the others in its batch.
TEST_F(SqliteDriverStory, ABodyCannotEndTheTransaction) {
    const auto driver = open_orders();
    for (const char* control : {"COMMIT", "ROLLBACK", "BEGIN", "SAVEPOINT s", "RELEASE body"}) {
        EXPECT_EQ(state_of(*driver, control), "42501");
        EXPECT_THROW(driver->attempt(in_time(),
                                     [&](Session& session) {
                                         send(session, sql(add), 1, "pen");
                                         session.run_script(control);
                                     }),
                     DatabaseError);
    }
    EXPECT_THAT(order_ids(*driver), IsEmpty());
}

TEST_F(SqliteDriverStory, AConstraintThatIsCheckedAtTheEndFailsItsOwnTransaction) {
    const auto driver = open_orders();
    run(*driver, "CREATE TABLE lines (id INTEGER REFERENCES orders DEFERRABLE INITIALLY DEFERRED)");
    driver->attempt(in_time(), [&](Session& session) {
        send(session, sql("INSERT INTO lines VALUES ($1)"), 1);
        send(session, sql(add), 1, "pen");
    });
    EXPECT_EQ(error_of([&] { run(*driver, "INSERT INTO lines VALUES ($1)", 2); })->state().text(),
              "23503");
    EXPECT_EQ(run(*driver, "SELECT count(*) FROM lines").rows[0].get<int>(0), 1);
}

TEST_F(SqliteDriverStory, AScriptIsPartOfItsTransaction) {
    const auto driver = open();
    const auto migrate = [&](bool fail) {
        driver->attempt(in_time(), [&](Session& session) {
            session.run_script(
                "CREATE TABLE a (id INTEGER); -- one\nCREATE TABLE b (id INTEGER);\n");
            if (fail) {
                throw std::runtime_error("power cut");
            }
        });
    };
    const auto tables = [&] {
        return run(*driver, "SELECT count(*) FROM sqlite_schema").rows[0].get<int>(0);
    };
    EXPECT_THROW(migrate(true), std::runtime_error);
    EXPECT_EQ(tables(), 0);
    migrate(false);
    EXPECT_EQ(tables(), 2);
    EXPECT_THROW(migrate(false), DatabaseError);
}

TEST_F(SqliteDriverStory, AReadOnlyTransactionSeesOneSnapshot) {
    const auto driver = open_orders();
    run(*driver, add, 1, "pen");
    driver->attempt(read_only(), [&](Session& session) {
        const Rendered& count = sql("SELECT count(*) FROM orders");
        EXPECT_EQ(ask(session, count).rows[0].get<int>(0), 1);
        run(*driver, add, 2, "ink");  // A reader does not block the writer.
        EXPECT_EQ(ask(session, count).rows[0].get<int>(0), 1);
    });
    EXPECT_THAT(order_ids(*driver), ElementsAre(1, 2));
}

TEST_F(SqliteDriverStory, AReadOnlyTransactionRefusesToWrite) {
    for (const std::string& url :
         {std::string("sqlite::memory:"), "sqlite:" + path() + "?create=1"}) {
        const auto driver = open_sqlite(parse_url(url), {});
        run(*driver, "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)");
        const std::array<Param, 2> args{Param(1), Param("pen")};
        const auto error =
            error_of<InvalidArgument>([&] { driver->run(read_only(), Call{&sql(add), args}, 0); });
        EXPECT_THAT(error->what(), HasSubstr(add));
        EXPECT_THROW(
            driver->attempt(read_only(),
                            [](Session& session) { session.run_script("DELETE FROM orders"); }),
            Error);
        EXPECT_THAT(order_ids(*driver), IsEmpty());
    }
}

TEST_F(SqliteDriverStory, TheClockIsReadOncePerTransactionAndMovedByTheOffset) {
    ManualClock clock;
    DatabaseOptions options;
    options.clock = &clock;
    const auto driver = open("?create=1", options);
    const std::int64_t start = clock.wall_now().time_since_epoch().count();
    const Call read_clock{&sql("SELECT {now_us}"), {}};
    EXPECT_EQ(driver->run(in_time(), read_clock, 0).rows[0].get<std::int64_t>(0), start);
    EXPECT_EQ(driver->run(in_time(), read_clock, 5).rows[0].get<std::int64_t>(0), start + 5);
    EXPECT_EQ(driver->run(read_only(), read_clock, -5).rows[0].get<std::int64_t>(0), start - 5);
    driver->attempt(in_time(), [&](Session& session) {
        EXPECT_EQ(session.clock_parameter(ClockReading::now, 0), start);
        clock.advance(1s);
        EXPECT_EQ(session.clock_parameter(ClockReading::now, 7), start + 7);
    });
    EXPECT_EQ(driver->run(in_time(), read_clock, 0).rows[0].get<std::int64_t>(0),
              start + 1'000'000);

    clock.set_wall(ManualClock::first_wall - 1h);  // A time server corrects the machine.
    EXPECT_EQ(driver->run(in_time(), read_clock, 0).rows[0].get<std::int64_t>(0),
              start - 3'600'000'000)
        << "else nothing that is set now would be due for an hour";
}

class SqliteLeaseClock : public SqliteDriverStory {
protected:
    [[nodiscard]] std::unique_ptr<Driver> open_again() {
        DatabaseOptions options;
        options.clock = &clock;
        return open("?create=1", options);
    }
    [[nodiscard]] std::int64_t lease_us(Driver& driver, std::int64_t offset_us = 0) {
        return driver.run(in_time(), Call{&sql("SELECT {lease_us}"), {}}, offset_us)
            .rows[0]
            .get<std::int64_t>(0);
    }
    // As people are told.
    [[nodiscard]] std::int64_t shown_us(Driver& driver) {
        return driver.run(in_time(), Call{&sql("SELECT {lease_us} - {lease_epoch_us}"), {}}, 0)
            .rows[0]
            .get<std::int64_t>(0);
    }

    ManualClock clock;
};

TEST_F(SqliteLeaseClock, IsNotMovedBySettingTheWallClock) {
    const auto driver = open_again();
    const std::int64_t start = lease_us(*driver);
    EXPECT_EQ(lease_us(*driver, 5), start + 5);
    for (const auto step : {2h, -3h, 24h * 365}) {
        clock.set_wall(clock.wall_now() + step);
        EXPECT_EQ(lease_us(*driver), start);
        EXPECT_EQ(shown_us(*driver), clock.wall_now().time_since_epoch().count());
    }
    clock.advance(1s);
    EXPECT_EQ(lease_us(*driver), start + 1'000'000);
}

TEST_F(SqliteLeaseClock, IsTheSameForAllProcessesOfABoot) {
    const auto ann = open_again();
    const auto bob = open_again();
    EXPECT_EQ(lease_us(*ann), lease_us(*bob));
    clock.set_wall(clock.wall_now() + 2h);
    const auto cyd = open_again();
    EXPECT_EQ(lease_us(*cyd), lease_us(*ann));
    EXPECT_EQ(
        cyd->run(read_only(), Call{&sql("SELECT {lease_us}"), {}}, 0).rows[0].get<std::int64_t>(0),
        lease_us(*ann));
}

TEST_F(SqliteLeaseClock, IsAfterEveryTimeOfAnEarlierBoot) {
    std::int64_t before = 0;
    for (const char* boot : {"a", "b", "c", "a"}) {
        clock.restart(boot);
        const auto driver = open_again();
        const std::int64_t now = lease_us(*driver);
        EXPECT_GT(now, before) << "even a lease of a year has expired";
        EXPECT_EQ(shown_us(*driver), clock.wall_now().time_since_epoch().count());
        clock.advance(1h);
        before = lease_us(*driver) + std::chrono::microseconds{24h * 365}.count();
    }
}

// The first connection to a file after a restart may be one that only reads.
TEST_F(SqliteLeaseClock, AReaderKnowsTheBootBeforeItIsEntered) {
    const std::int64_t before = lease_us(*open_again());
    clock.restart("b");
    const auto driver = open_again();
    const Call read{&sql("SELECT {lease_us}"), {}};
    const std::int64_t seen = driver->run(read_only(), read, 0).rows[0].get<std::int64_t>(0);
    EXPECT_GT(seen, before);
    EXPECT_EQ(lease_us(*driver), seen);
    EXPECT_EQ(driver->run(read_only(), read, 0).rows[0].get<std::int64_t>(0), seen);
}

TEST_F(SqliteLeaseClock, ABootThatWasRolledBackIsEnteredAgain) {
    const auto driver = open_again();
    struct Undo {};
    EXPECT_THROW(driver->attempt(in_time(),
                                 [&](Session& session) {
                                     (void)session.clock_parameter(ClockReading::lease, 0);
                                     throw Undo{};
                                 }),
                 Undo);
    const std::int64_t start = lease_us(*driver);
    EXPECT_EQ(lease_us(*open_again()), start);
    EXPECT_EQ(driver->run(in_time(), Call{&sql("SELECT count(*) FROM holdfast_boots"), {}}, 0)
                  .rows[0]
                  .get<std::int64_t>(0),
              1);
}

TEST_F(SqliteDriverStory, ADiskThatIsFullFailsTheTransactionAndNothingElse) {
    const auto driver = open_orders();
    const Rows pages = run(*driver, "PRAGMA page_count").rows;
    run(*driver, "PRAGMA max_page_count = " + std::to_string(pages[0].get<int>(0) + 2));
    const std::string large(100'000, 'x');
    const auto error = error_of([&] { run(*driver, add, 1, large); });
    EXPECT_EQ(error->state().text(), "53100");
    EXPECT_EQ(error->code(), Code::unavailable);
    EXPECT_EQ(error->outcome(), Outcome::not_applied);
    run(*driver, add, 2, "pen");
    EXPECT_THAT(order_ids(*driver), ElementsAre(2));
}

TEST_F(SqliteDriverStory, CountsPhysicalCommitsAndStatements) {
    const auto driver = open_orders();
    const DriverStats before = driver->driver_stats();
    driver->attempt(in_time(), [&](Session& session) {
        send(session, sql(add), 1, "pen");
        send(session, sql(add), 2, "ink");
    });
    run(*driver, add, 3, "cup");
    static_cast<void>(order_ids(*driver));
    const DriverStats after = driver->driver_stats();
    EXPECT_EQ(after.commits - before.commits, 2);
    EXPECT_EQ(after.statements - before.statements, 4);
    EXPECT_EQ(after.round_trips, 0);
}

TEST_F(SqliteDriverStory, AStoppedDriverRefusesAndLeavesOneFile) {
    const auto driver = open_orders();
    run(*driver, add, 1, "pen");
    static_cast<void>(order_ids(*driver));
    EXPECT_EQ(driver->pool_stats().ready, 2);
    driver->stop(Deadline::after(10s));
    driver->stop(Deadline::after(10s));
    EXPECT_THAT(files(), ElementsAre("orders.db"));
    EXPECT_EQ(error_of([&] { run(*driver, add, 2, "ink"); })->code(), Code::unavailable);
    EXPECT_EQ(error_of([&] { static_cast<void>(order_ids(*driver)); })->code(), Code::unavailable);
    const PoolStats stats = driver->pool_stats();
    EXPECT_EQ(stats.ready + stats.in_use, 0);
    EXPECT_EQ(stats.opened, stats.closed);
}

}  // namespace
}  // namespace holdfast::sql::sqlite

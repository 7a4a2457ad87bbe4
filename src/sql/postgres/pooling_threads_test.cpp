// A proxy that lends a backend to one transaction after the other, as pgbouncer does: what a client
// leaves behind in its session is found by another client.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/crowd.hpp>
#include <holdfast/testing/database.hpp>
#include <holdfast/testing/pgbouncer.hpp>

namespace holdfast::sql {
namespace {

using namespace std::chrono_literals;

constexpr Statement add_apple{"apple.add", "INSERT INTO apples (id) VALUES ($1)"};
constexpr Statement count_apples{"apple.count", "SELECT count(*) FROM apples WHERE id = $1"};
constexpr Statement add_pear{"pear.add", "INSERT INTO pears (id) VALUES ($1)"};
constexpr Statement count_pears{"pear.count", "SELECT count(*) FROM pears WHERE id = $1"};
constexpr Statement sleeper{"sleep", "SELECT 1 FROM pg_sleep(60)"};
constexpr Statement forget{"forget", "DEALLOCATE ALL"};
constexpr Statement prepared_names{"prepared.names",
                                   "SELECT name FROM pg_prepared_statements ORDER BY 1"};
constexpr Statement take_name{"take.name", "SELECT take_name($1)"};

// How long the two programs write: in a soak a minute, else as many rows as suffice.
bool soaking() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    return std::getenv("HOLDFAST_SOAK") != nullptr;
}

class Pooled : public testing::TestWithParam<test::PoolMode> {
protected:
    Pooled() {
        outside.execute(
            "CREATE TABLE apples (id bigint PRIMARY KEY); CREATE TABLE pears (id bigint PRIMARY "
            "KEY)");
        outside.close();
    }

    [[nodiscard]] std::string url(const std::string& more = "") const {
        return bouncer.url(outside.name()) + more;
    }

    test::Database outside{test::Backend::postgres};
    test::PgBouncer bouncer{
        test::shared_postgres(),
        {.mode = GetParam(), .backends = GetParam() == test::PoolMode::session ? 24 : 3}};
};

// Two programs, each with statements of its own, in the same order.
struct Program {
    const Statement& add;
    const Statement& count;
};

void write_rows(Database& db, const Program& program, std::atomic<std::int64_t>& next, int rows) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    for (int i = 0; soaking() ? std::chrono::steady_clock::now() < end : i < rows; ++i) {
        const std::int64_t id = next.fetch_add(2);
        db.run("Add", {}, program.add, id);
        db.transact("AddAndLook", {}, [&](Tx& tx) {
            ASSERT_EQ(tx.query(program.count, id)[0].get<std::int64_t>(0), 1);
            tx.exec(program.add, id + 1);
        });
    }
}

// Without names of their own, statements of one program would be run for the other: 2,065 of 4,334
// rows were seen in the wrong table.
TEST_P(Pooled, TwoProgramsWriteEveryRowToTheirOwnTable) {
    Database apples_db(url("&pool=8"));
    Database pears_db(url("&pool=8"));
    const Program apples{add_apple, count_apples};
    const Program pears{add_pear, count_pears};
    constexpr int threads = 8;
    constexpr int rows = 40;
    constexpr std::int64_t pears_from = 1'000'000'000;
    std::atomic<std::int64_t> next_apple{0};
    std::atomic<std::int64_t> next_pear{pears_from};
    test::all_at_once(2 * threads, [&](int i) {
        if (i % 2 == 0) {
            write_rows(apples_db, apples, next_apple, rows);
        } else {
            write_rows(pears_db, pears, next_pear, rows);
        }
    });
    const std::string from = std::to_string(pears_from);
    EXPECT_EQ(outside.number("SELECT count(*) FROM apples"), next_apple.load());
    EXPECT_EQ(outside.number("SELECT count(*) FROM pears"), next_pear.load() - pears_from);
    EXPECT_EQ(outside.number("SELECT count(*) FROM apples WHERE id >= " + from), 0);
    EXPECT_EQ(outside.number("SELECT count(*) FROM pears WHERE id < " + from), 0);
}

// Settings belong to our transactions, not to whichever client comes next.
TEST_P(Pooled, ATimeoutOfTheUrlEndsOurStatementsAndNobodyElses) {
    Database hasty(url("&pool=1&statement_timeout=200ms"));
    EXPECT_EQ(test::code_of([&] { hasty.run("Sleep", {}, sleeper); }), Code::unavailable);
    EXPECT_EQ(test::code_of(
                  [&] { hasty.transact("Sleep", {}, [](Tx& tx) { (void)tx.query(sleeper); }); }),
              Code::unavailable);
    constexpr Statement timeout{"timeout", "SELECT current_setting('statement_timeout')"};
    EXPECT_EQ(hasty.run("Look", {}, timeout).rows[0].get<std::string>(0), "200ms");
    if (GetParam() == test::PoolMode::transaction) {
        Database patient(url("&pool=3"));
        for (int i = 0; i < 20; ++i) {
            EXPECT_EQ(patient.run("Look", {}, timeout).rows[0].get<std::string>(0), "0");
        }
    }
}

TEST_P(Pooled, ADeadlineCancelsTheStatementOnTheServer) {
    Database db(url("&pool=1"));
    EXPECT_EQ(test::code_of([&] { db.run("Sleep", {.deadline = Deadline::after(50ms)}, sleeper); }),
              Code::deadline);
    const Deadline soon = Deadline::after(20s);
    while (outside.number("SELECT count(*) FROM pg_stat_activity WHERE datname = "
                          "current_database() AND query LIKE 'SELECT 1 FROM pg_sleep%' "
                          "AND state = 'active'") > 0) {
        ASSERT_FALSE(soon.passed());
    }
    db.run("Add", {}, add_apple, 1);
    EXPECT_EQ(outside.number("SELECT count(*) FROM apples"), 1);
}

INSTANTIATE_TEST_SUITE_P(Modes,
                         Pooled,
                         testing::Values(test::PoolMode::session, test::PoolMode::transaction),
                         [](const auto& info) { return std::string(to_string(info.param)); });

class Pooling : public testing::Test {
protected:
    [[nodiscard]] std::string url(const test::PgBouncer& bouncer,
                                  const std::string& more = "") const {
        return bouncer.url(direct.name()) + more;
    }

    test::Database direct{test::Backend::postgres};
};

TEST_F(Pooling, OfTransactionsIsSeenWhenItIsOpenedSoThatNothingListens) {
    const test::PgBouncer bouncer(test::shared_postgres());
    Database db(url(bouncer));
    EXPECT_FALSE(db.dialect().notifies);
    EXPECT_EQ(db.subscribe("news", [](std::string_view) {}), nullptr);
    // The notification itself goes out, for those that can listen.
    std::promise<std::string> heard;
    const auto listening = direct->subscribe(
        "news", [&](std::string_view text) { heard.set_value(std::string(text)); });
    db.transact("Tell", {}, [](Tx& tx) { tx.notify("news", "today"); });
    EXPECT_EQ(heard.get_future().get(), "today");
    EXPECT_EQ(direct.number("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' "
                            "AND datname = current_database()"),
              1);
}

TEST_F(Pooling, OfSessionsIsAsGoodAsNone) {
    const test::PgBouncer bouncer(test::shared_postgres(),
                                  {.mode = test::PoolMode::session, .backends = 8});
    Database db(url(bouncer, "&pool=2"));
    EXPECT_TRUE(db.dialect().notifies);
    std::promise<std::string> heard;
    const auto listening =
        db.subscribe("news", [&](std::string_view text) { heard.set_value(std::string(text)); });
    db.transact("Tell", {}, [](Tx& tx) { tx.notify("news", "today"); });
    EXPECT_EQ(heard.get_future().get(), "today");
    // Named statements, and prepared once.
    EXPECT_FALSE(db.run("Look", {}, prepared_names).rows.empty());
}

TEST_F(Pooling, OfStatementsIsRefusedInASentenceThatNamesTheCure) {
    const test::PgBouncer bouncer(test::shared_postgres(), {.mode = test::PoolMode::statement});
    try {
        const Database db(url(bouncer));
        FAIL() << "a proxy without transactions was accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unsupported);
        EXPECT_THAT(error.what(), testing::HasSubstr("pool_mode = transaction"));
    }
}

TEST_F(Pooling, LeavesNothingForSessionSettingsOfTheUrl) {
    // This pgbouncer drops what the URL asks for, in silence.
    const test::PgBouncer bouncer(test::shared_postgres(),
                                  {.settings = "ignore_startup_parameters = options"});
    try {
        const Database db(url(bouncer, "&options=-csearch_path%3Delsewhere"));
        FAIL() << "the search path of the URL was lost in silence";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unsupported);
        EXPECT_THAT(error.what(), testing::HasSubstr("ALTER ROLE"));
    }
    // Without that line pgbouncer refuses them itself.
    const test::PgBouncer strict(test::shared_postgres());
    try {
        const Database db(url(strict, "&options=-csearch_path%3Delsewhere"));
        FAIL() << "the options were accepted";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("startup parameter"));
        EXPECT_THAT(error.what(), testing::HasSubstr("leave"));
    }
}

class Statements : public testing::Test {
protected:
    Statements() {
        outside.execute(
            "CREATE TABLE apples (id bigint PRIMARY KEY);"
            "CREATE FUNCTION take_name(name text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
            "EXECUTE format('PREPARE %I (bigint) AS SELECT $1', name); RETURN 1; END $$");
    }

    // What the only connection of `of` has prepared.
    [[nodiscard]] static std::vector<std::string> names(Database& of) {
        std::vector<std::string> found;
        for (const Row row : of.run("Look", {}, prepared_names).rows) {
            found.push_back(row.get<std::string>(0));
        }
        return found;
    }

    test::Database outside{test::Backend::postgres};
    Database db{outside.url() + "&pool=1"};
};

// A proxy that passes the backend's own process id, and DISCARD ALL in a user's function.
TEST_F(Statements, ThatTheBackendHasForgottenAreRunAgainOnce) {
    db.run("Add", {}, add_apple, 1);
    db.run("Forget", {}, forget);
    db.run("Add", {}, add_apple, 2);
    db.run("Forget", {}, forget);
    db.transact("Add", {}, [](Tx& tx) {
        tx.exec(add_apple, 3);
        EXPECT_EQ(tx.query(count_apples, 3)[0].get<std::int64_t>(0), 1);
    });
    EXPECT_EQ(outside.number("SELECT count(*) FROM apples"), 3);
}

TEST_F(Statements, HaveTheSameNameInEveryClientAndNoOtherStatementHasIt) {
    db.run("Add", {}, add_apple, 1);
    const std::vector<std::string> adds = names(db);  // And the look itself.
    ASSERT_EQ(adds.size(), 2U);
    Database other(outside.url() + "&pool=1");
    (void)other.run("Count", {}, count_apples, 1);
    EXPECT_THAT(names(other), testing::Not(testing::IsSupersetOf(adds)));
    other.run("Add", {}, add_apple, 2);
    EXPECT_THAT(names(other), testing::IsSupersetOf(adds));
}

// Two objects with tables of their own, as two Locks have, may render the same text.
TEST_F(Statements, OfOneTextArePreparedOnce) {
    static constexpr char text[] = "INSERT INTO apples (id) VALUES ($1)";
    constexpr Statement add_too{"apple.add_too", text};
    db.run("Add", {}, add_apple, 1);
    db.run("Add", {}, add_too, 2);
    db.transact("Add", {}, [&](Tx& tx) { tx.exec(add_too, 3); });
    EXPECT_EQ(names(db).size(), 2U) << "it, and the look";
    EXPECT_EQ(outside.number("SELECT count(*) FROM apples"), 3);
}

TEST_F(Statements, WhoseNameTheBackendHasAlreadyAreRunWithoutIt) {
    db.run("Add", {}, add_apple, 1);
    const std::vector<std::string> taken = names(db);
    ASSERT_EQ(taken.size(), 2U);  // Of the statement, and of the look itself.
    for (const bool alone : {true, false}) {
        Database other(outside.url() + "&pool=1");
        for (const std::string& name : taken) {
            (void)other.run("Take", {}, take_name, name);
        }
        if (alone) {
            other.run("Add", {}, add_apple, 2);
        }
        other.transact("Add", {}, [&](Tx& tx) { tx.exec(add_apple, alone ? 3 : 4); });
    }
    EXPECT_EQ(outside.number("SELECT count(*) FROM apples"), 4);
}

}  // namespace
}  // namespace holdfast::sql

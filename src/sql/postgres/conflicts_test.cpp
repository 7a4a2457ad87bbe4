// Conflicts that PostgreSQL really reports, at a statement and at COMMIT.
#include <string>

#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::sql {

namespace {

constexpr Statement add_effect{"effect.add", "INSERT INTO effects (id) VALUES ($1)"};
constexpr Statement meet{"conflict.meet", "SELECT conflict($1)"};
constexpr Statement add_deferred{"deferred.add", "INSERT INTO deferred (times) VALUES ($1)"};

// `conflict(k)` fails with 40001 the first k times it is called, and so does the COMMIT of a row in
// `deferred`. The sequence that counts is not rolled back with the rest.
class Conflicts : public testing::Test {
protected:
    Conflicts() {
        db.execute(
            "CREATE TABLE effects (id bigint NOT NULL);"
            "CREATE TABLE deferred (times bigint NOT NULL);"
            "CREATE SEQUENCE calls;"
            "CREATE FUNCTION conflict(times bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN"
            "  IF nextval('calls') <= times THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF;"
            "  RETURN 0; END $$;"
            "CREATE FUNCTION conflict_later() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            "  PERFORM conflict(NEW.times); RETURN NULL; END $$;"
            "CREATE CONSTRAINT TRIGGER later AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED"
            "  FOR EACH ROW EXECUTE FUNCTION conflict_later()");
    }

    std::int64_t rows(const std::string& table) const {
        return db.number("SELECT count(*) FROM " + table);
    }

    test::Database db{test::Backend::postgres};
};

TEST_F(Conflicts, AConflictAtAStatementRunsTheBodyAgain) {
    int runs = 0;
    db->transact("Meet", {}, [&](Tx& tx) {
        ++runs;
        tx.exec(add_effect, 1);
        tx.exec(meet, 3);
    });
    EXPECT_EQ(runs, 4);
    EXPECT_EQ(rows("effects"), 1);
}

TEST_F(Conflicts, AConflictAtCommitRunsTheBodyAgain) {
    int runs = 0;
    db->transact("Meet", {}, [&](Tx& tx) {
        ++runs;
        tx.exec(add_effect, 1);
        tx.exec(add_deferred, 3);
    });
    EXPECT_EQ(runs, 4);
    EXPECT_EQ(rows("effects"), 1);
    EXPECT_EQ(rows("deferred"), 1);
}

// Its statement has been answered when the commit behind it fails.
TEST_F(Conflicts, AConflictAtTheCommitOfASingleStatementRepeatsIt) {
    EXPECT_EQ(db->run("Meet", {}, add_deferred, 3).changed, 1);
    EXPECT_EQ(rows("deferred"), 1);
    EXPECT_EQ(db.number("SELECT last_value FROM calls"), 4);
}

TEST_F(Conflicts, ConflictsWithoutEndExhaustTheTriesAndNothingIsApplied) {
    int runs = 0;
    try {
        db->transact("Meet", {}, [&](Tx& tx) {
            ++runs;
            tx.exec(add_effect, 1);
            tx.exec(meet, 1000);
        });
        FAIL() << "it was applied";
    } catch (const Exhausted& exhausted) {
        EXPECT_EQ(exhausted.attempts(), 6);
        EXPECT_EQ(exhausted.outcome(), Outcome::not_applied);
        EXPECT_NE(describe(exhausted.cause()).find("40001"), std::string::npos);
    }
    EXPECT_EQ(runs, 6);
    EXPECT_EQ(rows("effects"), 0);
}

// What fails at COMMIT for another reason is that reason, not a lost connection.
TEST_F(Conflicts, AConstraintThatFailsAtCommitIsThatError) {
    db.execute(
        "CREATE TABLE parents (id bigint PRIMARY KEY);"
        "CREATE TABLE children (parent bigint REFERENCES parents DEFERRABLE INITIALLY DEFERRED)");
    constexpr Statement orphan{"child.add", "INSERT INTO children VALUES ($1)"};
    const auto expect_refused = [&](auto work) {
        try {
            work();
            ADD_FAILURE() << "an orphan was accepted";
        } catch (const DatabaseError& error) {
            EXPECT_EQ(error.state(), SqlState{"23503"}) << error.what();
            EXPECT_EQ(error.outcome(), Outcome::not_applied);
        }
    };
    expect_refused([&] { db->transact("Add", {}, [&](Tx& tx) { tx.exec(orphan, 1); }); });
    expect_refused([&] { db->run("Add", {}, orphan, 1); });
    EXPECT_EQ(rows("children"), 0);
    db->run("Add", {}, add_effect, 1);
    EXPECT_EQ(db->pool_stats().opened, 1) << "the connection was not to blame";
}

}  // namespace

}  // namespace holdfast::sql

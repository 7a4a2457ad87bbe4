// A write under a guard happens while the guard holds, and never after, on every database.
#include <functional>

#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql {

namespace {

constexpr std::string_view what_is_there = "SELECT range_id FROM shards WHERE shard_id = $1";
constexpr FencedStatement save{"shard.save",
                               "UPDATE shards SET data = $3 WHERE shard_id = $1 AND range_id = $2",
                               what_is_there};
constexpr FencedStatement remove_shard{
    "shard.remove", "DELETE FROM shards WHERE shard_id = $1 AND range_id = $2", what_is_there};
constexpr Statement lock_shard{"shard.lock",
                               "SELECT range_id FROM shards WHERE shard_id = $1 {for_update}"};
// Its predicate matches no row, whatever the guard.
constexpr FencedStatement save_nowhere{
    "shard.save_nowhere",
    "UPDATE shards SET data = $3 WHERE shard_id = $1 AND range_id = $2 AND shard_id < 0",
    what_is_there};
constexpr Statement lock_whole_shard{
    "shard.lock_whole", "SELECT range_id, data FROM shards WHERE shard_id = $1 {for_update}"};
constexpr Statement add_task{"task.add", "INSERT INTO tasks (id) VALUES ($1)"};
constexpr Statement count_tasks{"task.count", "SELECT count(*) FROM tasks"};

// Ann owns shard 7 by the range id 5. The row may say otherwise by now.
class Fences : public testing::TestWithParam<test::Backend> {
protected:
    Fences() {
        db.execute(
            "CREATE TABLE shards (shard_id {bigint} NOT NULL, range_id {bigint} NOT NULL,"
            "                     data TEXT NOT NULL, PRIMARY KEY (shard_id)) {strict};"
            "CREATE TABLE tasks (id {bigint} NOT NULL, PRIMARY KEY (id)) {strict};"
            "INSERT INTO shards VALUES (7, 5, 'fresh'), (8, 5, 'fresh')");
    }

    void rival_takes_the_shard() const {
        db.execute("UPDATE shards SET range_id = 6 WHERE shard_id = 7");
    }
    [[nodiscard]] std::string data() const {
        return db.look("SELECT data FROM shards WHERE shard_id = 7").at(0).at(0).value();
    }
    [[nodiscard]] std::int64_t tasks() const { return db.number("SELECT count(*) FROM tasks"); }

    template <class Body>
    void expect_lost(Body body, const std::string& found = "6") {
        try {
            body();
            ADD_FAILURE() << "the write was accepted";
        } catch (const ConditionFailed& lost) {
            EXPECT_EQ(lost.code(), Code::condition_failed);
            EXPECT_EQ(lost.outcome(), Outcome::not_applied);
            EXPECT_EQ(lost.subject(), "shard 7");
            EXPECT_EQ(lost.expected(), "5");
            EXPECT_EQ(lost.found(), found);
        }
    }

    test::Database db{GetParam()};
    Guard guard{.what = "shard 7", .key = {std::int64_t{7}}, .tokens = {std::int64_t{5}}};
};

TEST_P(Fences, AWriteUnderAGuardThatHoldsIsApplied) {
    db->transact("Save", {}, [&](Tx& tx) { tx.fenced(guard, save, "alone"); });
    EXPECT_EQ(data(), "alone");
    db->transact("Save", {}, [&](Tx& tx) {
        tx.exec(add_task, 1);
        tx.fenced(guard, save, "with a task");
    });
    EXPECT_EQ(data(), "with a task");
    EXPECT_EQ(tasks(), 1);
    EXPECT_EQ(db->run("Save", {}, guard, save, "by run").changed, 1);
    EXPECT_EQ(data(), "by run");
}

// A fence that finds no row is not an SQL error: a commit in the same flight would apply the rest.
TEST_P(Fences, ALostGuardTakesTheThreeInsertsAroundItBack) {
    rival_takes_the_shard();
    expect_lost([&] {
        db->transact("Save", {}, [&](Tx& tx) {
            tx.fenced(guard, save, "by ann");
            tx.exec(add_task, 1);
            tx.exec(add_task, 2);
            tx.exec(add_task, 3);
        });
    });
    expect_lost([&] {
        db->transact("Save", {}, [&](Tx& tx) {
            tx.exec(add_task, 1);
            tx.exec(add_task, 2);
            tx.exec(add_task, 3);
            tx.fenced(guard, save, "by ann");
        });
    });
    EXPECT_EQ(tasks(), 0);
    EXPECT_EQ(data(), "fresh");
}

TEST_P(Fences, ALostGuardIsNotTriedAgain) {
    rival_takes_the_shard();
    int runs = 0;
    expect_lost([&] {
        db->transact("Save", {}, [&](Tx& tx) {
            ++runs;
            tx.fenced(guard, save, "by ann");
            tx.exec(add_task, 1);
        });
    });
    EXPECT_EQ(runs, 1);
}

TEST_P(Fences, ASoleWriteUnderALostGuardChangesNothing) {
    rival_takes_the_shard();
    expect_lost(
        [&] { db->transact("Save", {}, [&](Tx& tx) { tx.fenced(guard, save, "by ann"); }); });
    expect_lost([&] {
        db->transact("Save", {}, [&](Tx& tx) {
            (void)tx.query(count_tasks);
            tx.fenced(guard, save, "by ann");
        });
    });
    expect_lost([&] { db->run("Save", {}, guard, save, "by ann"); });
    EXPECT_EQ(data(), "fresh");
}

TEST_P(Fences, ARowThatIsGoneIsSaidToBeGone) {
    db.execute("DELETE FROM shards WHERE shard_id = 7");
    expect_lost([&] { db->run("Save", {}, guard, save, "by ann"); }, "no row");
    expect_lost(
        [&] { db->transact("Save", {}, [&](Tx& tx) { tx.fenced(guard, save, "by ann"); }); },
        "no row");
    expect_lost(
        [&] {
            db->transact("Save", {}, [&](Tx& tx) {
                tx.exec(add_task, 1);
                tx.fenced(guard, remove_shard);
            });
        },
        "no row");
    EXPECT_EQ(tasks(), 0);
}

// Two guards in one transaction: the one that holds must not carry the other.
TEST_P(Fences, OneLostGuardOfTwoTakesBothWritesBack) {
    const Guard other{.what = "shard 8", .key = {std::int64_t{8}}, .tokens = {std::int64_t{5}}};
    rival_takes_the_shard();
    expect_lost([&] {
        db->transact("Save", {}, [&](Tx& tx) {
            tx.fenced(other, save, "by ann");
            tx.fenced(guard, save, "by ann");
        });
    });
    EXPECT_EQ(db.number("SELECT count(*) FROM shards WHERE data = 'fresh'"), 2);
}

TEST_P(Fences, TryFencedAnswersAndTheTransactionGoesOn) {
    rival_takes_the_shard();
    const bool saved = db->transact("Save", {}, [&](Tx& tx) {
        const bool applied = tx.try_fenced(guard, save, "by ann");
        tx.exec(add_task, applied ? 1 : 2);
        return applied;
    });
    EXPECT_FALSE(saved);
    EXPECT_EQ(db.number("SELECT id FROM tasks"), 2);
    const Guard right{.what = "shard 7", .key = {std::int64_t{7}}, .tokens = {std::int64_t{6}}};
    EXPECT_TRUE(db->transact(
        "Save", {}, [&](Tx& tx) { return tx.try_fenced(right, save, "by the rival"); }));
    EXPECT_EQ(data(), "by the rival");
}

TEST_P(Fences, AGuardThatWasVerifiedCarriesAllWritesBehindIt) {
    db->transact("Save", {}, [&](Tx& tx) {
        tx.verify(guard, lock_shard);
        tx.fenced(guard, save, "once");
        tx.exec(add_task, 1);
        tx.fenced(guard, save, "twice");
        tx.exec(add_task, 2);
    });
    EXPECT_EQ(data(), "twice");
    EXPECT_EQ(tasks(), 2);
}

TEST_P(Fences, VerifyNoticesALostGuardBeforeAnythingIsWritten) {
    rival_takes_the_shard();
    const auto attempt = [&] {
        db->transact("Save", {}, [&](Tx& tx) {
            tx.exec(add_task, 1);
            tx.verify(guard, lock_shard);
            ADD_FAILURE() << "went on without the shard";
        });
    };
    expect_lost(attempt);
    db.execute("DELETE FROM shards WHERE shard_id = 7");
    expect_lost(attempt, "no row");
    EXPECT_EQ(tasks(), 0);
}

// The body sees two rows after one round trip, decides, and writes under what it has seen.
TEST_P(Fences, LockedRowsCarryTheWritesBehindThemInTwoRoundTrips) {
    const std::int64_t before = db->driver_stats().round_trips;
    db->transact("Save", {}, [&](Tx& tx) {
        LockedRow seventh = tx.ask_locked("shard 7", {std::int64_t{7}}, lock_whole_shard);
        LockedRow eighth = tx.ask_locked("shard 8", {std::int64_t{8}}, lock_whole_shard);
        LockedRow none = tx.ask_locked("shard 9", {std::int64_t{9}}, lock_whole_shard);
        EXPECT_EQ(seventh.rows()[0].get<std::string>(1), "fresh");
        EXPECT_EQ(seventh.rows()[0].get<std::int64_t>(0), 5) << "asked twice, sent once";
        EXPECT_TRUE(none.rows().empty());
        EXPECT_EQ(seventh.verify({std::int64_t{5}}), guard);
        tx.fenced(guard, save, "by ann");
        tx.fenced(eighth.verify({std::int64_t{5}}), remove_shard);
        tx.exec(add_task, 1);
    });
    const std::int64_t trips = db->driver_stats().round_trips - before;
    EXPECT_EQ(trips, db.backend() == test::Backend::sqlite ? 0 : 2);
    EXPECT_EQ(data(), "by ann");
    EXPECT_EQ(db.number("SELECT count(*) FROM shards"), 1);
    EXPECT_EQ(tasks(), 1);
}

TEST_P(Fences, ALockedRowWithOtherTokensForbidsTheCommit) {
    rival_takes_the_shard();
    const auto attempt = [&] {
        db->transact("Save", {}, [&](Tx& tx) {
            LockedRow locked = tx.ask_locked("shard 7", {std::int64_t{7}}, lock_whole_shard);
            tx.exec(add_task, 1);
            (void)test::code_of([&] { (void)locked.verify({std::int64_t{5}}); });
        });
    };
    expect_lost(attempt, "6, fresh");
    db.execute("DELETE FROM shards WHERE shard_id = 7");
    expect_lost(attempt, "no row");
    EXPECT_EQ(tasks(), 0);
}

// The row is locked and holds the tokens, so no rival is to blame: the statement is wrong. Its
// neighbours must not be committed as if all were well.
TEST_P(Fences, AWriteThatMissesAVerifiedRowStopsTheProcess) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    constexpr auto message = "'shard.save_nowhere' changes the row of shard 7, which is locked";
    const auto write = [&](const std::function<void(Tx&)>& body) {
        db->transact("Save", {}, [&](Tx& tx) {
            tx.verify(guard, lock_shard);
            body(tx);
            tx.exec(add_task, 1);
        });
    };
    EXPECT_DEATH(write([&](Tx& tx) { tx.fenced(guard, save_nowhere, "x"); }), message);
    EXPECT_DEATH(write([&](Tx& tx) { (void)tx.try_fenced(guard, save_nowhere, "x"); }), message);
    EXPECT_DEATH(write([&](Tx& tx) { (void)tx.ask_fenced(guard, save_nowhere, "x").held(); }),
                 message);
    EXPECT_DEATH(write([&](Tx& tx) { (void)tx.ask_fenced(guard, save_nowhere, "x"); }), message);
}

TEST_P(Fences, TryRunAnswersWhetherTheGuardHeld) {
    EXPECT_TRUE(db->try_run("Save", {}, guard, save, "by ann"));
    EXPECT_EQ(data(), "by ann");
    rival_takes_the_shard();
    EXPECT_FALSE(db->try_run("Save", {}, guard, save, "too late"));
    EXPECT_EQ(data(), "by ann");
}

// A body may catch what it likes; it cannot talk a lost guard into a commit.
TEST_P(Fences, ALostGuardThatTheBodySwallowsStillForbidsTheCommit) {
    rival_takes_the_shard();
    const auto code = test::code_of([&] {
        db->transact("Save", {}, [&](Tx& tx) {
            tx.exec(add_task, 1);
            (void)test::code_of([&] { tx.fenced(guard, save, "by ann"); });
        });
    });
    EXPECT_EQ(code, Code::condition_failed);
    EXPECT_EQ(tasks(), 0);
}

TEST_P(Fences, AVerificationThatTheBodySwallowsStillForbidsTheCommit) {
    rival_takes_the_shard();
    const auto code = test::code_of([&] {
        db->transact("Save", {}, [&](Tx& tx) {
            tx.exec(add_task, 1);
            (void)test::code_of([&] { tx.verify(guard, lock_shard); });
        });
    });
    EXPECT_EQ(code, Code::condition_failed);
    EXPECT_EQ(tasks(), 0);
}

TEST_P(Fences, AQueuedFenceAnswersAndTheTransactionGoesOn) {
    const Guard other{.what = "shard 8", .key = {std::int64_t{8}}, .tokens = {std::int64_t{5}}};
    rival_takes_the_shard();
    db->transact("Save", {}, [&](Tx& tx) {
        FenceAnswer lost = tx.ask_fenced(guard, save, "by ann");
        FenceAnswer kept = tx.ask_fenced(other, save, "by ann");
        EXPECT_FALSE(lost.held());
        EXPECT_TRUE(kept.held());
        tx.exec(add_task, 1);
    });
    EXPECT_EQ(data(), "fresh");
    EXPECT_EQ(db.number("SELECT count(*) FROM shards WHERE data = 'by ann'"), 1);
    EXPECT_EQ(tasks(), 1);
}

// A body that forgets to ask must not commit under a guard that is lost.
TEST_P(Fences, AQueuedFenceThatNobodyAsksAboutForbidsTheCommitWhenItIsLost) {
    rival_takes_the_shard();
    expect_lost([&] {
        db->transact("Save", {}, [&](Tx& tx) {
            (void)tx.ask_fenced(guard, save, "by ann");
            tx.exec(add_task, 1);
        });
    });
    expect_lost(
        [&] { db->transact("Save", {}, [&](Tx& tx) { (void)tx.ask_fenced(guard, save, "x"); }); });
    EXPECT_EQ(tasks(), 0);
}

// The fences travel with BEGIN; what follows their answers travels with COMMIT.
TEST_P(Fences, QueuedFencesAndTheWritesBehindThemCostTwoRoundTrips) {
    const auto work = [&](Tx& tx) {
        FenceAnswer held = tx.ask_fenced(guard, save, "by ann");
        EXPECT_TRUE(held.held());
        tx.exec(add_task, 1);
    };
    const std::int64_t before = db->driver_stats().round_trips;
    db->transact("Save", {}, work);
    const std::int64_t trips = db->driver_stats().round_trips - before;
    EXPECT_EQ(trips, db.backend() == test::Backend::sqlite ? 0 : 2);
    EXPECT_EQ(data(), "by ann");
    EXPECT_EQ(tasks(), 1);
}

INSTANTIATE_TEST_SUITE_P(Every, Fences, test::every_backend(), test::backend_name);

}  // namespace

}  // namespace holdfast::sql

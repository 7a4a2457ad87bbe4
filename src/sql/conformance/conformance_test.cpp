// What a transaction promises, on every database.
#include <array>
#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql {

namespace {

using namespace std::chrono_literals;

constexpr Statement add_note{"note.add", "INSERT INTO notes (id, body) VALUES ($1, $2)"};
constexpr Statement read_notes{"note.read", "SELECT id, body FROM notes ORDER BY id"};
constexpr Statement count_notes{"note.count", "SELECT count(*) FROM notes"};
constexpr Statement read_note{"note.find", "SELECT body FROM notes WHERE id = $1"};
constexpr Statement change_note{"note.change", "UPDATE notes SET body = $2 WHERE id = $1"};
constexpr Statement read_all{"note.all", "SELECT * FROM notes WHERE id = $1"};
constexpr Statement clock_now{"clock.now", "SELECT {now_us}"};
constexpr Statement clock_twice{"clock.twice", "SELECT {now_us} - $1, {now_us}, $2"};
// Takes over what has run out, and nothing else.
constexpr Statement take_lease{
    "lease.take",
    "INSERT INTO leases (name, owner, until) VALUES ($1, $2, $3) "
    "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until "
    "WHERE leases.until <= $4 RETURNING owner"};

class Transactions : public testing::TestWithParam<test::Backend> {
protected:
    Transactions() {
        db.execute(
            "CREATE TABLE notes (id {bigint} NOT NULL, body TEXT NOT NULL, PRIMARY KEY (id)) "
            "{strict};"
            "CREATE TABLE leases (name TEXT NOT NULL, owner TEXT NOT NULL, until {bigint} NOT NULL,"
            "                     PRIMARY KEY (name)) {strict}");
    }

    [[nodiscard]] std::int64_t notes() const { return db.number("SELECT count(*) FROM notes"); }

    test::Database db{GetParam()};
};

TEST_P(Transactions, ReturnsWhatTheBodyReturnsAndAppliesWhatItDid) {
    const auto count = db->transact("Write", {}, [](Tx& tx) {
        tx.exec(add_note, 1, "one");
        EXPECT_EQ(tx.count(add_note, 2, "two"), 1);
        EXPECT_EQ(tx.count(change_note, 3, "three"), 0);
        return tx.query(count_notes)[0].get<std::int64_t>(0);
    });
    EXPECT_EQ(count, 2);
    EXPECT_EQ(notes(), 2);
}

TEST_P(Transactions, AnEmptyBodyIsAnEmptyTransaction) {
    db->transact("Nothing", {}, [](Tx&) {});
    EXPECT_EQ(db->transact("Nothing", {}, [](Tx&) { return 7; }), 7);
}

TEST_P(Transactions, AnUpsertWithAConditionChangesOnlyWhatItMay) {
    const auto take = [&](const char* owner, std::int64_t until, std::int64_t now) {
        return db->run("Take", {}, take_lease, "lease", owner, until, now);
    };
    EXPECT_EQ(take("ann", 100, 50).rows[0].get<std::string>(0), "ann");
    const Result refused = take("bob", 200, 99);
    EXPECT_TRUE(refused.rows.empty());
    EXPECT_EQ(refused.changed, 0);
    const Result taken = take("bob", 200, 100);
    EXPECT_EQ(taken.rows[0].get<std::string>(0), "bob");
    EXPECT_EQ(taken.changed, 1);
}

TEST_P(Transactions, RunSaysHowManyRowsWereChanged) {
    EXPECT_EQ(db->run("Write", {}, add_note, 1, "one").changed, 1);
    EXPECT_EQ(db->run("Write", {}, change_note, 1, "uno").changed, 1);
    EXPECT_EQ(db->run("Write", {}, change_note, 2, "due").changed, 0);
    const Result read = db->run("Read", {}, read_notes);
    EXPECT_EQ(read.changed, 0);
    EXPECT_EQ((read.rows[0].as<int, std::string>()), std::make_tuple(1, std::string("uno")));
}

TEST_P(Transactions, SeveralQuestionsAreAnsweredInAnyOrder) {
    db.execute("INSERT INTO notes VALUES (1, 'one'), (2, 'two'), (3, 'three')");
    const auto bodies = db->transact("Read", {}, [](Tx& tx) {
        Answer one = tx.ask(read_note, 1);
        Answer two = tx.ask(read_note, 2);
        Answer three = tx.ask(read_note, 3);
        const auto text = [](Answer& answer) { return answer.rows()[0].get<std::string>(0); };
        return std::vector<std::string>{text(three), text(one), text(two)};
    });
    EXPECT_EQ(bodies, (std::vector<std::string>{"three", "one", "two"}));
}

TEST_P(Transactions, TheWrongNumberOfArgumentsIsRefusedAndNothingIsApplied) {
    EXPECT_EQ(test::code_of([&] { db->run("Write", {}, add_note, 1); }), Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] {
                  db->transact("Write", {}, [](Tx& tx) {
                      tx.exec(add_note, 1, "one");
                      tx.exec(add_note, 2, "two", "and more");
                  });
              }),
              Code::invalid_argument);
    EXPECT_EQ(notes(), 0);
}

struct Strange {
    int value;
};

// Shapes without end, so nothing of them may be kept: the second text lies where the first one did.
TEST_P(Transactions, AQueryThatWasBuiltIsReadAnewEachTime) {
    (void)db->run("Write", {}, add_note, 1, "one");
    (void)db->run("Write", {}, add_note, 2, "it's $1");
    BuiltQuery query{
        .name = "note.built", .text = "SELECT body FROM notes WHERE id = $1", .args = {1}};
    EXPECT_EQ(db->run("Read", {}, query).rows[0].get<std::string>(0), "one");
    query.text = "SELECT id FROM notes WHERE body = $1";
    query.args = {"it's $1"};
    EXPECT_EQ(db->run("Read", {.read_only = true}, query).rows[0].get<std::int64_t>(0), 2);

    query.args = {};
    EXPECT_EQ(test::code_of([&] { (void)db->run("Read", {}, query); }), Code::invalid_argument);
    query.text = "DELETE FROM notes";
    EXPECT_EQ(test::code_of([&] { (void)db->run("Read", {}, query); }), Code::invalid_argument);
    query.text = "SELECT nothing FROM notes";
    EXPECT_NE(test::code_of([&] { (void)db->run("Read", {}, query); }), std::nullopt);
    EXPECT_EQ(notes(), 2) << "and the connection is as good as before";
    query.text = "SELECT count(*) FROM notes";
    EXPECT_EQ(db->run("Read", {}, query).rows[0].get<std::int64_t>(0), 2);
}

TEST_P(Transactions, AnExceptionOfTheBodyRollsBackAndComesOutUnchanged) {
    const auto failing = [&](auto thrown) {
        db->transact("Write", {}, [&](Tx& tx) {
            tx.exec(add_note, 1, "one");
            (void)tx.query(count_notes);
            tx.exec(add_note, 2, "two");
            throw thrown;
        });
    };
    EXPECT_THROW(failing(std::out_of_range("mine")), std::out_of_range);
    try {
        failing(Strange{7});
        FAIL() << "nothing was thrown";
    } catch (const Strange& strange) {
        EXPECT_EQ(strange.value, 7);
    }
    EXPECT_EQ(notes(), 0);
    db->run("Write", {}, add_note, 1, "one");  // The connection is as good as before.
    EXPECT_EQ(notes(), 1);
}

TEST_P(Transactions, ADuplicateSaysSoAndTakesEverythingBack) {
    db.execute("INSERT INTO notes VALUES (1, 'one')");
    try {
        db->transact("Write", {}, [](Tx& tx) {
            tx.exec(add_note, 2, "two");
            tx.exec(add_note, 1, "again");
            tx.exec(add_note, 3, "three");
        });
        FAIL() << "it was applied";
    } catch (const DatabaseError& error) {
        EXPECT_EQ(error.state(), SqlState{"23505"});
        EXPECT_EQ(error.error_class(), ErrorClass::duplicate);
        EXPECT_EQ(error.code(), Code::already_exists);
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
        EXPECT_NE(std::string(error.what()).find("note.add"), std::string::npos) << error.what();
    }
    EXPECT_EQ(notes(), 1);
}

TEST_P(Transactions, ADuplicateRunsTheBodyAgainWhereTheOperationSaysSo) {
    int runs = 0;
    TxOptions options;
    options.on_duplicate = OnDuplicate::retry;
    db->transact("Write", options, [&](Tx& tx) {
        // The first time another writer is faster, between our read and our write.
        const auto next = tx.query(count_notes)[0].get<std::int64_t>(0);
        if (++runs == 1) {
            throw DatabaseError(SqlState{"23505"}, Outcome::not_applied, "taken");
        }
        tx.exec(add_note, next, "mine");
    });
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(notes(), 1);
}

// A failed statement ends the transaction, also for a body that pretends nothing has happened.
TEST_P(Transactions, AnErrorThatTheBodySwallowsStillForbidsTheCommit) {
    db.execute("INSERT INTO notes VALUES (1, 'one')");
    const auto code = test::code_of([&] {
        db->transact("Write", {}, [](Tx& tx) {
            tx.exec(add_note, 2, "two");
            EXPECT_TRUE(test::code_of([&] { (void)tx.count(add_note, 1, "again"); }));
        });
    });
    EXPECT_TRUE(code) << "half a transaction was committed";
    EXPECT_EQ(notes(), 1);
}

TEST_P(Transactions, AReadOnlyTransactionRefusesToWrite) {
    TxOptions options;
    options.read_only = true;
    EXPECT_EQ(test::code_of([&] {
                  db->transact("Look", options, [](Tx& tx) { tx.exec(add_note, 1, "one"); });
              }),
              Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { db->run("Look", options, add_note, 1, "one"); }),
              Code::invalid_argument);
    EXPECT_EQ(notes(), 0);
}

TEST_P(Transactions, AReadOnlyTransactionSeesOneMomentInTime) {
    db.execute("INSERT INTO notes VALUES (1, 'one')");
    TxOptions options;
    options.read_only = true;
    db->transact("Look", options, [&](Tx& tx) {
        EXPECT_EQ(tx.query(count_notes)[0].get<int>(0), 1);
        db.execute("INSERT INTO notes VALUES (2, 'two')");
        EXPECT_EQ(tx.query(count_notes)[0].get<int>(0), 1);
    });
    EXPECT_EQ(db->run("Look", options, count_notes).rows[0].get<int>(0), 2);
}

// --- time --------------------------------------------------------------------------------------

TEST_P(Transactions, TheClockHoleTellsTheDatabasesTimeAndFollowsTheHand) {
    const auto now = [&] { return db->run("Look", {}, clock_now).rows[0].get<Timestamp>(0); };
    const Timestamp machine = system_clock().wall_now();
    const Timestamp before = now();
    EXPECT_LT(std::chrono::abs(before - machine), 60s);
    db.advance_clock(1h);
    EXPECT_GE(now(), before + 1h);
    EXPECT_LT(now(), before + 2h);
    const Timestamp inside = db->transact("Look", {}, [](Tx& tx) { return tx.now(); });
    EXPECT_GE(inside, before + 1h);
    EXPECT_LT(inside, before + 2h);
}

// Two statements that judge the same lease must judge it alike, even if the hand moves in between.
TEST_P(Transactions, ATransactionHasOneTimeUnlessTheDatabasesClockMovesInIt) {
    db->transact("Look", {}, [&](Tx& tx) {
        const Timestamp first = tx.now();
        db.advance_clock(1h);
        const Timestamp second = tx.now();
        if (tx.dialect().clock_moves) {
            EXPECT_GE(second, first + 1h);
        } else {
            EXPECT_EQ(second, first);
        }
        db.advance_clock(-1h);
    });
    db.advance_clock(1h);
    const Timestamp machine = system_clock().wall_now();
    EXPECT_GE(db->transact("Look", {}, [](Tx& tx) { return tx.now(); }), machine + 59min)
        << "the next one sees it";
}

TEST_P(Transactions, TheClockMixesWithOrdinaryArguments) {
    db.advance_clock(10s);
    const Rows rows = db->run("Look", {}, clock_twice, std::int64_t{0}, "x").rows;
    const auto [first, second, text] = rows[0].as<std::int64_t, std::int64_t, std::string>();
    EXPECT_GE(second, first);
    EXPECT_LT(second - first, 1'000'000);
    EXPECT_EQ(text, "x");
}

// --- the schema moves ---------------------------------------------------------------------------

// Statements are prepared once and kept; a migration by another process makes them stale.
TEST_P(Transactions, AStatementSurvivesAChangeOfItsTable) {
    db.execute("INSERT INTO notes VALUES (1, 'one')");
    const auto columns = [&] { return db->run("Read", {}, read_all, 1).rows[0].columns(); };
    const auto columns_inside = [&] {
        return db->transact("Read", {}, [](Tx& tx) {
            tx.exec(change_note, 1, "uno");
            return tx.query(read_all, 1)[0].columns();
        });
    };
    EXPECT_EQ(columns(), 2U);
    db.execute("ALTER TABLE notes ADD COLUMN more TEXT");
    EXPECT_EQ(columns(), 3U);
    EXPECT_EQ(columns_inside(), 3U);
    db.execute("ALTER TABLE notes ADD COLUMN still_more TEXT");
    EXPECT_EQ(columns_inside(), 4U);
}

TEST_P(Transactions, AMissingTableIsAnErrorThatNamesTheStatement) {
    db.execute("DROP TABLE notes");
    try {
        db->run("Read", {}, read_notes);
        FAIL() << "there is no such table";
    } catch (const DatabaseError& error) {
        EXPECT_EQ(error.state().category(), "42");
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
        EXPECT_NE(std::string(error.what()).find("note.read"), std::string::npos) << error.what();
    }
}

// --- the caller gives up ------------------------------------------------------------------------

TEST_P(Transactions, NothingBeginsForACallerWhoHasGivenUp) {
    int runs = 0;
    const std::stop_source source;
    source.request_stop();
    TxOptions stopped;
    stopped.stop = source.get_token();
    TxOptions late;
    late.deadline = Deadline::after(0s);
    const auto body = [&](Tx& tx) {
        ++runs;
        tx.exec(add_note, 1, "one");
    };
    EXPECT_EQ(test::code_of([&] { db->transact("Write", stopped, body); }), Code::cancelled);
    EXPECT_EQ(test::code_of([&] { db->transact("Write", late, body); }), Code::deadline);
    EXPECT_EQ(test::code_of([&] { db->run("Write", stopped, add_note, 1, "one"); }),
              Code::cancelled);
    EXPECT_EQ(test::code_of([&] { db->run("Write", late, add_note, 1, "one"); }), Code::deadline);
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(notes(), 0);
}

TEST_P(Transactions, ACallerWhoGivesUpBetweenTwoStatementsGetsNothing) {
    std::stop_source source;
    TxOptions options;
    options.stop = source.get_token();
    try {
        db->transact("Write", options, [&](Tx& tx) {
            EXPECT_EQ(tx.count(add_note, 1, "one"), 1);
            source.request_stop();
            (void)tx.query(count_notes);
            tx.exec(add_note, 2, "two");
            (void)tx.query(count_notes);
        });
        FAIL() << "it was applied";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::cancelled) << error.what();
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
    }
    EXPECT_EQ(notes(), 0);
    db->run("Write", {}, add_note, 1, "one");
}

TEST_P(Transactions, ABodyThatOutlivesItsDeadlineIsNotApplied) {
    const TxOptions options{.deadline = Deadline::after(20ms)};
    try {
        db->transact("Write", options, [&](Tx& tx) {
            tx.exec(add_note, 1, "one");
            while (!options.deadline.passed()) {
                std::this_thread::yield();
            }
        });
        FAIL() << "it was applied";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::deadline) << error.what();
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
    }
    EXPECT_EQ(notes(), 0);
}

// --- waking others
// --------------------------------------------------------------------------------

TEST_P(Transactions, ACommittedNotificationWakesAndARolledBackOneDoesNot) {
    std::promise<std::string> woken;
    auto subscription =
        db->subscribe("orders", [&woken, done = false](std::string_view payload) mutable {
            if (!std::exchange(done, true)) {
                woken.set_value(std::string(payload));
            }
        });
    if (!subscription) {
        ASSERT_FALSE(db->dialect().notifies);
        return;
    }
    EXPECT_THROW(db->transact("Write",
                              {},
                              [](Tx& tx) {
                                  tx.notify("orders", "rolled back");
                                  throw std::runtime_error("no");
                              }),
                 std::runtime_error);
    db->transact("Write", {}, [](Tx& tx) { tx.notify("elsewhere", "not for us"); });
    db->transact("Write", {}, [](Tx& tx) {
        tx.exec(add_note, 1, "one");
        tx.notify("orders", "order 1's \"payload\"");
    });
    auto future = woken.get_future();
    ASSERT_EQ(future.wait_for(20s), std::future_status::ready);
    EXPECT_EQ(future.get(), "order 1's \"payload\"");
}

TEST_P(Transactions, ASubscriberThatThrowsIsCalledAgain) {
    std::atomic<int> calls = 0;
    std::promise<void> again;
    const auto subscription = db->subscribe("orders", [&](std::string_view) {
        if (++calls == 2) {
            again.set_value();
        }
        throw std::runtime_error("not today");
    });
    if (!subscription) {
        return;
    }
    for (const char* payload : {"one", "two"}) {
        db->transact("Write", {}, [&](Tx& tx) { tx.notify("orders", payload); });
    }
    EXPECT_EQ(again.get_future().wait_for(20s), std::future_status::ready);
}

TEST_P(Transactions, ASubscriptionMayOutliveTheDatabasesEnd) {
    auto subscription = db->subscribe("orders", [](std::string_view) {});
    db->stop(Deadline::after(20s));
    subscription.reset();
}

TEST_P(Transactions, AfterStopNothingBegins) {
    db->stop(Deadline::after(20s));
    db->stop(Deadline::after(20s));
    EXPECT_EQ(test::code_of([&] { db->run("Write", {}, add_note, 1, "one"); }), Code::unavailable);
    EXPECT_EQ(test::code_of(
                  [&] { db->transact("Read", {}, [](Tx& tx) { (void)tx.query(count_notes); }); }),
              Code::unavailable);
    EXPECT_EQ(notes(), 0);
}

// SQLite has one writer: the inner transaction would wait for the batch that its own body is part
// of.
TEST(NestedTransactions, AreRefusedAtOnceWhereTheyCouldOnlyWaitForThemselves) {
    test::Database db{test::Backend::sqlite};
    EXPECT_EQ(test::code_of([&] {
                  db->transact("Outer", {}, [&](Tx&) { db->transact("Inner", {}, [](Tx&) {}); });
              }),
              Code::invalid_argument);
    db->transact("After", {}, [](Tx&) {});  // The writer is none the worse for it.
}

INSTANTIATE_TEST_SUITE_P(Every, Transactions, test::every_backend(), test::backend_name);

}  // namespace

}  // namespace holdfast::sql

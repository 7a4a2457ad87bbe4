// The way to PostgreSQL breaks at the worst moments. What the caller is told must agree with what
// is in the database: "not applied" means that nothing is there.
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>
#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast::sql {

namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::Side;

constexpr Statement add{"effect.add", "INSERT INTO effects (id) VALUES ($1)"};
constexpr Statement add_unique{"unique.add", "INSERT INTO uniques (id) VALUES ($1)"};
constexpr Statement count{"effect.count", "SELECT count(*) FROM effects"};
constexpr Statement sleep_long{"sleep", "SELECT 1 FROM pg_sleep(60)"};

// One connection, by way of the proxy, to a table that would show an effect twice.
class Faults : public testing::Test {
protected:
    Faults() {
        direct.execute(
            "CREATE TABLE effects (id bigint NOT NULL);"
            "CREATE TABLE uniques (id bigint PRIMARY KEY)");
        // Warm: the connection is open, and the statements are prepared.
        db.run("Warm", {}, add, -1);
        db.run("Warm", {}, count);
    }

    // How often `id` has been put there; 0 if it was not.
    [[nodiscard]] std::int64_t effects(std::int64_t id) const {
        return direct.number("SELECT count(*) FROM effects WHERE id = " + std::to_string(id));
    }

    void wait_until_alone() {
        direct.close();
        (void)gone_soon("");
    }
    // Whether the server has no session left for which `condition` holds, far sooner than a sleeper
    // would wake up by itself.
    [[nodiscard]] bool gone_soon(const std::string& condition) const {
        const std::string left =
            "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()" +
            condition;
        const Deadline deadline = Deadline::after(20s);
        while (direct.number(left) > 0) {
            if (deadline.passed()) {
                return false;
            }
        }
        return true;
    }

    void add_five(std::int64_t id) {
        db.transact("Five", {}, [&](Tx& tx) {
            for (int i = 0; i < 5; ++i) {
                tx.exec(add, id);
            }
        });
    }
    // The same with a question in the middle, which costs a trip of its own.
    void add_five_asking(std::int64_t id) {
        db.transact("Five", {}, [&](Tx& tx) {
            for (int i = 0; i < 3; ++i) {
                tx.exec(add, id);
            }
            (void)tx.query(count);
            for (int i = 0; i < 2; ++i) {
                tx.exec(add, id);
            }
        });
    }

    test::Database direct{test::Backend::postgres};
    test::FaultProxy proxy{test::shared_postgres()};
    Database db{proxy.address().url(direct.name()) + "&pool=1", test::quick_options()};
};

// --- around COMMIT ------------------------------------------------------------------------------

TEST_F(Faults, ACutBeforeCommitIsSentIsNotApplied) {
    int runs = 0;
    try {
        db.transact("Cut", {}, [&](Tx& tx) {
            ++runs;
            tx.exec(add, 1);
            (void)tx.query(count);
            proxy.cut_all();
            (void)tx.query(count);
        });
        FAIL() << "it was applied";
    } catch (const ConnectionLost& lost) {
        EXPECT_EQ(lost.outcome(), Outcome::not_applied);
        EXPECT_EQ(lost.code(), Code::unavailable);
    }
    EXPECT_EQ(runs, 1) << "a connection that had answered is not replaced in silence";
    EXPECT_EQ(effects(1), 0);
}

TEST_F(Faults, ACommitThatNeverArrivesIsUnknownAndNotRepeated) {
    int runs = 0;
    proxy.arm({.from = Side::client, .containing = "COMMIT"}, Fault::cut);
    const auto outcome = test::outcome_of([&] {
        db.transact("Cut", {}, [&](Tx& tx) {
            ++runs;
            tx.exec(add, 1);
            (void)tx.query(count);
            tx.exec(add, 1);
        });
    });
    EXPECT_EQ(outcome, Outcome::unknown);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(effects(1), 0);
}

TEST_F(Faults, ACommitWhoseAnswerIsLostIsUnknownAndNotRepeated) {
    for (const Fault fault : {Fault::cut, Fault::lose_answer}) {
        const int id = fault == Fault::cut ? 1 : 2;
        int runs = 0;
        proxy.arm({.from = Side::server, .type = 'C', .containing = "COMMIT"}, fault);
        const auto outcome = test::outcome_of([&] {
            db.transact("Cut", {}, [&](Tx& tx) {
                ++runs;
                tx.exec(add, id);
            });
        });
        EXPECT_EQ(outcome, Outcome::unknown);
        EXPECT_EQ(runs, 1);
        EXPECT_EQ(effects(id), 1);
    }
}

// --- at every message ---------------------------------------------------------------------------

struct Sweep {
    const char* name;
    Side side;
    Fault fault;
    bool asking;
};

class EveryMessage : public Faults, public testing::WithParamInterface<Sweep> {
protected:
    void work(std::int64_t id) { GetParam().asking ? add_five_asking(id) : add_five(id); }
};

TEST_P(EveryMessage, WhatIsReportedAgreesWithTheDatabase) {
    constexpr std::int64_t dry = 0;
    const auto before = proxy.messages(GetParam().side);
    work(dry);
    const auto messages = proxy.messages(GetParam().side) - before;
    ASSERT_GT(messages, 5);

    std::map<std::int64_t, std::optional<Outcome>> reports;  // By the message that was struck.
    for (std::int64_t nth = 1; nth <= messages; ++nth) {
        db.transact("Warm", {}, [](Tx& tx) { (void)tx.query(count); });
        proxy.arm({.from = GetParam().side, .nth = static_cast<int>(nth)}, GetParam().fault);
        reports[nth] = test::outcome_of([&] { work(nth); });
        proxy.disarm();
    }
    db.stop(Deadline::after(20s));
    wait_until_alone();  // A server may still work for a client that is gone.
    int unknown = 0;
    for (const auto& [nth, outcome] : reports) {
        const std::int64_t found = effects(nth);
        EXPECT_TRUE(found == 0 || found == 5) << "half a transaction, cut at message " << nth;
        if (!outcome) {
            EXPECT_EQ(found, 5) << "lost, cut at message " << nth;
        }
        if (outcome == Outcome::not_applied) {
            EXPECT_EQ(found, 0) << "cut at message " << nth;
        }
        if (outcome == Outcome::unknown) {
            ++unknown;
        }
    }
    EXPECT_GT(unknown, 0) << "a cut after COMMIT was sent cannot be known";
    EXPECT_EQ(effects(dry), 5);
}

INSTANTIATE_TEST_SUITE_P(
    Cut,
    EveryMessage,
    testing::Values(Sweep{"ToTheServer", Side::client, Fault::cut, false},
                    Sweep{"ToTheClient", Side::server, Fault::cut, false},
                    Sweep{"AfterArrival", Side::client, Fault::cut_after, false},
                    Sweep{"Asking", Side::client, Fault::cut, true},
                    Sweep{"AskingToTheClient", Side::server, Fault::cut, true},
                    Sweep{"AskingUnheard", Side::client, Fault::lose_answer, true}),
    [](const auto& sweep) { return sweep.param.name; });

// --- run(): one statement, one trip -------------------------------------------------------------

TEST_F(Faults, ARunWhoseAnswerIsLostIsUnknownAndHappenedOnce) {
    proxy.arm({.from = Side::client, .type = 'E'}, Fault::lose_answer);
    EXPECT_EQ(test::outcome_of([&] { db.run("Add", {}, add, 1); }), Outcome::unknown);
    EXPECT_EQ(effects(1), 1);
}

TEST_F(Faults, ARunThatNeverArrivesIsUnknownAndNotRepeated) {
    proxy.arm({.from = Side::client, .type = 'B'}, Fault::cut);
    EXPECT_EQ(test::outcome_of([&] { db.run("Add", {}, add, 1); }), Outcome::unknown);
    EXPECT_EQ(effects(1), 0);
}

// --- a connection that died in its sleep ---------------------------------------------------------

TEST_F(Faults, AnIdleConnectionThatTheServerEndedIsReplacedInSilence) {
    const auto end_all = [&] {
        // The last argument makes the server wait until the other is really gone.
        direct.execute(
            "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()");
    };
    const auto opened = direct->pool_stats().opened;
    end_all();
    direct->run("Add", {}, add, 1);
    EXPECT_EQ(effects(1), 1);
    end_all();
    direct->transact("Add", {}, [](Tx& tx) { tx.exec(add, 2); });
    EXPECT_EQ(effects(2), 1);
    EXPECT_EQ(direct->pool_stats().opened, opened + 2);
}

// The pool has not been told that it is dead: it shows when the first query gets no answer.
TEST_F(Faults, AConnectionFoundDeadAtItsFirstQuestionIsReplacedInSilenceOnce) {
    int runs = 0;
    proxy.arm({.from = Side::client}, Fault::cut);
    db.transact("Add", {}, [&](Tx& tx) {
        ++runs;
        (void)tx.query(count);
        tx.exec(add, 1);
    });
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(effects(1), 1);
}

TEST_F(Faults, AServerThatIsAwayIsAnErrorAndWorksAgainWhenItIsBack) {
    proxy.refuse(true);
    proxy.cut_all();
    try {
        db.transact("Add", {.deadline = Deadline::after(20s)}, [](Tx& tx) {
            tx.exec(add, 1);
            (void)tx.query(count);
        });
        FAIL() << "there was no server";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unavailable) << error.what();
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
    }
    proxy.refuse(false);
    // Openings pause for a moment after a failure; until then the answer is the same.
    const Deadline patience = Deadline::after(20s);
    while (test::code_of([&] { db.run("Add", {}, add, 1); }) == Code::unavailable &&
           !patience.passed()) {
        system_clock().sleep_until(std::chrono::steady_clock::now() + 10ms, {});
    }
    EXPECT_EQ(effects(1), 1);
}

// --- opening ------------------------------------------------------------------------------------

TEST_F(Faults, AnOpeningThatFailsSaysWhy) {
    const auto open = [&](const std::string& url) {
        const Database other(url, test::quick_options());
    };
    EXPECT_EQ(test::code_of([&] { open(proxy.address().url("no_such_database")); }),
              Code::not_found);
    std::string stranger = proxy.address().url(direct.name());
    stranger.replace(stranger.find("postgres@"), 8, "stranger");
    EXPECT_EQ(test::code_of([&] { open(stranger); }), Code::unauthorized);
    proxy.refuse(true);
    EXPECT_EQ(test::code_of([&] { open(proxy.address().url(direct.name())); }), Code::unavailable);
    const test::PostgresAddress nowhere{"/nonexistent"};
    EXPECT_EQ(test::code_of([&] { open(nowhere.url()); }), Code::unavailable);
}

// --- the pipeline -------------------------------------------------------------------------------

TEST_F(Faults, AnErrorInTheThirdOfFiveIsThatStatementsErrorAndNothingIsApplied) {
    direct.execute("INSERT INTO uniques VALUES (7)");
    try {
        db.transact("Five", {}, [](Tx& tx) {
            tx.exec(add, 1);
            tx.exec(add, 1);
            tx.exec(add_unique, 7);
            tx.exec(add, 1);
            tx.exec(add, 1);
        });
        FAIL() << "it was applied";
    } catch (const DatabaseError& error) {
        EXPECT_EQ(error.state(), SqlState{"23505"});
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
        EXPECT_NE(std::string(error.what()).find("unique.add"), std::string::npos) << error.what();
    }
    EXPECT_EQ(effects(1), 0);
    db.run("Add", {}, add, 1);
    EXPECT_EQ(effects(1), 1) << "the connection is as good as before";
    EXPECT_EQ(proxy.connections(), 1);
}

TEST_F(Faults, AQuestionBehindAFailedStatementGetsThatStatementsError) {
    direct.execute("INSERT INTO uniques VALUES (7)");
    try {
        db.transact("Ask", {}, [](Tx& tx) {
            tx.exec(add_unique, 7);
            (void)tx.query(count);
            ADD_FAILURE() << "the question was answered";
        });
    } catch (const DatabaseError& error) {
        EXPECT_NE(std::string(error.what()).find("unique.add"), std::string::npos) << error.what();
    }
}

TEST_F(Faults, ATransactionCostsAsManyTripsAsItAsksQuestions) {
    add_five(1);  // Prepared by now.
    add_five_asking(1);
    const auto trips = [&](auto work) {
        const auto before = proxy.round_trips();
        const auto counted = db.driver_stats().round_trips;
        work();
        EXPECT_EQ(db.driver_stats().round_trips - counted, proxy.round_trips() - before);
        return proxy.round_trips() - before;
    };
    EXPECT_EQ(trips([&] { db.run("Add", {}, add, 1); }), 1);
    EXPECT_EQ(trips([&] { add_five(1); }), 1);
    EXPECT_EQ(trips([&] { add_five_asking(1); }), 2);
    EXPECT_EQ(trips([&] {
                  db.transact("Ask", {}, [](Tx& tx) {
                      Answer one = tx.ask(count);
                      Answer two = tx.ask(count);
                      Answer three = tx.ask(count);
                      (void)one.rows();
                      (void)two.rows();
                      (void)three.rows();
                      tx.exec(add, 1);
                  });
              }),
              2);
    EXPECT_EQ(trips([&] { db.transact("Nothing", {}, [](Tx&) {}); }), 0);
}

// Where conflicts show at commit, another trip would be paid for each of them.
TEST_F(Faults, WhatTheServerHasRolledBackCostsNoTripToRollItBack) {
    direct.execute(
        "CREATE TABLE late (id bigint UNIQUE DEFERRABLE INITIALLY DEFERRED);"
        "INSERT INTO late VALUES (7); INSERT INTO uniques VALUES (7)");
    constexpr Statement add_late{"late.add", "INSERT INTO late (id) VALUES ($1)"};
    const auto trips_of_a_duplicate = [&](auto work) {
        EXPECT_EQ(test::code_of(work), Code::already_exists);  // Prepared by now.
        const auto before = proxy.round_trips();
        EXPECT_EQ(test::code_of(work), Code::already_exists);
        return proxy.round_trips() - before;
    };
    const auto commit_late = [&] {
        db.transact("Late", {}, [&](Tx& tx) { tx.exec(add_late, 7); });
    };
    const auto commit_early = [&] {
        db.transact("Early", {}, [](Tx& tx) { tx.exec(add_unique, 7); });
    };
    EXPECT_EQ(trips_of_a_duplicate([&] { db.run("One", {}, add_unique, 7); }), 1);
    EXPECT_EQ(trips_of_a_duplicate([&] { db.run("One", {}, add_late, 7); }), 1);
    EXPECT_EQ(trips_of_a_duplicate(commit_late), 1);
    EXPECT_EQ(trips_of_a_duplicate(commit_early), 2) << "the block is still open";
    db.run("Add", {}, add, 1);
    EXPECT_EQ(proxy.connections(), 1);
}

// --- too late -----------------------------------------------------------------------------------

TEST_F(Faults, ADeadlineEndsTheStatementOnTheServerToo) {
    try {
        db.transact("Sleep", {.deadline = Deadline::after(100ms)}, [](Tx& tx) {
            tx.exec(add, 1);
            (void)tx.query(sleep_long);
        });
        FAIL() << "it slept to the end";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::deadline) << error.what();
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
    }
    EXPECT_TRUE(gone_soon(" AND query LIKE '%pg_sleep%' AND state = 'active'"));
    EXPECT_EQ(effects(1), 0);
    db.run("Add", {}, add, 1);
}

TEST_F(Faults, ARunPastItsDeadlineIsNotAppliedIfTheServerSaysSo) {
    direct.execute(
        "CREATE FUNCTION slow(n bigint) RETURNS bigint LANGUAGE sql AS "
        "'SELECT n FROM pg_sleep(60)'");
    constexpr Statement add_slowly{"effect.slow", "INSERT INTO effects (id) VALUES (slow($1))"};
    // A server that is too busy to say so in time leaves it unknown; it is not always that busy.
    std::optional<Outcome> outcome = Outcome::unknown;
    for (int tries = 0; tries < 20 && outcome == Outcome::unknown; ++tries) {
        try {
            db.run("Sleep", {.deadline = Deadline::after(100ms)}, add_slowly, 1);
            FAIL() << "it slept to the end";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::deadline) << error.what();
            outcome = error.outcome();
        }
    }
    EXPECT_EQ(outcome, Outcome::not_applied);
    EXPECT_EQ(effects(1), 0);
}

// It could take long, and be in the way of others meanwhile, only to be rolled back.
TEST_F(Faults, WhatIsOnlyQueuedIsNotSentForACallerWhoseTimeIsOver) {
    const auto sent = proxy.messages(Side::client, 'E');
    const TxOptions options{.deadline = Deadline::after(20ms)};
    EXPECT_EQ(test::code_of([&] {
                  db.transact("Late", options, [&](Tx& tx) {
                      tx.exec(add, 1);
                      while (!options.deadline.passed()) {
                          std::this_thread::yield();
                      }
                  });
              }),
              Code::deadline);
    EXPECT_EQ(proxy.messages(Side::client, 'E'), sent);
    EXPECT_EQ(effects(1), 0);
    db.run("Add", {}, add, 1);
}

TEST_F(Faults, WhoCancelsBetweenTwoStatementsCostsNoConnection) {
    std::stop_source source;
    EXPECT_EQ(test::code_of([&] {
                  db.transact("Cancel", {.stop = source.get_token()}, [&](Tx& tx) {
                      tx.exec(add, 1);
                      (void)tx.query(count);
                      source.request_stop();
                  });
              }),
              Code::cancelled);
    EXPECT_EQ(effects(1), 0);
    db.run("Add", {}, add, 1);
    EXPECT_EQ(effects(1), 1);
    EXPECT_EQ(proxy.connections(), 1) << "neither a request to cancel nor another connection";
}

// A server that answers no more, not even that it has stopped.
TEST_F(Faults, ADeadlineWithASilentServerIsUnknownOnceCommitWasSent) {
    proxy.arm({.from = Side::server, .type = 'C', .containing = "COMMIT"}, Fault::stall);
    try {
        // Time enough to send it, on any machine.
        db.transact("Add", {.deadline = Deadline::after(2s)}, [](Tx& tx) { tx.exec(add, 1); });
        FAIL() << "it was answered";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::deadline) << error.what();
        EXPECT_EQ(error.outcome(), Outcome::unknown);
    }
    EXPECT_EQ(effects(1), 1);
    proxy.cut_all();
}

TEST_F(Faults, ADeadlineWithASilentServerIsNotAppliedBeforeThat) {
    proxy.arm({.from = Side::server, .type = 'Z'}, Fault::stall);
    try {
        db.transact("Add", {.deadline = Deadline::after(50ms)}, [](Tx& tx) {
            tx.exec(add, 1);
            (void)tx.query(count);
        });
        FAIL() << "it was answered";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::deadline) << error.what();
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
    }
    proxy.cut_all();
    EXPECT_EQ(effects(1), 0);
}

// --- a server that takes no writes
// -----------------------------------------------------------------

class TakesNoWrites : public Faults {
protected:
    // For connections from now on, as after a failover.
    void demote() {
        direct.execute("ALTER DATABASE " + direct.name() +
                       " SET default_transaction_read_only = on");
        proxy.cut_all();
    }
    void promote() const {
        direct.execute("BEGIN READ WRITE; ALTER DATABASE " + direct.name() +
                       " RESET default_transaction_read_only; COMMIT");
    }
};

// The pool must not keep what leads to a standby: the one behind the same name may lead elsewhere.
TEST_F(TakesNoWrites, IsUnavailableAndItsConnectionIsNotUsedAgain) {
    HOLDFAST_CHECK("connections err.25006");
    demote();
    EXPECT_EQ(db.run("Look", {}, count).rows.size(), 1U) << "reading goes on";
    for (const bool alone : {true, false}) {
        try {
            if (alone) {
                db.run("Add", {}, add, 1);
            } else {
                db.transact("Add", {}, [](Tx& tx) { tx.exec(add, 1); });
            }
            FAIL() << "it was written";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::unavailable) << error.what();
            EXPECT_EQ(error.outcome(), Outcome::not_applied);
        }
    }
    promote();
    db.run("Add", {}, add, 1);
    EXPECT_EQ(effects(1), 1);
}

TEST_F(TakesNoWrites, KeepsTheConnectionOfAReadingTransactionThatWrote) {
    direct.execute(
        "CREATE FUNCTION sly() RETURNS bigint LANGUAGE sql AS"
        " $$ INSERT INTO effects VALUES (1) RETURNING id $$");
    static constexpr Statement sly{"sly", "SELECT sly()"};
    try {
        db.transact("Sly", {.read_only = true}, [](Tx& tx) { (void)tx.query(sly); });
        FAIL() << "it was written";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::invalid_argument);
        EXPECT_THAT(error.what(), testing::HasSubstr("drop read_only"));
    }
    EXPECT_EQ(effects(1), 0);
    db.run("Add", {}, add, 1);
    EXPECT_EQ(proxy.connections(), 1) << "the connection is as good as before";
}

}  // namespace

}  // namespace holdfast::sql

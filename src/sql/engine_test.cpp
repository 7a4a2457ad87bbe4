#include "engine.hpp"

#include <future>
#include <thread>

#include "test/fake_driver.hpp"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/base/manual_clock.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql {
namespace {

using namespace std::chrono_literals;

constexpr Statement touch{"test.touch", "UPDATE t SET n = n + 1 WHERE id = $1"};

DatabaseError conflict() {
    return {SqlState{"40001"}, Outcome::not_applied, "a conflict"};
}

DatabaseError trouble(std::string_view state) {
    return {SqlState{state}, Outcome::not_applied, "trouble"};
}

// An engine over a script, with everything that it tells.
struct Bench {
    explicit Bench(RetryPolicy policy = {.max_retries = 5, .base_delay = 1ms}) {
        auto scripted = std::make_unique<ScriptedDriver>();
        driver = scripted.get();
        DatabaseOptions options;
        options.name = "test";
        options.retry = policy;
        options.metrics = &metrics;
        options.logger = &log;
        engine = std::make_unique<Engine>(std::move(scripted), std::move(options));
    }

    void transact(const TxOptions& options = {}) {
        engine->transact("Pay", options, [this](Tx& tx) {
            ++bodies;
            tx.exec(touch, 1);
        });
    }

    [[nodiscard]] double errors(std::string_view error_class,
                                std::string_view outcome = "not_applied") {
        return metrics.value("holdfast_sql_tx_errors_total",
                             {{"operation", "Pay"},
                              {"db", "test"},
                              {"error_class", error_class},
                              {"outcome", outcome}});
    }
    [[nodiscard]] double counted(std::string_view name) {
        return metrics.value(name, {{"operation", "Pay"}, {"db", "test"}});
    }

    Metrics metrics;
    CapturingLogger log;
    ScriptedDriver* driver;
    std::unique_ptr<Engine> engine;
    int bodies = 0;
};

TEST(Retry, AConflictAtAStatementOrAtCommitIsReplayedAlike) {
    HOLDFAST_CHECK("store 200");
    Bench bench;
    bench.driver->fail(Strikes::at_statement, conflict()).fail(Strikes::at_commit, conflict());
    bench.transact();
    EXPECT_EQ(bench.driver->attempts, 3);
    EXPECT_EQ(bench.driver->committed, 1);
    EXPECT_EQ(bench.errors("retryable"), 2);
    EXPECT_EQ(bench.counted("holdfast_sql_tx_latency_seconds"), 1);
}

TEST(Retry, OnlyTheResultOfTheLastRunIsReturned) {
    HOLDFAST_CHECK("store 200");
    HOLDFAST_CHECK("store 209");
    Bench bench;
    bench.driver->fail(Strikes::at_commit, conflict()).fail(Strikes::at_commit, conflict());
    std::vector<int> seen;
    const std::vector<int> inputs{1, 2, 3};
    int run = 0;
    bench.engine->transact("Pay", {}, [&](Tx&) {
        seen.clear();  // Outputs are reset at entry: a replay must not add to an earlier run's.
        ++run;
        for (const int input : inputs) {
            seen.push_back(input * run);
        }
    });
    EXPECT_EQ(seen, (std::vector<int>{3, 6, 9}));
    EXPECT_EQ(inputs, (std::vector<int>{1, 2, 3}));
}

TEST(Retry, AnEndlessConflictIsGivenUpAfterTheLastRetryAndKeepsItsCause) {
    HOLDFAST_CHECK("store 201");
    Bench bench({.max_retries = 3, .base_delay = 1ms});
    for (int i = 0; i < 10; ++i) {
        bench.driver->fail(Strikes::at_commit, conflict());
    }
    try {
        bench.transact();
        FAIL() << "gave up without saying so";
    } catch (const Exhausted& error) {
        EXPECT_EQ(error.attempts(), 4);
        EXPECT_EQ(error.code(), Code::conflict);
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
        EXPECT_THROW(std::rethrow_exception(error.cause()), DatabaseError);
    }
    EXPECT_EQ(bench.driver->attempts, 4);
    EXPECT_EQ(bench.counted("holdfast_sql_tx_exhausted_total"), 1);
}

TEST(Retry, ALostConditionIsNeverRetriedWhateverItWraps) {
    HOLDFAST_CHECK("store 202");
    ConditionFailed plain("shard 7", "5", "6");
    ConditionFailed wrapping("shard 7", "5", "6");
    wrapping.set_cause(std::make_exception_ptr(conflict()));
    Error wrapped(Code::internal, Outcome::not_applied, "while saving");
    wrapped.set_cause(std::make_exception_ptr(plain));

    const auto attempts_for = [](const auto& error) {
        Bench bench;
        bench.driver->fail(Strikes::at_statement, error);
        EXPECT_THROW(bench.transact(), Error);
        EXPECT_EQ(bench.errors("condition_failed"), 1);
        EXPECT_EQ(bench.counted("holdfast_sql_tx_condition_failed_total"), 1);
        EXPECT_EQ(bench.log.count("level=error"), 0U) << "a lost condition is no error to log";
        return bench.driver->attempts;
    };
    EXPECT_EQ(attempts_for(plain), 1);
    EXPECT_EQ(attempts_for(wrapping), 1);
    EXPECT_EQ(attempts_for(wrapped), 1);
}

TEST(Retry, WhatCannotHelpIsTriedOnce) {
    HOLDFAST_CHECK("store 203");
    const std::vector<std::pair<std::string, std::string>> cases{{"0A000", "unsupported_feature"},
                                                                 {"23505", "duplicate"},
                                                                 {"53300", "connection_limit"},
                                                                 {"53400", "connection_limit"},
                                                                 {"54000", "limit_exceeded"},
                                                                 {"42601", "permanent"},
                                                                 {"22001", "permanent"},
                                                                 {"57P01", "connection_lost"}};
    for (const auto& [state, error_class] : cases) {
        Bench bench;
        bench.driver->fail(Strikes::at_statement, trouble(state));
        EXPECT_THROW(bench.transact(), DatabaseError) << state;
        EXPECT_EQ(bench.driver->attempts, 1) << state;
        EXPECT_EQ(bench.errors(error_class), 1) << state;
    }
}

TEST(Retry, AnUnsupportedStatementIsCountedAndLogged) {
    Bench bench;
    bench.driver->fail(Strikes::at_statement, trouble("0A000"));
    EXPECT_THROW(bench.transact(), DatabaseError);
    EXPECT_EQ(bench.counted("holdfast_sql_tx_unsupported_total"), 1);
    EXPECT_EQ(bench.log.count("unsupported"), 1U);
}

TEST(Retry, TextThatLooksLikeAConflictIsNotOne) {
    HOLDFAST_CHECK("store 204");
    Bench bench;
    bench.driver->fail(Strikes::at_statement,
                       DatabaseError(SqlState{"22001"},
                                     Outcome::not_applied,
                                     "value 40001 too long: OC000, serialization failure"));
    EXPECT_THROW(bench.transact(), DatabaseError);
    EXPECT_EQ(bench.driver->attempts, 1);
}

TEST(Retry, AnUnknownOutcomeIsNeverReplayed) {
    HOLDFAST_CHECK("store 207");
    Bench bench;
    bench.driver->fail(Strikes::at_commit, ConnectionLost(Outcome::unknown, "lost in commit"));
    EXPECT_EQ(test::outcome_of([&] { bench.transact(); }), Outcome::unknown);
    EXPECT_EQ(bench.driver->attempts, 1);
    EXPECT_EQ(bench.errors("connection_lost", "unknown"), 1);

    // Not even when the code says conflict: the outcome decides.
    Bench other;
    other.driver->fail(Strikes::at_commit,
                       DatabaseError(SqlState{"40001"}, Outcome::unknown, "who knows"));
    EXPECT_EQ(test::outcome_of([&] { other.transact(); }), Outcome::unknown);
    EXPECT_EQ(other.driver->attempts, 1);
}

TEST(Retry, AFailureToBeginIsNotRetried) {
    Bench bench;
    bench.driver->fail(Strikes::at_begin, ConnectionLost(Outcome::not_applied, "no server"));
    EXPECT_EQ(test::code_of([&] { bench.transact(); }), Code::unavailable);
    EXPECT_EQ(bench.driver->attempts, 1);
    EXPECT_EQ(bench.bodies, 0);
}

TEST(Retry, ADuplicateIsAConflictOnlyForWhoSaysSo) {
    Bench bench;
    bench.driver->fail(Strikes::at_statement, trouble("23505"));
    bench.transact({.on_duplicate = OnDuplicate::retry});
    EXPECT_EQ(bench.driver->attempts, 2);
}

// The first may be a race; the second says that the caller's own row is in the way.
TEST(Retry, TheSecondDuplicateIsThrownIfOnlyOneIsRetried) {
    Bench bench;
    bench.driver->fail(Strikes::at_statement, trouble("23505"));
    bench.transact(
        {.retry = RetryPolicy{.max_retries = 0}, .on_duplicate = OnDuplicate::retry_once});
    EXPECT_EQ(bench.driver->attempts, 2) << "it is not a conflict, so the policy does not count it";

    Bench other;
    other.driver->fail(Strikes::at_statement, trouble("23505"));
    other.driver->fail(Strikes::at_statement, trouble("23505"));
    EXPECT_EQ(test::code_of([&] { other.transact({.on_duplicate = OnDuplicate::retry_once}); }),
              Code::already_exists);
    EXPECT_EQ(other.driver->attempts, 2);
}

TEST(Retry, ACallerWhoHasStoppedBeginsNothing) {
    HOLDFAST_CHECK("store 205");
    Bench bench;
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(test::code_of([&] { bench.transact({.stop = stop.get_token()}); }), Code::cancelled);
    EXPECT_EQ(bench.driver->attempts, 0);
    EXPECT_EQ(test::code_of([&] { bench.transact({.deadline = Deadline::after(-1s)}); }),
              Code::deadline);
    EXPECT_EQ(bench.driver->attempts, 0);
}

// The pause before a retry is the only sleep of the engine; a caller who leaves must not wait for
// it.
TEST(Retry, AStopTokenCutsThePauseShort) {
    HOLDFAST_CHECK("store 205");
    Bench bench({.max_retries = 5, .base_delay = 1h, .max_delay = 1h});
    bench.driver->fail(Strikes::at_commit, conflict());
    std::stop_source stop;
    auto answer = std::async(std::launch::async, [&] {
        try {
            bench.transact({.deadline = Deadline::after(24h), .stop = stop.get_token()});
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::cancelled);
            EXPECT_EQ(error.outcome(), Outcome::not_applied);
            EXPECT_TRUE(error.cause()) << "the last conflict is worth knowing";
        }
        return std::chrono::steady_clock::now();
    });
    // The pause has begun when its length has been recorded.
    while (bench.counted("holdfast_sql_tx_backoff_seconds") < 1) {
        std::this_thread::yield();
    }
    const auto stopped = std::chrono::steady_clock::now();
    stop.request_stop();
    // Milliseconds on a quiet machine; far from the hour of the pause on any.
    EXPECT_LT(answer.get() - stopped, 10s);
}

TEST(Retry, ADeadlineThatIsCloserThanThePauseEndsItAtOnce) {
    Bench bench({.max_retries = 5, .base_delay = 2h, .max_delay = 2h});
    bench.driver->fail(Strikes::at_commit, conflict());
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(test::code_of([&] { bench.transact({.deadline = Deadline::after(1h)}); }),
              Code::deadline);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "of an hour";
}

TEST(Retry, AnExceptionOfTheBodyComesOutUnchangedAfterOneRun) {
    Bench bench;
    int runs = 0;
    EXPECT_THROW(bench.engine->transact("Pay",
                                        {},
                                        [&](Tx&) {
                                            ++runs;
                                            throw std::out_of_range("mine");
                                        }),
                 std::out_of_range);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(bench.counted("holdfast_sql_tx_active"), 0);
}

TEST(Retry, AnOperationMayHaveAPolicyOfItsOwn) {
    HOLDFAST_CHECK("store 210");
    auto scripted = std::make_unique<ScriptedDriver>();
    ScriptedDriver& driver = *scripted;
    DatabaseOptions options;
    options.retry = {.max_retries = 0};
    options.retry_by_operation["Pay"] = {.max_retries = 2, .base_delay = 1ms};
    Engine engine(std::move(scripted), options);
    driver.fail(Strikes::at_commit, conflict()).fail(Strikes::at_commit, conflict());
    engine.transact("Pay", {}, [](Tx&) {});
    EXPECT_EQ(driver.attempts, 3);
    driver.fail(Strikes::at_commit, conflict());
    EXPECT_THROW(engine.transact("Other", {}, [](Tx&) {}), Exhausted);
}

TEST(Retry, ManyConflictsInAMinuteGiveOneWarningThatNamesTheOperations) {
    CapturingLogger log;
    ConflictWatch watch(3, log, Gauge{}, "orders");
    ManualClock clock;
    for (int i = 0; i < 10; ++i) {
        watch.record("Pay", clock.steady_now());
    }
    EXPECT_EQ(log.count("many conflicts"), 1U);
    EXPECT_EQ(log.count("Pay=4"), 1U);
    clock.advance(61s);
    for (int i = 0; i < 10; ++i) {
        watch.record("Ship", clock.steady_now());
    }
    EXPECT_EQ(log.count("many conflicts"), 2U);
    EXPECT_EQ(log.count("Ship=4"), 1U);
}

TEST(Engine, AWrongNumberOfArgumentsIsRefusedBeforeAnythingIsSent) {
    Bench bench;
    const std::array<Param, 2> two{Param(1), Param(2)};
    EXPECT_EQ(test::code_of([&] { (void)bench.engine->run("Pay", {}, touch, two); }),
              Code::invalid_argument);
    EXPECT_EQ(bench.driver->attempts, 0);
}

TEST(Engine, AWritingStatementIsRefusedInAReadOnlyTransaction) {
    Bench bench;
    const std::array<Param, 1> one{Param(1)};
    EXPECT_EQ(
        test::code_of([&] { (void)bench.engine->run("Pay", {.read_only = true}, touch, one); }),
        Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { bench.transact({.read_only = true}); }), Code::invalid_argument);
    EXPECT_EQ(bench.driver->committed, 0);
}

TEST(Engine, AHundredThreadsMayRetryAtOnce) {
    HOLDFAST_CHECK("store 211");
    Bench bench({.max_retries = 1, .base_delay = 1ms});
    for (int i = 0; i < 50; ++i) {
        bench.driver->fail(Strikes::at_commit, conflict());
    }
    std::vector<std::jthread> threads;
    std::atomic<int> done = 0;
    for (int i = 0; i < 100; ++i) {
        threads.emplace_back([&] {
            try {
                bench.engine->transact("Pay", {}, [](Tx&) {});
            } catch (const Exhausted&) {
            }
            ++done;
        });
    }
    threads.clear();
    EXPECT_EQ(done, 100);
}

// Property 3: Serialization Conflict Retry. Whatever the policy and however many conflicts come,
// the body is attempted once more than there are conflicts, or once more than there are retries.
RC_GTEST_PROP(Property3, ConflictsAreRetriedWithinThePolicyAndNothingElseIs, ()) {
    HOLDFAST_CHECK("Property 3");
    const int retries = *rc::gen::inRange(0, 6);
    const int conflicts = *rc::gen::inRange(0, 8);
    Bench bench({.max_retries = retries, .base_delay = 1ms, .max_delay = 1ms});
    for (int i = 0; i < conflicts; ++i) {
        bench.driver->fail(*rc::gen::element(Strikes::at_statement, Strikes::at_commit),
                           trouble(*rc::gen::element<std::string>("40001", "40P01")));
    }
    bool gave_up = false;
    try {
        bench.transact();
    } catch (const Exhausted&) {
        gave_up = true;
    }
    RC_ASSERT(gave_up == (conflicts > retries));
    RC_ASSERT(bench.driver->attempts == std::min(conflicts, retries) + 1);
    RC_ASSERT(bench.driver->committed == (gave_up ? 0 : 1));
    RC_ASSERT(bench.bodies == bench.driver->attempts);
}

// Property 5: Error Handling Robustness. Every error is of exactly one class, is counted once per
// attempt under it, and only the retryable ones lead to another attempt.
RC_GTEST_PROP(Property5, EveryErrorIsClassifiedCountedAndHandledByItsClass, ()) {
    HOLDFAST_CHECK("Property 5");
    const auto letter = rc::gen::elementOf(std::string("0123456789ABCDEFGHPX"));
    const std::string random = *rc::gen::container<std::string>(5, letter);
    const std::string state = *rc::gen::element<std::string>("40001",
                                                             "40P01",
                                                             "0A000",
                                                             "53300",
                                                             "53400",
                                                             "54000",
                                                             "54001",
                                                             "23505",
                                                             "08006",
                                                             "57P01",
                                                             "42601",
                                                             random,
                                                             random,
                                                             random);
    const Outcome outcome = *rc::gen::element(Outcome::not_applied, Outcome::unknown);
    const DatabaseError error(SqlState{state}, outcome, "OC000 40001 0A000");
    Bench bench({.max_retries = 1, .base_delay = 1ms, .max_delay = 1ms});
    bench.driver->fail(Strikes::at_commit, error);

    const bool retryable = classify(SqlState{state}) == ErrorClass::retryable;
    const bool replayed = retryable && outcome == Outcome::not_applied;
    const auto thrown = test::outcome_of([&] { bench.transact(); });
    RC_ASSERT(thrown.has_value() == !replayed);
    RC_ASSERT(thrown.value_or(outcome) == outcome);
    RC_ASSERT(bench.driver->attempts == (replayed ? 2 : 1));
    RC_ASSERT(bench.errors(to_string(error.error_class()), to_string(outcome)) == 1);
    RC_ASSERT(retryable == (state == "40001" || state == "40P01"));
}

}  // namespace
}  // namespace holdfast::sql

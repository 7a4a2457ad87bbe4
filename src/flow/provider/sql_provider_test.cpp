// What is special to the provider in SQL: its statements, what they cost, and commits whose answer
// is lost on the way.
#include <holdfast/flow/sql_provider.hpp>

#include "provider/test/provider_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/sql/error.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/catalogue_rules.hpp>
#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast::flow {
namespace {

using namespace std::chrono_literals;
using tests::ClaimedTurn;
using tests::text;
using tests::turn;

TEST(SqlProviderInMemory, ADatabaseInMemoryKeepsTheSamePromises) {
    HOLDFAST_CHECK("runtime in_memory_provider_atomic_operations");
    sql::Database db("sqlite::memory:");
    sql::schema_apply(db, schema_part(), {});
    SqlProvider provider{db};
    EXPECT_TRUE(provider.claim_instances({}).empty());
    EXPECT_TRUE(provider
                    .start({.instance = "a",
                            .start = {.name = "order",
                                      .version = "1.0.0",
                                      .input = text("input"),
                                      .parent = {}}})
                    .created);
    const auto given_back = provider.claim_instances({});
    ASSERT_EQ(given_back.size(), 1U);
    EXPECT_TRUE(provider.claim_instances({}).empty()) << "it is claimed";
    EXPECT_TRUE(provider.abandon_instance(given_back[0], 0ms, true));
    const auto claims = provider.claim_instances({});
    ASSERT_EQ(claims.size(), 1U);
    ClaimedTurn first = turn(claims[0]);
    first.schedules(2, "pay").sends("a", SignalMessage{"go", text("now")});
    EXPECT_EQ(provider.commit_turns(std::span(&first.commit, 1)).at(0), Committed::yes);
    EXPECT_EQ(provider.commit_turns(std::span(&first.commit, 1)).at(0), Committed::lost)
        << "a token commits once";
    EXPECT_EQ(provider.load_history("a", 1).events.size(), 2U);
    EXPECT_EQ(provider.claim_activities({}).size(), 1U);
    EXPECT_EQ(provider.claim_instances({}).at(0).messages.size(), 1U);
}

TEST(FlowCatalogue, EveryStatementKeepsTheRules) {
    EXPECT_EQ(test::broken_rules(catalogue()), std::vector<std::string>{});
}

StartMessage start_of(const std::string& name) {
    return {.name = name, .version = "1.0.0", .input = text("input"), .parent = {}};
}

struct Cost {
    std::int64_t statements = 0;
    std::int64_t commits = 0;
    std::int64_t round_trips = 0;
};

template <class Work>
Cost cost_of(sql::Database& db, Work&& work) {
    const sql::DriverStats before = db.driver_stats();
    work();
    const sql::DriverStats after = db.driver_stats();
    return {.statements = after.statements - before.statements,
            .commits = after.commits - before.commits,
            .round_trips = after.round_trips - before.round_trips};
}

class Costs : public testing::TestWithParam<test::Backend> {
protected:
    // What a process does once: it enters the boot of the machine into a file, and finds it there.
    Costs() {
        (void)db.lease_now_us();
        (void)db.lease_now_us();
    }

    Started start(const std::string& instance) {
        return provider.start({.instance = instance, .start = start_of("order")});
    }
    // The first turn of an instance, by the token that its start left: it schedules activity 2,
    // already claimed.
    TurnCommit first_turn(const std::string& instance) {
        const Started started = start(instance);
        const auto claim = provider.peek_instance(instance, started.token);
        ClaimedTurn first = turn(claim.value());
        first.commit.leased = false;
        first.schedules(2, "charge");
        first.commit.activities.back().claim = Uuid::v4();
        first.commit.activities.back().claim_lease = 30s;
        return first.commit;
    }
    // The turn that has read the answer of the activity before and schedules the next.
    static TurnCommit fused_turn(const TurnCommit& before) {
        const ActivityTask& ended = before.activities.at(0);
        ClaimedInstance held;
        held.instance = before.instance;
        held.token = before.next_token;
        held.last_event = before.events.back().id;
        ClaimedTurn next = turn(held);
        next.commit.leased = false;
        next.records(held.last_event + 1, ActivityCompleted{text("paid")}, ended.key.event);
        next.schedules(held.last_event + 2, "ship");
        next.commit.activities.back().claim = Uuid::v4();
        next.commit.activities.back().claim_lease = 30s;
        next.commit.finished.push_back({.key = ended.key, .token = ended.claim, .answer = {}});
        return next.commit;
    }
    // The same as first_turn, but it is also the start.
    static TurnCommit creating_turn(const std::string& instance) {
        ClaimedInstance nobody;
        nobody.instance = instance;
        nobody.messages.push_back({.message = {.body = start_of("order")}});
        ClaimedTurn first = turn(nobody);
        first.commit.consumed.clear();
        first.commit.leased = false;
        first.commit.creates = true;
        first.schedules(2, "charge");
        first.commit.activities.back().claim = Uuid::v4();
        first.commit.activities.back().claim_lease = 30s;
        return first.commit;
    }
    // The turn that has read the answer of the activity before, and ends.
    static TurnCommit last_turn(const TurnCommit& before) {
        TurnCommit last = fused_turn(before);
        last.events.back().body = WorkflowCompleted{text("done")};
        last.activities.clear();
        last.status = Status::completed;
        last.output = "\"done\"";
        last.names_all_activities = true;
        return last;
    }
    Committed commit(const TurnCommit& one) { return provider.commit_turns({&one, 1}).at(0); }

    test::Database db{GetParam(), schema_part()};
    SqlProvider provider{db};
};

// Of a workflow's life this is what is repeated, so it is counted to the last statement.
TEST_P(Costs, AFusedTurnIsFourStatementsAndOneCommit) {
    TurnCommit before = first_turn("order-1");
    ASSERT_EQ(commit(before), Committed::yes);
    for (int round = 0; round < 3; ++round) {
        const TurnCommit fused = fused_turn(before);
        Committed result{};
        const Cost cost = cost_of(db, [&] { result = commit(fused); });
        ASSERT_EQ(result, Committed::yes);
        EXPECT_EQ(cost.statements, 4);
        EXPECT_EQ(cost.commits, 1);
        EXPECT_LE(cost.round_trips, 2);
        before = fused;
    }
}

// A workflow of N steps is N + 1 of these.
TEST_P(Costs, AFirstTurnThatIsTheStartAndALastTurnAreFourStatementsEach) {
    const TurnCommit first = creating_turn("order-1");
    const TurnCommit last = last_turn(first);
    for (const TurnCommit& one : {first, last}) {
        Committed result{};
        const Cost cost = cost_of(db, [&] { result = commit(one); });
        ASSERT_EQ(result, Committed::yes);
        EXPECT_EQ(cost.statements, 4);
        EXPECT_EQ(cost.commits, 1);
        EXPECT_LE(cost.round_trips, 2);
    }
    EXPECT_EQ(provider.info("order-1")->status, Status::completed);
    EXPECT_EQ(provider.stats().activities, 0);
}

// Unread mail goes with its instance.
TEST_P(Costs, ALastTurnTakesItsMailAlong) {
    const TurnCommit first = creating_turn("order-1");
    ASSERT_EQ(commit(first), Committed::yes);
    provider.send({"order-1", {.body = SignalMessage{"go", text("now")}}});
    ASSERT_EQ(commit(last_turn(first)), Committed::yes);
    EXPECT_EQ(provider.stats().messages, 0);
}

TEST_P(Costs, ManyTurnsShareOneCommitAndTwoRoundTrips) {
    std::vector<TurnCommit> firsts;
    for (int i = 0; i < 8; ++i) {
        firsts.push_back(first_turn("order-" + std::to_string(i)));
    }
    const Cost begun = cost_of(db, [&] {
        const std::vector<Committed> results = provider.commit_turns(firsts);
        EXPECT_EQ(results, std::vector<Committed>(8, Committed::yes));
    });
    EXPECT_EQ(begun.commits, 1);
    EXPECT_LE(begun.round_trips, 2);

    std::vector<TurnCommit> fused;
    for (const TurnCommit& first : firsts) {
        fused.push_back(fused_turn(first));
    }
    const Cost cost = cost_of(db, [&] {
        EXPECT_EQ(provider.commit_turns(fused), std::vector<Committed>(8, Committed::yes));
    });
    EXPECT_EQ(cost.statements, 4 * 8);
    EXPECT_EQ(cost.commits, 1);
    EXPECT_LE(cost.round_trips, 2);
}

// Mail for itself and others, timers, children, answers: still one trip to decide and one to write.
TEST_P(Costs, ATurnThatDoesEverythingTakesTwoRoundTrips) {
    ASSERT_TRUE(start("neighbour").created);
    const TurnCommit first = first_turn("order-1");
    ASSERT_EQ(commit(first), Committed::yes);
    provider.send({"order-1", {.body = SignalMessage{"go", text("now")}}});
    const auto claim = provider.peek_instance("order-1", first.next_token);
    ClaimedTurn busy = turn(claim.value());
    busy.commit.leased = false;
    busy.waits_until(3, claim->now + 1h).starts_child(4, "child").schedules(5, "pack");
    busy.sends("neighbour", SignalMessage{"hello", text("there")}).cancels(2).sets("k", "v");
    busy.commit.replies.push_back({.request = "r", .failed = false, .body = "1"});
    Committed result{};
    const Cost cost = cost_of(db, [&] { result = commit(busy.commit); });
    EXPECT_EQ(result, Committed::yes);
    EXPECT_EQ(cost.commits, 1);
    EXPECT_LE(cost.round_trips, 2);
}

TEST_P(Costs, AStartIsThreeStatementsAndOneCommit) {
    SqlProvider quiet{db, {.notify = false}};  // Waking others is a statement on a server.
    const Cost cost = cost_of(db, [&] {
        EXPECT_TRUE(quiet.start({.instance = "order-1", .start = start_of("order")}).created);
    });
    EXPECT_EQ(cost.statements, 3);
    EXPECT_EQ(cost.commits, 1);
    EXPECT_LE(cost.round_trips, 2);
}

TEST_P(Costs, LookingAtAnInstanceIsOneStatementThatNeedsNoHistory) {
    ASSERT_EQ(commit(first_turn("order-1")), Committed::yes);
    db.execute("DROP TABLE flow_history");
    std::optional<InstanceInfo> found;
    const Cost cost = cost_of(db, [&] { found = provider.info("order-1"); });
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->status, Status::running);
    EXPECT_EQ(cost.statements, 1);
    EXPECT_LE(cost.round_trips, 1);
}

// The culprit is found without the others noticing.
TEST_P(Costs, ATurnThatWasOvertakenDoesNotTakeItsBatchAlong) {
    const TurnCommit first = first_turn("order-1");
    TurnCommit overtaken = first_turn("order-2");
    const TurnCommit third = first_turn("order-3");
    overtaken.token = Uuid::v4();
    const std::vector<TurnCommit> batch{first, overtaken, third};
    const std::vector<Committed> expected{Committed::yes, Committed::lost, Committed::yes};
    EXPECT_EQ(provider.commit_turns(batch), expected);
    EXPECT_EQ(provider.info("order-1")->last_event, 2U);
    EXPECT_EQ(provider.info("order-2")->last_event, 0U);
    EXPECT_EQ(provider.info("order-3")->last_event, 2U);
    EXPECT_EQ(db.number("SELECT count(*) FROM flow_activities"), 2);
}

// A row in the way that this program would never have written.
TEST_P(Costs, OnlyTheTurnWhoseEventIsTakenIsRejected) {
    const std::vector<TurnCommit> batch{first_turn("order-1"), first_turn("order-2")};
    db.execute(
        "INSERT INTO flow_history SELECT 'order-2', 1, 1, 1, 1, lock_token, '{}' "
        "FROM flow_instances WHERE instance_id = 'order-2'");
    const std::vector<Committed> expected{Committed::yes, Committed::rejected};
    EXPECT_EQ(provider.commit_turns(batch), expected);
    EXPECT_EQ(provider.info("order-1")->last_event, 2U);
    EXPECT_EQ(provider.info("order-2")->last_event, 0U);
    EXPECT_EQ(provider.info("order-2")->status, Status::pending);
}

TEST_P(Costs, TurnsOfOneInstanceInOneCallFollowEachOther) {
    const TurnCommit first = first_turn("order-1");
    const std::vector<TurnCommit> both{first, fused_turn(first)};
    EXPECT_EQ(provider.commit_turns(both), std::vector<Committed>(2, Committed::yes));
    EXPECT_EQ(provider.info("order-1")->last_event, 4U);
}

TEST_P(Costs, AFinishedActivityThatIsNotOursAnyMoreLosesTheWholeTurn) {
    const TurnCommit first = first_turn("order-1");
    ASSERT_EQ(commit(first), Committed::yes);
    db.advance_clock(31s);  // The lease of its activity.
    EXPECT_EQ(commit(fused_turn(first)), Committed::lost);
    EXPECT_EQ(provider.info("order-1")->last_event, 2U);
    EXPECT_EQ(provider.load_history("order-1", 1).events.size(), 2U);
}

TEST_P(Costs, ALongTurnIsKeptInSeveralRowsAndReadAsOne) {
    const Started started = start("order-1");
    ClaimedTurn first = turn(provider.peek_instance("order-1", started.token).value());
    first.commit.leased = false;
    const std::string long_text(200UL * 1024, 'x');
    for (int i = 0; i < 8; ++i) {
        first.records(first.next_event(), KvSet{"key", text(long_text)});
    }
    ASSERT_EQ(commit(first.commit), Committed::yes);
    EXPECT_GT(db.number("SELECT count(*) FROM flow_history"), 1);
    EXPECT_LE(db.number("SELECT max(length(events)) FROM flow_history"), 512 * 1024);
    const LoadedHistory loaded = provider.load_history("order-1", 1);
    EXPECT_EQ(loaded.events, first.commit.events);
    EXPECT_EQ(loaded.bytes, provider.info("order-1")->history_bytes);
    EXPECT_EQ(provider.load_history("order-1", 1, 7).events.size(), 2U);
}

// A mailbox that promises mail which is not there must neither be claimed nor stay in the way.
TEST_P(Costs, AMailboxThatPromisesTooMuchIsCorrected) {
    const TurnCommit first = first_turn("order-1");
    ASSERT_EQ(commit(first), Committed::yes);
    db.execute("UPDATE flow_mailboxes SET ready_at_us = 1");
    EXPECT_TRUE(provider.claim_instances({.count = 4}).empty());
    EXPECT_EQ(db.number("SELECT count(*) FROM flow_mailboxes WHERE ready_at_us IS NULL"), 1);
    EXPECT_EQ(provider.send({"order-1", {.body = SignalMessage{"go", text("now")}}}),
              Delivery::delivered);
    EXPECT_EQ(provider.claim_instances({.count = 4}).size(), 1U);
}

// A caller that holds an instance is told of its mail, once, and gets the others besides.
TEST_P(Costs, WhatTheAskerHasInHandIsNamedAndNotClaimed) {
    const TurnCommit first = first_turn("order-1");
    ASSERT_EQ(commit(first), Committed::yes);
    provider.send({"order-1", {.body = SignalMessage{"go", text("now")}}});
    ASSERT_TRUE(start("order-2").created);
    const auto found = provider.claim_instances(
        {.count = 8, .mine = [&](std::string_view instance, const Uuid& token) {
             return instance == "order-1" && token == first.next_token;
         }});
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].instance, "order-1");
    EXPECT_FALSE(found[0].claimed);
    EXPECT_EQ(found[0].token, first.next_token);
    EXPECT_EQ(found[1].instance, "order-2");
    EXPECT_TRUE(found[1].claimed);
    EXPECT_TRUE(provider.peek_instance("order-1", first.next_token).has_value());
}

INSTANTIATE_TEST_SUITE_P(Every, Costs, test::every_backend(), test::backend_name);

// A provider whose way to the server can be cut at the worst moment: the server has committed, and
// the answer never arrives.
class LostAnswers : public testing::Test {
protected:
    void lose_next_commit_answer() {
        proxy.arm({.from = test::Side::server, .type = 'C', .containing = "COMMIT"},
                  test::Fault::cut);
    }
    void lose_next_commit() {
        proxy.arm({.from = test::Side::client, .type = 'P', .containing = "COMMIT"},
                  test::Fault::cut);
    }
    TurnCommit first_turn(const std::string& instance) {
        const Started started = direct.start({.instance = instance, .start = start_of("order")});
        ClaimedTurn first = turn(direct.peek_instance(instance, started.token).value());
        first.commit.leased = false;
        return first.schedules(2, "charge").commit;
    }

    test::Database db{test::Backend::postgres, schema_part()};
    SqlProvider direct{db};
    test::FaultProxy proxy{test::shared_postgres()};
    sql::Database far{proxy.address().url(db.name()), db.options()};
    SqlProvider provider{far};
};

TEST_F(LostAnswers, ACommitThatHappenedIsFoundByItsToken) {
    const TurnCommit one = first_turn("order-1");
    lose_next_commit_answer();
    EXPECT_EQ(provider.commit_turns({&one, 1}).at(0), Committed::yes);
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s)));
    EXPECT_EQ(direct.load_history("order-1", 1).events, one.events);
}

// No answer was lost here: a turn that is repeated with an old token was overtaken.
TEST_F(LostAnswers, ARepeatedCommitIsLostToWhoeverHasClaimedTheInstanceSince) {
    const TurnCommit one = first_turn("order-1");
    ASSERT_EQ(direct.commit_turns({&one, 1}).at(0), Committed::yes);
    direct.send({"order-1", {.body = SignalMessage{"go", text("now")}}});
    ASSERT_EQ(direct.claim_instances({}).size(), 1U);
    EXPECT_EQ(direct.commit_turns({&one, 1}).at(0), Committed::lost);
}

TEST_F(LostAnswers, ACommitThatDidNotHappenIsRunAgain) {
    const TurnCommit one = first_turn("order-1");
    lose_next_commit();
    EXPECT_EQ(provider.commit_turns({&one, 1}).at(0), Committed::yes);
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s)));
    EXPECT_EQ(direct.load_history("order-1", 1).events, one.events);
    EXPECT_EQ(db.number("SELECT count(*) FROM flow_activities"), 1);
}

TEST_F(LostAnswers, AStartIsNeitherLostNorDoubled) {
    lose_next_commit_answer();
    const StartInstance request{.instance = "order-1", .start = start_of("order")};
    const Started started = provider.start(request);
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s)));
    EXPECT_TRUE(started.created);
    EXPECT_TRUE(direct.peek_instance("order-1", started.token).has_value());
    EXPECT_EQ(db.number("SELECT count(*) FROM flow_messages"), 1);

    lose_next_commit();
    EXPECT_FALSE(provider.start(request).created) << "it is there, and was not made by this one";
}

TEST_F(LostAnswers, AnActivityEndsOnceAndItsAnswerArrivesOnce) {
    for (const bool happened : {true, false}) {
        const std::string instance = happened ? "order-1" : "order-2";
        const TurnCommit one = first_turn(instance);
        ASSERT_EQ(direct.commit_turns({&one, 1}).at(0), Committed::yes);
        const ClaimedActivity activity = direct.claim_activities({}).at(0);
        const ActivityEnd end{activity.task.key, activity.token, ActivityAnswer{2, text("paid")}};
        happened ? lose_next_commit_answer() : lose_next_commit();
        EXPECT_TRUE(provider.end_activities({&end, 1}).at(0));
        EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s)));
        EXPECT_EQ(direct.peek_instance(instance, one.next_token)->messages.size(), 1U);
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM flow_activities"), 0);
}

}  // namespace
}  // namespace holdfast::flow

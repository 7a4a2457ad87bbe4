// Activities on their way through a worker: leases, renewal, giving back, ending.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

class ProviderActivities : public ProviderStory {};

TEST_P(ProviderActivities, ARenewedLeaseHoldsLonger) {
    HOLDFAST_CHECK("runtime worker_lock_renewal_success");
    HOLDFAST_CHECK("runtime worker_lock_renewal_extends_timeout");
    queue("a", {"charge"});
    const auto held = taken("charge", {.lease = 10s});
    db.advance_clock(6s);
    EXPECT_TRUE(renew(held, 10s));
    db.advance_clock(4s);
    EXPECT_FALSE(take()) << "the first lease is over, the renewed one is not";
    EXPECT_TRUE(end(held));
}

TEST_P(ProviderActivities, WhatIsNotHeldIsNotRenewed) {
    HOLDFAST_CHECK("runtime worker_lock_renewal_invalid_token");
    HOLDFAST_CHECK("runtime worker_lock_renewal_after_expiration");
    HOLDFAST_CHECK("runtime worker_lock_renewal_after_ack");
    queue("a", {"charge", "ship"});
    const auto held = taken("charge", {.lease = 10s});
    auto forged = held;
    forged.token = Uuid::v4();
    EXPECT_FALSE(renew(forged));

    const auto ended = taken("ship", {.lease = 10s});
    EXPECT_TRUE(end(ended));
    EXPECT_FALSE(renew(ended));

    db.advance_clock(10s);
    EXPECT_FALSE(renew(held)) << "a lease that has run out stays lost";
    EXPECT_EQ(taken("charge").attempt, 2);
}

TEST_P(ProviderActivities, SeveralAreRenewedAtOnceAndEachIsAnsweredByItself) {
    queue("a", {"one", "two", "three"});
    const auto held = provider.claim_activities({.lease = 10s, .count = 3});
    ASSERT_EQ(held.size(), 3U);
    EXPECT_TRUE(end(held[1]));
    std::vector<std::pair<ActivityKey, Uuid>> names;
    names.reserve(held.size());
    for (const auto& one : held) {
        names.emplace_back(one.task.key, one.token);
    }
    EXPECT_EQ(provider.renew_activities(names, 10s), (std::vector{true, false, true}));
    EXPECT_TRUE(provider.renew_activities({}, 10s).empty());
}

TEST_P(ProviderActivities, AnAbandonedActivityIsFreeAtOnceOrLater) {
    HOLDFAST_CHECK("runtime abandon_work_item_releases_lock");
    HOLDFAST_CHECK("runtime abandon_work_item_with_delay");
    queue("a", {"charge"});
    const auto first = taken("charge");
    EXPECT_TRUE(abandon(first));
    EXPECT_FALSE(abandon(first)) << "it is not ours any more";

    EXPECT_TRUE(abandon(taken("charge"), 10s));
    EXPECT_FALSE(take());
    db.advance_clock(9s);
    EXPECT_FALSE(take());
    db.advance_clock(1s);
    EXPECT_EQ(taken("charge").attempt, 3);
}

TEST_P(ProviderActivities, OneThatNobodyHasCanBeEndedByNobody) {
    queue("a", {"charge"});
    ClaimedActivity free;
    free.task.key = {"a", 1, 2};
    const auto held = taken("charge");
    EXPECT_FALSE(end(free)) << "somebody has begun it";
    EXPECT_TRUE(abandon(held));
    EXPECT_TRUE(end(free));
    EXPECT_FALSE(end(free)) << "a repeat finds nothing";
    EXPECT_FALSE(take());
    EXPECT_EQ(claimed("a").messages.size(), 1U) << "the workflow has its answer, once";
}

TEST_P(ProviderActivities, WhatGoesAheadIsTakenBeforeWhatIsOlderByUpToThat) {
    queue("a", {"old"});
    db.advance_clock(1min);
    queue("b", {"usual"});
    db.advance_clock(1s);
    queue("c", {"urgent"}, {.ahead = 30s});
    queue("d", {"more urgent"}, {.ahead = 31s});
    EXPECT_EQ(take_all(), (std::vector<std::string>{"old", "more urgent", "urgent", "usual"}));
}

TEST_P(ProviderActivities, WhatMustBeginAtOnceIsLeftToWhoeverIsFree) {
    queue("a", {"limited", "limited too"}, {.must_begin = true});
    queue("b", {"usual"});
    const ClaimActivities busy{.count = 3, .begin_now = 0};
    const ClaimActivities nearly{.count = 3, .begin_now = 1};
    EXPECT_FALSE(taken("usual", busy).task.must_begin);
    EXPECT_FALSE(take(busy));
    const auto limited = taken("limited", nearly);
    EXPECT_TRUE(limited.task.must_begin);
    EXPECT_TRUE(abandon(limited));
    EXPECT_FALSE(take(busy)) << "given back, it still must begin at once";
    taken("limited too", nearly);
    taken("limited", nearly);
}

TEST_P(ProviderActivities, AnEndAfterTheLeaseIsRefusedEvenWithoutARival) {
    HOLDFAST_CHECK("runtime worker_ack_fails_after_lock_expiry");
    queue("a", {"charge"});
    const auto late = taken("charge", {.lease = 10s});
    db.advance_clock(10s);
    EXPECT_FALSE(end(late));
    EXPECT_TRUE(idle()) << "no answer was sent";
    const auto again = taken("charge");
    EXPECT_EQ(again.attempt, 2);
    EXPECT_FALSE(end(late));
    EXPECT_TRUE(end(again));
}

TEST_P(ProviderActivities, TheyLeaveInTheOrderTheyCame) {
    HOLDFAST_CHECK("runtime worker_queue_fifo_ordering");
    HOLDFAST_CHECK("runtime worker_item_immediate_visibility");
    queue("a", {"one", "two", "three"});
    db.advance_clock(1s);
    queue("b", {"four", "five"});
    for (const char* name : {"one", "two", "three", "four", "five"}) {
        EXPECT_EQ(taken(name).attempt, 1);
    }
}

TEST_P(ProviderActivities, ATakenActivityIsHiddenAndStaysUntilItEnds) {
    HOLDFAST_CHECK("runtime worker_peek_lock_semantics");
    HOLDFAST_CHECK("runtime lost_lock_token_handling");
    queue("a", {"charge"});
    const auto first = taken("charge", {.lease = 10s});
    EXPECT_FALSE(take());
    EXPECT_EQ(rows("flow_activities", "a"), 1);

    db.advance_clock(10s);  // The worker was killed, and its token is lost with it.
    const auto second = taken("charge");
    EXPECT_NE(second.token, first.token);
    EXPECT_EQ(second.task.key, first.task.key);
    EXPECT_TRUE(end(second));
    EXPECT_EQ(rows("flow_activities", "a"), 0);
}

TEST_P(ProviderActivities, AnEndRemovesTheActivityAndSendsItsAnswer) {
    HOLDFAST_CHECK("runtime worker_ack_atomicity");
    queue("a", {"charge"});
    const auto held = taken("charge");
    EXPECT_EQ(held.task.input, text("input of charge"));
    EXPECT_EQ(held.task.workflow, "order");
    EXPECT_TRUE(idle());

    EXPECT_TRUE(end(held));
    EXPECT_FALSE(end(held)) << "an activity ends once";
    const auto next = claimed("a");
    ASSERT_EQ(next.messages.size(), 1U);
    EXPECT_EQ(next.messages[0].message.execution, 1U);
    EXPECT_EQ(next.messages[0].message.body, MessageBody(ActivityAnswer{2, text("result")}));
    EXPECT_FALSE(take());
}

TEST_P(ProviderActivities, ADelayedActivityDoesNotHideTheNextOne) {
    HOLDFAST_CHECK("runtime worker_delayed_visibility_skips_future_items");
    queue("a", {"first", "second"});
    EXPECT_TRUE(abandon(taken("first"), 1h));
    EXPECT_EQ(taken("second").attempt, 1);
    EXPECT_FALSE(take());
    db.advance_clock(1h);
    EXPECT_EQ(take_all(), (std::vector<std::string>{"second", "first"}))
        << "in the order they became free";
}

TEST_P(ProviderActivities, ALaterAttemptFindsWhatTheHeartbeatLeft) {
    queue("a", {"charge"});
    const auto first = taken("charge", {.lease = 10s});
    EXPECT_FALSE(first.heartbeat);
    EXPECT_TRUE(provider.heartbeat(first.task.key, first.token, text("half")));
    db.advance_clock(10s);
    EXPECT_FALSE(provider.heartbeat(first.task.key, first.token, text("more")));
    EXPECT_EQ(taken("charge").heartbeat, text("half"));
}

// A runtime that runs what it schedules saves the trip through the queue.
TEST_P(ProviderActivities, ATurnMayClaimWhatItSchedules) {
    const Uuid token = Uuid::v4();
    begin("a", [&](ClaimedTurn& first) {
        first.schedules(2, "charge").schedules(3, "ship");
        first.commit.activities[0].claim = token;
        first.commit.activities[0].claim_lease = 10s;
    });
    EXPECT_EQ(take_all(), std::vector<std::string>{"ship"});
    const ActivityEnd ended{{"a", 1, 2}, token, ActivityAnswer{2, text("result")}};
    EXPECT_EQ(provider.end_activities(std::span(&ended, 1)), std::vector{true});
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

TEST_P(ProviderActivities, AClaimThatCameWithTheTurnRunsOutLikeAnyOther) {
    begin("a", [&](ClaimedTurn& first) {
        first.schedules(2, "charge");
        first.commit.activities[0].claim = Uuid::v4();
        first.commit.activities[0].claim_lease = 10s;
    });
    EXPECT_FALSE(take());
    db.advance_clock(10s);
    EXPECT_EQ(taken("charge").task.name, "charge");
}

TEST_P(ProviderActivities, ATurnThatReadAnAnswerEndsItsActivity) {
    queue("a", {"charge"});
    const auto held = taken("charge");
    signal("a");
    ClaimedTurn next = turn(claimed("a")).records(3, ActivityCompleted{text("result")}, 2);
    next.commit.finished.push_back({held.task.key, held.token, {}});
    EXPECT_EQ(commit(next), Committed::yes);
    EXPECT_EQ(rows("flow_activities", "a"), 0);
    EXPECT_TRUE(idle()) << "the answer was read, not sent";
}

// Another worker may run it now, so its answer must not be believed.
TEST_P(ProviderActivities, ATurnThatReadTheAnswerOfALostActivityIsNotCommitted) {
    queue("a", {"charge"});
    const auto lost = taken("charge", {.lease = 10s});
    db.advance_clock(10s);
    (void)taken("charge");
    signal("a");
    const auto claim = claimed("a");
    ClaimedTurn next = turn(claim).records(3, ActivityCompleted{text("result")}, 2);
    next.commit.finished.push_back({lost.task.key, lost.token, {}});
    EXPECT_NE(commit(next), Committed::yes);
    EXPECT_EQ(history("a"), (std::vector<EventId>{1, 2}));
    EXPECT_EQ(rows("flow_activities", "a"), 1);
}

TEST_P(ProviderActivities, ATransactionalActivityWritesWithItsAnswerOrNotAtAll) {
    static constexpr sql::Statement pay{"story.pay", "UPDATE accounts SET n = n + 1 WHERE id = $1"};
    db.execute(
        "CREATE TABLE accounts (id {bigint} NOT NULL PRIMARY KEY, n {bigint} NOT NULL) {strict};"
        "INSERT INTO accounts VALUES (1, 0)");
    queue("a", {"charge"});
    const auto first = taken("charge", {.lease = 10s});
    const auto body = [](sql::Tx& tx) {
        tx.exec(pay, 1);
        return ActivityAnswer{2, text("paid")};
    };
    db.advance_clock(10s);
    const auto second = taken("charge");
    EXPECT_FALSE(provider.end_activity_in_transaction(first.task.key, first.token, body));
    EXPECT_EQ(db.number("SELECT n FROM accounts"), 0) << "a late worker pays nothing";
    EXPECT_TRUE(provider.end_activity_in_transaction(second.task.key, second.token, body));
    EXPECT_FALSE(provider.end_activity_in_transaction(second.task.key, second.token, body));
    EXPECT_EQ(db.number("SELECT n FROM accounts"), 1);
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderActivities, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

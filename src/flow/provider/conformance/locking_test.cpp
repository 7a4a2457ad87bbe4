// Claims, leases and tokens of instances. A turn takes effect once and as a whole.
#include <set>

#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

class ProviderLocking : public ProviderStory {};

// --- a turn is one ------------------------------------------------------------------------------

TEST_P(ProviderLocking, ATurnWithAnEventThatIsTakenChangesNothingAndKeepsItsClaim) {
    HOLDFAST_CHECK("runtime atomicity_failure_rollback");
    HOLDFAST_CHECK("runtime duplicate_event_id_rejection");
    begin("a");
    signal("a");
    const auto claim = claimed("a");

    ClaimedTurn bad =
        turn(claim).schedules(2, "charge").sets("k", "v").says("busy").sends("b", SignalMessage{});
    bad.commit.events.push_back({.id = 1, .body = WorkflowResumed{}});
    EXPECT_EQ(commit(bad), Committed::rejected);

    EXPECT_EQ(history("a"), std::vector<EventId>{1});
    EXPECT_FALSE(take()) << "an activity of a refused turn must not run";
    EXPECT_TRUE(keys("a").empty());
    EXPECT_EQ(info("a").status_version, 0);
    EXPECT_EQ(provider.stats().early_mailboxes, 0);
    EXPECT_TRUE(idle()) << "a refused turn must not free its instance";
    EXPECT_EQ(commit(turn(claim).records(2, WorkflowResumed{})), Committed::yes);
}

TEST_P(ProviderLocking, AnEventIdMustNotBeZeroTakenOrOutOfOrder) {
    HOLDFAST_CHECK("runtime duplicate_event_id_rejection");
    begin("a", [](ClaimedTurn& first) { first.schedules(2, "charge"); });
    signal("a");
    const auto claim = claimed("a");

    for (const auto& ids : std::vector<std::vector<EventId>>{{0}, {1}, {2}, {3, 3}, {4, 3}}) {
        ClaimedTurn bad = turn(claim);
        for (const EventId id : ids) {
            bad.records(id, WorkflowResumed{});
        }
        EXPECT_EQ(commit(bad), Committed::rejected) << testing::PrintToString(ids);
        EXPECT_EQ(history("a"), (std::vector<EventId>{1, 2}));
    }
    EXPECT_EQ(commit(turn(claim).records(5, WorkflowResumed{})), Committed::yes) << "gaps are fine";
    EXPECT_EQ(history("a"), (std::vector<EventId>{1, 2, 5}));
}

TEST_P(ProviderLocking, EverythingATurnDidAppearsTogether) {
    HOLDFAST_CHECK("runtime ack_orchestration_item_atomic");
    HOLDFAST_CHECK("runtime multi_operation_atomic_ack");
    start("b");
    (void)claimed("b", 1h);
    begin("a", [](ClaimedTurn& first) {
        first.schedules(2, "one").schedules(3, "two").schedules(4, "three");
        first.records(5, SignalAwaited{"go"});
        first.sends("a", SignalMessage{"go", text("self")});
        first.sends("b", SignalMessage{"go", text("other")});
    });

    EXPECT_EQ(history("a"), (std::vector<EventId>{1, 2, 3, 4, 5}));
    EXPECT_EQ(take_all(), (std::vector<std::string>{"one", "two", "three"}));
    EXPECT_EQ(claimed("a").messages.size(), 1U);
    EXPECT_EQ(rows("flow_messages", "b"), 2) << "its start, and what a sent";
    EXPECT_EQ(info("a").status, Status::running);
    EXPECT_EQ(info("a").last_event, 5U);
}

TEST_P(ProviderLocking, EachTurnOfABatchCommitsOrNotByItself) {
    for (const char* id : {"a", "b", "c"}) {
        start(id);
    }
    auto claims = provider.claim_instances({.count = 3});
    ASSERT_EQ(claims.size(), 3U);
    std::vector<TurnCommit> turns{
        turn(claims[0]).commit, turn(claims[1]).commit, turn(claims[2]).commit};
    turns[0].token = Uuid::v4();
    turns[1].events.front().id = 0;

    EXPECT_EQ(provider.commit_turns(turns),
              (std::vector{Committed::lost, Committed::rejected, Committed::yes}));
    EXPECT_TRUE(history(turns[0].instance).empty());
    EXPECT_TRUE(history(turns[1].instance).empty());
    EXPECT_EQ(history(turns[2].instance), std::vector<EventId>{1});
    EXPECT_TRUE(provider.commit_turns({}).empty());
}

TEST_P(ProviderLocking, OnlyTheRightTokenEndsAClaim) {
    HOLDFAST_CHECK("runtime ack_orchestration_item_error_handling");
    HOLDFAST_CHECK("runtime abandon_orchestration_item_error_handling");
    HOLDFAST_CHECK("runtime lock_released_only_on_successful_ack");
    HOLDFAST_CHECK("runtime invalid_lock_token_on_ack");
    HOLDFAST_CHECK("runtime invalid_lock_token_rejection");
    start("a");
    const auto claim = claimed("a");

    auto forged = claim;
    forged.token = Uuid::v4();
    EXPECT_EQ(commit(turn(forged)), Committed::lost);
    EXPECT_FALSE(provider.abandon_instance(forged, 0ms, false));
    EXPECT_FALSE(provider.renew_instance("a", forged.token, 1h));
    EXPECT_TRUE(history("a").empty());
    EXPECT_TRUE(idle()) << "a forged token must not free the instance";

    EXPECT_TRUE(provider.renew_instance("a", claim.token, 5s)) << "the real claim is untouched";
    db.advance_clock(5s);
    EXPECT_EQ(claimed("a").attempt, 2);
}

TEST_P(ProviderLocking, ATokenCommitsOnce) {
    HOLDFAST_CHECK("runtime concurrent_ack_prevention");
    start("a");
    const auto claim = claimed("a");
    const ClaimedTurn first = turn(claim).schedules(2, "charge");
    const ClaimedTurn second = turn(claim).schedules(2, "charge");

    EXPECT_EQ(commit(first), Committed::yes);
    EXPECT_EQ(commit(second), Committed::lost);
    EXPECT_EQ(take_all(), std::vector<std::string>{"charge"});
    EXPECT_EQ(history("a"), (std::vector<EventId>{1, 2}));
}

TEST_P(ProviderLocking, WhoeverIsUnknownHasNothingAndIsNoError) {
    HOLDFAST_CHECK("runtime fetch_orchestration_item_no_work");
    HOLDFAST_CHECK("runtime missing_instance_metadata");
    EXPECT_TRUE(idle());
    EXPECT_FALSE(take());
    const auto loaded = provider.load_history("nobody", 1);
    EXPECT_TRUE(loaded.events.empty());
    EXPECT_EQ(loaded.error, "");
    EXPECT_FALSE(provider.info("nobody"));
    EXPECT_FALSE(provider.resume("nobody"));
    EXPECT_TRUE(provider.executions("nobody").empty());
    EXPECT_TRUE(provider.children("nobody").empty());
    EXPECT_TRUE(provider.tree("nobody").empty());
    EXPECT_FALSE(provider.peek_instance("nobody", Uuid::v4()));
    EXPECT_FALSE(provider.take_reply("nobody's request"));
}

// --- leases -------------------------------------------------------------------------------------

TEST_P(ProviderLocking, AClaimedInstanceIsNobodyElsesUntilItsLeaseRunsOut) {
    HOLDFAST_CHECK("runtime exclusive_instance_lock");
    HOLDFAST_CHECK("runtime lock_expires_after_timeout");
    start("a");
    const auto ann = claimed("a", 5s);
    EXPECT_TRUE(idle());
    db.advance_clock(4s);
    EXPECT_TRUE(idle());

    db.advance_clock(1s);
    const auto bob = claimed("a", 5s);
    EXPECT_EQ(bob.messages.size(), 1U) << "mail that a dead claim had read is there again";
    EXPECT_EQ(commit(turn(ann)), Committed::lost) << "Ann wakes, sure of herself";
    EXPECT_FALSE(provider.renew_instance("a", ann.token, 1h));
    EXPECT_FALSE(provider.abandon_instance(ann, 0ms, false));
    EXPECT_EQ(commit(turn(bob)), Committed::yes);
}

// Even without a rival, a lease that has run out does not allow a write.
TEST_P(ProviderLocking, ATurnAfterTheLeaseIsLostEvenWithoutARival) {
    HOLDFAST_CHECK("runtime lock_expiration_during_ack");
    start("a");
    const auto late = claimed("a", 5s);
    db.advance_clock(5s);
    EXPECT_EQ(commit(turn(late).schedules(2, "charge")), Committed::lost);
    EXPECT_TRUE(history("a").empty());
    EXPECT_FALSE(take());
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

TEST_P(ProviderLocking, ALapsedLeaseIsNotRenewed) {
    HOLDFAST_CHECK("runtime orchestration_lock_renewal_after_expiration");
    start("a");
    const auto claim = claimed("a", 5s);
    db.advance_clock(3s);
    EXPECT_TRUE(provider.renew_instance("a", claim.token, 5s));
    db.advance_clock(3s);
    EXPECT_TRUE(idle()) << "the renewed lease holds";
    db.advance_clock(2s);
    EXPECT_FALSE(provider.renew_instance("a", claim.token, 5s));
    EXPECT_EQ(claimed("a").attempt, 2);
}

TEST_P(ProviderLocking, EveryClaimHasATokenOfItsOwn) {
    HOLDFAST_CHECK("runtime lock_token_uniqueness");
    for (const char* id : {"a", "b", "c"}) {
        start(id);
    }
    std::set<Uuid> tokens;
    for (int round = 0; round < 3; ++round) {
        for (const auto& claim : provider.claim_instances({.count = 10})) {
            EXPECT_NE(claim.token, Uuid{});
            tokens.insert(claim.token);
        }
        db.advance_clock(5s);
    }
    EXPECT_EQ(tokens.size(), 9U);
}

TEST_P(ProviderLocking, AnAbandonedClaimIsFreeAtOnce) {
    HOLDFAST_CHECK("runtime abandon_orchestration_item");
    HOLDFAST_CHECK("runtime abandon_releases_lock_immediately");
    start("a");
    const auto claim = claimed("a");
    EXPECT_TRUE(provider.abandon_instance(claim, 0ms, false));
    EXPECT_EQ(claimed("a").attempt, 2);
    EXPECT_EQ(commit(turn(claim)), Committed::lost);
}

TEST_P(ProviderLocking, AnAbandonedClaimMayComeBackLater) {
    HOLDFAST_CHECK("runtime abandon_orchestration_item_with_delay");
    start("a");
    EXPECT_TRUE(provider.abandon_instance(claimed("a"), 10s, false));
    EXPECT_TRUE(idle());
    db.advance_clock(10s);
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

TEST_P(ProviderLocking, OneClaimDoesNotStopAnother) {
    HOLDFAST_CHECK("runtime cross_instance_lock_isolation");
    start("a");
    const auto ann = claimed("a");
    start("b");
    const auto bob = claimed("b");
    EXPECT_EQ(commit(turn(bob)), Committed::yes);
    EXPECT_EQ(commit(turn(ann)), Committed::yes);
}

TEST_P(ProviderLocking, ClaimsComeOldestFirstAndAsManyAsAsked) {
    for (const char* id : {"a", "b", "c"}) {
        start(id);
        db.advance_clock(1s);
    }
    const auto two = provider.claim_instances({.count = 2});
    ASSERT_EQ(two.size(), 2U);
    EXPECT_EQ(two[0].instance, "a");
    EXPECT_EQ(two[1].instance, "b");
    EXPECT_EQ(claim_all(), std::vector<std::string>{"c"});
}

// --- mail that comes while a turn runs ----------------------------------------------------------

// Mail is consumed by its position, not by a stamp of the claim: what was not there when the claim
// was made has a position that no turn names.
TEST_P(ProviderLocking, MailThatCameAfterTheClaimSurvivesItsTurn) {
    HOLDFAST_CHECK("runtime message_tagging_during_lock");
    HOLDFAST_CHECK("runtime ack_only_affects_locked_messages");
    HOLDFAST_CHECK("runtime lock_renewal_on_ack");
    begin("a");
    signal("a", "first");
    const auto claim = claimed("a", 1h);
    signal("a", "second");
    signal("a", "third");
    EXPECT_TRUE(idle());

    EXPECT_EQ(commit(turn(claim)), Committed::yes);
    const auto next = claimed("a");  // At once, though the lease was long.
    ASSERT_EQ(next.messages.size(), 2U);
    EXPECT_EQ(std::get<SignalMessage>(next.messages[0].message.body).name, "second");
    EXPECT_EQ(std::get<SignalMessage>(next.messages[1].message.body).name, "third");
    EXPECT_EQ(next.attempt, 1) << "counts do not carry over between turns";
    EXPECT_EQ(commit(turn(next)), Committed::yes);
    EXPECT_TRUE(idle());
}

TEST_P(ProviderLocking, MailForAClaimedInstanceWaitsAndComesWithTheNextClaim) {
    HOLDFAST_CHECK("runtime completions_arriving_during_lock_blocked");
    start("a");
    (void)claimed("a", 5s);
    for (const EventId event : {EventId{2}, EventId{3}, EventId{4}}) {
        provider.send({"a", {.execution = 1, .body = ActivityAnswer{event, text("done")}}});
    }
    EXPECT_TRUE(idle());

    db.advance_clock(5s);
    const auto next = claimed("a");
    ASSERT_EQ(next.messages.size(), 4U);
    EXPECT_TRUE(std::holds_alternative<StartMessage>(next.messages[0].message.body));
    EXPECT_EQ(std::get<ActivityAnswer>(next.messages[3].message.body).event, 4U);
}

TEST_P(ProviderLocking, AbandoningTouchesOnlyTheMailThatWasClaimed) {
    HOLDFAST_CHECK("runtime +abandon_touches_only_its_own_mail");
    begin("a");
    signal("a", "claimed");
    const auto claim = claimed("a");
    signal("a", "later");

    EXPECT_TRUE(provider.abandon_instance(claim, 10s, false));
    const auto next = claimed("a");
    ASSERT_EQ(next.messages.size(), 1U) << "what came later was never delayed";
    EXPECT_EQ(std::get<SignalMessage>(next.messages[0].message.body).name, "later");
    EXPECT_EQ(next.attempt, 1);
    EXPECT_EQ(commit(turn(next)), Committed::yes);

    db.advance_clock(10s);
    EXPECT_EQ(claimed("a").attempt, 2);
}

// --- a runtime that keeps its instances ---------------------------------------------------------

TEST_P(ProviderLocking, WhoHoldsTheTokenReadsMailWithoutAClaim) {
    const Started started = start("a");
    ASSERT_TRUE(started.created);
    const auto mail = peeked("a", started.token);
    ASSERT_EQ(mail.messages.size(), 1U);
    ClaimedTurn first = turn(mail).schedules(2, "charge");
    first.commit.leased = false;
    EXPECT_EQ(commit(first), Committed::yes);

    EXPECT_FALSE(provider.peek_instance("a", started.token)) << "the commit left another token";
    EXPECT_TRUE(provider.peek_instance("a", first.commit.next_token));
    signal("a");
    const auto rival = claimed("a");
    EXPECT_FALSE(provider.peek_instance("a", first.commit.next_token)) << "it is claimed now";
    EXPECT_FALSE(provider.peek_instance("a", rival.token)) << "somebody holds a lease";
}

TEST_P(ProviderLocking, ATurnWithoutALeaseIsLostToAClaim) {
    const Started started = start("a");
    ClaimedTurn slow = turn(peeked("a", started.token));
    slow.commit.leased = false;

    const auto rival = claimed("a");
    EXPECT_EQ(commit(slow), Committed::lost);
    EXPECT_EQ(commit(turn(rival)), Committed::yes);
    EXPECT_EQ(commit(slow), Committed::lost);
    EXPECT_EQ(history("a"), std::vector<EventId>{1});
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderLocking, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

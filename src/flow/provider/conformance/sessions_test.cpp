// Sessions: activities that belong together go to one worker while it holds their session. A
// session only steers who may take; whether an end counts is decided by the activity's own lease.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

using Names = std::vector<std::string>;

class ProviderSessions : public ProviderStory {
protected:
    static ClaimActivities by(const std::string& owner,
                              milliseconds session_lease = 30s,
                              milliseconds lease = 30s) {
        return {.lease = lease, .session = SessionClaim{.owner = owner, .lease = session_lease}};
    }
    void queue_session(const std::string& instance,
                       const Names& names,
                       const std::string& session = "s") {
        queue(instance, names, {.session = session});
    }
    int renew_sessions_of(const std::string& owner,
                          milliseconds lease = 30s,
                          milliseconds idle = 1h) {
        return provider.renew_sessions(std::span(&owner, 1), lease, idle);
    }
};

// --- who may take -------------------------------------------------------------------------------

TEST_P(ProviderSessions, WithoutASessionAnActivityIsAnybodys) {
    HOLDFAST_CHECK("runtime non_session_items_fetchable_by_any_worker");
    HOLDFAST_CHECK("runtime non_session_items_returned_with_session_config");
    queue("a", {"one", "two", "three"});
    EXPECT_EQ(taken("one", by("ann")).task.session, std::nullopt);
    EXPECT_EQ(taken("two", by("bob")).attempt, 1);
    EXPECT_EQ(taken("three").attempt, 1);
}

TEST_P(ProviderSessions, WhoTakesTheFirstOfASessionOwnsIt) {
    HOLDFAST_CHECK("runtime session_item_claimable_when_no_session");
    HOLDFAST_CHECK("runtime session_affinity_same_worker");
    HOLDFAST_CHECK("runtime session_affinity_blocks_other_worker");
    queue_session("a", {"one", "two", "three"});
    EXPECT_EQ(taken("one", by("ann")).task.session, "s");
    EXPECT_FALSE(take(by("bob")));
    EXPECT_EQ(taken("two", by("ann")).attempt, 1);
    EXPECT_FALSE(take(by("bob")));
    EXPECT_EQ(taken("three", by("ann")).attempt, 1);
}

TEST_P(ProviderSessions, SessionsHaveOwnersOfTheirOwn) {
    HOLDFAST_CHECK("runtime different_sessions_different_workers");
    queue_session("a", {"a1", "a2"}, "s");
    queue_session("b", {"b1", "b2"}, "t");
    EXPECT_EQ(taken("a1", by("ann")).attempt, 1);
    EXPECT_EQ(taken("b1", by("bob")).attempt, 1) << "past what is Ann's";
    EXPECT_EQ(take_all(by("bob")), Names{"b2"});
    EXPECT_EQ(take_all(by("ann")), Names{"a2"});
}

// What is left is free for others: a claim does not own what it did not take.
TEST_P(ProviderSessions, AClaimTakesNoMoreSessionsThanItAsksFor) {
    queue_session("a", {"a1", "a2"}, "s");
    queue_session("b", {"b1"}, "t");
    queue("c", {"free"});
    ClaimActivities one_session = by("ann");
    one_session.session->count = 1;
    const Names taken_names = take_all(one_session);
    const bool of_s = taken_names == Names{"a1", "a2", "free"};
    EXPECT_TRUE(of_s || taken_names == (Names{"b1", "free"}))
        << testing::PrintToString(taken_names);
    EXPECT_EQ(take_all(by("bob")), (of_s ? Names{"b1"} : Names{"a1", "a2"}));
}

TEST_P(ProviderSessions, BothKindsAreServed) {
    HOLDFAST_CHECK("runtime mixed_session_and_non_session_items");
    HOLDFAST_CHECK("runtime some_session_returns_all_items");
    queue_session("a", {"of the session"});
    queue("b", {"free"});
    EXPECT_EQ(take_all(by("ann")), (Names{"of the session", "free"}));
}

TEST_P(ProviderSessions, AWorkerWithoutSessionsLeavesThemAlone) {
    HOLDFAST_CHECK("runtime none_session_skips_session_items");
    queue_session("a", {"of the session"});
    queue("b", {"free"});
    EXPECT_EQ(take_all(), Names{"free"});
    EXPECT_EQ(take_all(by("ann")), Names{"of the session"});
}

TEST_P(ProviderSessions, ASessionIsServedInOrder) {
    HOLDFAST_CHECK("runtime session_items_processed_in_order");
    queue_session("a", {"one", "two", "three"});
    for (const char* name : {"one", "two", "three"}) {
        EXPECT_TRUE(end(taken(name, by("ann"))));
    }
}

// Where rivals do not wait for each other, they choose at random among what they see; the order of
// a session is not theirs to choose.
TEST_P(ProviderSessions, AlsoWhereClaimsAreSpread) {
    SqlProviderOptions options = quick();
    options.spare_candidates = 32;
    SqlProvider spread(db, options);
    Names free;
    Names own;
    for (char letter = 'a'; letter <= 'l'; ++letter) {
        free.emplace_back(1, letter);
        own.emplace_back(1, static_cast<char>(letter - 'a' + 'A'));
    }
    queue("free", free);
    queue_session("own", own);
    Names took_free;
    Names took_own;
    for (std::size_t i = 0; i < free.size() + own.size(); ++i) {
        const auto one = spread.claim_activities(by("ann"));
        ASSERT_EQ(one.size(), 1U);
        (one[0].task.session ? took_own : took_free).push_back(one[0].task.name);
    }
    EXPECT_EQ(took_own, own);
    if (GetParam().backend == test::Backend::dsql) {
        EXPECT_NE(took_free, free) << "by chance once in 479,001,600 times";
    } else {
        EXPECT_EQ(took_free, free);
    }
}

TEST_P(ProviderSessions, WhoeverBearsTheNameIsTheOwner) {
    HOLDFAST_CHECK("runtime shared_worker_id_any_caller_can_fetch_owned_session");
    queue_session("a", {"one", "two"});
    (void)taken("one", by("house"));
    sql::Database elsewhere(db.url(), db.options());
    SqlProvider other(elsewhere);
    EXPECT_TRUE(other.claim_activities(by("stranger")).empty());
    const auto second = other.claim_activities(by("house"));
    ASSERT_EQ(second.size(), 1U);
    EXPECT_EQ(second[0].task.name, "two");
}

// --- leases of sessions -------------------------------------------------------------------------

TEST_P(ProviderSessions, ALapsedSessionIsAnybodysAgain) {
    HOLDFAST_CHECK("runtime session_claimable_after_lock_expiry");
    HOLDFAST_CHECK("runtime session_takeover_after_lock_expiry");
    queue_session("a", {"one", "two", "three"});
    (void)taken("one", by("ann", 10s, 1h));
    db.advance_clock(9s);
    EXPECT_FALSE(take(by("bob")));
    db.advance_clock(1s);
    EXPECT_EQ(taken("two", by("bob")).attempt, 1);
    EXPECT_FALSE(take(by("ann"))) << "it is Bob's now";
}

TEST_P(ProviderSessions, AnOwnerMayTakeItsLapsedSessionAgain) {
    HOLDFAST_CHECK("runtime original_worker_reclaims_expired_session");
    HOLDFAST_CHECK("runtime session_lock_expires_same_worker_reacquires");
    queue_session("a", {"one", "two", "three"});
    (void)taken("one", by("ann", 10s, 1h));
    db.advance_clock(10s);
    EXPECT_EQ(taken("two", by("ann", 10s)).attempt, 1);
    EXPECT_FALSE(take(by("bob"))) << "hers again";
}

TEST_P(ProviderSessions, ARenewedSessionLastsLonger) {
    HOLDFAST_CHECK("runtime renew_session_lock_active");
    HOLDFAST_CHECK("runtime session_lock_renewal_extends_past_original_timeout");
    queue_session("a", {"one", "two"});
    (void)taken("one", by("ann", 10s, 1h));
    db.advance_clock(6s);
    EXPECT_EQ(renew_sessions_of("ann", 10s), 1);
    db.advance_clock(6s);
    EXPECT_FALSE(take(by("bob"))) << "past the first lease";
    db.advance_clock(4s);
    EXPECT_TRUE(take(by("bob")));
}

TEST_P(ProviderSessions, AnIdleSessionIsNotRenewed) {
    HOLDFAST_CHECK("runtime renew_session_lock_skips_idle");
    queue_session("a", {"one", "two"});
    (void)taken("one", by("ann", 30s, 1h));
    db.advance_clock(20s);
    EXPECT_EQ(renew_sessions_of("ann", 30s, 10s), 0);
    db.advance_clock(10s);
    EXPECT_TRUE(take(by("bob")));
}

TEST_P(ProviderSessions, NobodyRenewsWhatIsNotTheirs) {
    HOLDFAST_CHECK("runtime renew_session_lock_no_sessions");
    HOLDFAST_CHECK("runtime renew_session_lock_after_expiry_returns_zero");
    EXPECT_EQ(provider.renew_sessions({}, 30s, 1h), 0);
    EXPECT_EQ(renew_sessions_of("ann"), 0);
    queue_session("a", {"one"});
    (void)taken("one", by("ann", 10s));
    EXPECT_EQ(renew_sessions_of("bob"), 0);
    db.advance_clock(10s);
    EXPECT_EQ(renew_sessions_of("ann"), 0) << "a lapsed session stays lost";
}

TEST_P(ProviderSessions, OneCallRenewsForSeveralOwners) {
    queue_session("a", {"one"}, "s");
    queue_session("b", {"two"}, "t");
    queue_session("c", {"three"}, "u");
    (void)taken("one", by("ann"));
    (void)taken("two", by("ann"));
    (void)taken("three", by("bob"));
    EXPECT_EQ(provider.renew_sessions(Names{"ann", "bob", "carl"}, 30s, 1h), 3);
}

TEST_P(ProviderSessions, EndingAnActivityKeepsItsSessionAwake) {
    HOLDFAST_CHECK("runtime ack_updates_session_last_activity");
    queue_session("a", {"one"});
    const auto held = taken("one", by("ann", 1h, 1h));
    db.advance_clock(20s);
    EXPECT_EQ(renew_sessions_of("ann", 1h, 10s), 0) << "asleep";
    EXPECT_TRUE(end(held));
    EXPECT_EQ(renew_sessions_of("ann", 1h, 10s), 1);
}

TEST_P(ProviderSessions, RenewingAnActivityKeepsItsSessionAwake) {
    HOLDFAST_CHECK("runtime renew_work_item_updates_session_last_activity");
    queue_session("a", {"one"});
    const auto held = taken("one", by("ann", 1h, 1h));
    db.advance_clock(20s);
    EXPECT_EQ(renew_sessions_of("ann", 1h, 10s), 0) << "asleep";
    EXPECT_TRUE(renew(held, 1h));
    EXPECT_EQ(renew_sessions_of("ann", 1h, 10s), 1);
}

// --- sweeping -----------------------------------------------------------------------------------

TEST_P(ProviderSessions, ASessionIsSweptWhenItLapsedAndNothingWaits) {
    HOLDFAST_CHECK("runtime cleanup_removes_expired_no_items");
    HOLDFAST_CHECK("runtime cleanup_keeps_active_sessions");
    HOLDFAST_CHECK("runtime cleanup_then_new_item_recreates_session");
    queue_session("a", {"one"});
    EXPECT_TRUE(end_with(taken("one", by("ann", 10s)), std::nullopt));
    EXPECT_EQ(provider.sweep_sessions(), 0) << "it is still owned";
    db.advance_clock(10s);
    EXPECT_EQ(provider.sweep_sessions(), 1);
    EXPECT_EQ(provider.sweep_sessions(), 0);

    queue_session("b", {"two", "three"});
    EXPECT_EQ(taken("two", by("bob")).attempt, 1);
    EXPECT_FALSE(take(by("ann"))) << "a new session, with a new owner";
}

TEST_P(ProviderSessions, ALapsedSessionStaysWhileSomethingWaits) {
    HOLDFAST_CHECK("runtime cleanup_keeps_sessions_with_pending_items");
    queue_session("a", {"one", "two"});
    EXPECT_TRUE(end(taken("one", by("ann", 10s))));
    db.advance_clock(10s);
    EXPECT_EQ(provider.sweep_sessions(), 0);
    EXPECT_TRUE(end(taken("two", by("bob", 10s))));
    db.advance_clock(10s);
    EXPECT_EQ(provider.sweep_sessions(), 1);
}

// --- two kinds of leases ------------------------------------------------------------------------

TEST_P(ProviderSessions, WhatIsGivenBackStaysInItsSession) {
    HOLDFAST_CHECK("runtime abandoned_session_item_retryable");
    HOLDFAST_CHECK("runtime abandoned_session_item_ignore_attempt");
    queue_session("a", {"one"});
    EXPECT_TRUE(abandon(taken("one", by("ann"))));
    EXPECT_FALSE(take(by("bob")));
    const auto second = taken("one", by("ann"));
    EXPECT_EQ(second.attempt, 2);
    EXPECT_TRUE(abandon(second, 0ms, true));
    EXPECT_EQ(taken("one", by("ann")).attempt, 2) << "that one did not count";
}

TEST_P(ProviderSessions, ALapsedActivityComesBackToTheOwner) {
    HOLDFAST_CHECK("runtime activity_lock_expires_session_lock_valid_same_worker_refetches");
    queue_session("a", {"one"});
    (void)taken("one", by("ann", 1h, 10s));
    db.advance_clock(10s);
    EXPECT_FALSE(take(by("bob")));
    EXPECT_EQ(taken("one", by("ann")).attempt, 2);
}

// Ann loses the session to Bob while she still runs one of its activities, and then gives it back.
TEST_P(ProviderSessions, ARedeliveryGoesToTheNewOwner) {
    HOLDFAST_CHECK("runtime session_lock_expires_new_owner_gets_redelivery");
    queue_session("a", {"one", "two"});
    const auto held = taken("one", by("ann", 10s, 1h));
    db.advance_clock(10s);
    EXPECT_EQ(taken("two", by("bob", 1h, 1h)).attempt, 1);
    EXPECT_TRUE(abandon(held));
    EXPECT_FALSE(take(by("ann")));
    EXPECT_EQ(taken("one", by("bob")).attempt, 2);
}

TEST_P(ProviderSessions, WhenBothLeasesLapseAnybodyMayTakeIt) {
    HOLDFAST_CHECK("runtime both_locks_expire_different_worker_claims");
    queue_session("a", {"one"});
    const auto dead = taken("one", by("ann", 10s, 10s));
    db.advance_clock(10s);
    EXPECT_EQ(taken("one", by("bob")).attempt, 2);
    EXPECT_FALSE(end(dead));
}

TEST_P(ProviderSessions, AnEndDoesNotNeedTheSession) {
    HOLDFAST_CHECK("runtime session_lock_expires_activity_lock_valid_ack_succeeds");
    queue_session("a", {"one", "two"});
    const auto held = taken("one", by("ann", 10s, 1h));
    db.advance_clock(10s);
    (void)taken("two", by("bob"));
    EXPECT_TRUE(end(held));
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderSessions, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

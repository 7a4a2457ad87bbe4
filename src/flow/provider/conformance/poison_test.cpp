// Attempts are counted, so that what can never succeed can be ended. The provider counts; the
// runtime decides how much is too much.
#include <algorithm>

#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

class ProviderPoison : public ProviderStory {};

TEST_P(ProviderPoison, EveryClaimOfAnInstanceCounts) {
    HOLDFAST_CHECK("runtime orchestration_attempt_count_starts_at_one");
    HOLDFAST_CHECK("runtime orchestration_attempt_count_increments_on_refetch");
    start("a");
    for (int attempt = 1; attempt <= 3; ++attempt) {
        const auto claim = claimed("a");
        EXPECT_EQ(claim.attempt, attempt);
        EXPECT_EQ(claim.messages.at(0).attempt, attempt);
        EXPECT_TRUE(provider.abandon_instance(claim, 0ms, false));
    }
    (void)claimed("a", 5s);
    db.advance_clock(5s);  // It was not given back; it still counts.
    EXPECT_EQ(claimed("a").attempt, 5);
}

TEST_P(ProviderPoison, EveryClaimOfAnActivityCounts) {
    HOLDFAST_CHECK("runtime worker_attempt_count_starts_at_one");
    HOLDFAST_CHECK("runtime worker_attempt_count_increments_on_lock_expiry");
    queue("a", {"charge"});
    EXPECT_EQ(taken("charge", {.lease = 10s}).attempt, 1);
    db.advance_clock(10s);
    EXPECT_EQ(taken("charge", {.lease = 10s}).attempt, 2);
}

TEST_P(ProviderPoison, EachHasACountOfItsOwn) {
    HOLDFAST_CHECK("runtime attempt_count_is_per_message");
    queue("a", {"bad", "good"});
    const auto both = provider.claim_activities({.count = 2});
    ASSERT_EQ(both.size(), 2U);
    EXPECT_TRUE(abandon(both[0]));
    for (int attempt = 2; attempt < 5; ++attempt) {
        const auto bad = taken("bad");
        EXPECT_EQ(bad.attempt, attempt);
        EXPECT_TRUE(abandon(bad));
    }
    EXPECT_TRUE(abandon(both[1]));
    EXPECT_EQ(taken("bad").attempt, 5);
    EXPECT_EQ(taken("good").attempt, 2);
}

TEST_P(ProviderPoison, AnAttemptThatIsIgnoredDoesNotCount) {
    HOLDFAST_CHECK("runtime abandon_work_item_ignore_attempt_decrements");
    HOLDFAST_CHECK("runtime abandon_orchestration_item_ignore_attempt_decrements");
    queue("a", {"charge"});
    for (int i = 0; i < 3; ++i) {
        const auto held = taken("charge");
        EXPECT_EQ(held.attempt, 1);
        EXPECT_TRUE(abandon(held, 0ms, true));
    }
    signal("a");
    for (int i = 0; i < 3; ++i) {
        const auto claim = claimed("a");
        EXPECT_EQ(claim.attempt, 1);
        EXPECT_TRUE(provider.abandon_instance(claim, 0ms, true));
    }
}

// Giving back twice, or giving back mail that no claim has counted, must not earn attempts.
TEST_P(ProviderPoison, NoCountFallsBelowZero) {
    HOLDFAST_CHECK("runtime ignore_attempt_never_goes_negative");
    queue("a", {"charge"});
    const auto held = taken("charge");
    EXPECT_TRUE(abandon(held, 0ms, true));
    EXPECT_FALSE(abandon(held, 0ms, true));
    EXPECT_EQ(taken("charge").attempt, 1);

    signal("a", "counted");
    const auto claim = claimed("a");
    signal("a", "not counted");
    EXPECT_TRUE(provider.abandon_instance(claim, 0ms, true));
    EXPECT_FALSE(provider.abandon_instance(claim, 0ms, true));
    for (const auto& message : claimed("a").messages) {
        EXPECT_EQ(message.attempt, 1);
    }
}

TEST_P(ProviderPoison, ABatchCountsAsItsWorst) {
    HOLDFAST_CHECK("runtime max_attempt_count_across_message_batch");
    begin("a");
    signal("a", "old");
    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(provider.abandon_instance(claimed("a"), 0ms, false));
    }
    signal("a", "new");
    const auto claim = claimed("a");
    EXPECT_EQ(claim.attempt, 3);
    ASSERT_EQ(claim.messages.size(), 2U);
    EXPECT_EQ(claim.messages[0].attempt, 3);
    EXPECT_EQ(claim.messages[1].attempt, 1);
}

// A process that dies takes down everything it has claimed, and the counts do not tell which of
// them killed it. From some count on an instance is claimed alone.
TEST_P(ProviderPoison, WhatWasClaimedOftenSharesNoClaim) {
    const ClaimInstances shared{.lease = 5s, .count = 10, .attempts_shared_max = 2};
    start("a");
    start("b");
    for (int life = 0; life < 2; ++life) {
        EXPECT_EQ(provider.claim_instances(shared).size(), 2U);
        db.advance_clock(5s);
    }
    start("young");
    std::vector<std::string> claimed_now;
    std::vector<std::string> named;
    for (const ClaimedInstance& one : provider.claim_instances(shared)) {
        EXPECT_NE(one.claimed, one.alone) << one.instance;
        (one.claimed ? claimed_now : named).push_back(one.instance);
    }
    EXPECT_EQ(claimed_now, std::vector<std::string>{"young"});
    std::ranges::sort(named);
    EXPECT_EQ(named, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(db.number("SELECT max(attempts) FROM flow_messages"), 2) << "nothing was counted";

    ClaimInstances alone = shared;
    alone.alone = true;
    const auto one = provider.claim_instances(alone);
    ASSERT_EQ(one.size(), 1U);
    EXPECT_TRUE(one[0].claimed);
    EXPECT_EQ(one[0].attempt, 3);
    EXPECT_EQ(one[0].messages.size(), 1U);
    const auto other = provider.claim_instances(alone);
    ASSERT_EQ(other.size(), 1U);
    EXPECT_NE(other[0].instance, one[0].instance);
    EXPECT_EQ(other[0].attempt, 3);
    EXPECT_TRUE(provider.claim_instances(alone).empty());
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderPoison, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

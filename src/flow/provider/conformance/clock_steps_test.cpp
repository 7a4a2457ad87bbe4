// A clock that is wrong for a while and then set right must neither hide work nor end leases.
#include <array>
#include <optional>
#include <span>

#include "provider/test/provider_fixture.hpp"

#include <holdfast/testing/stepping_clock.hpp>

namespace holdfast::flow::tests {

namespace {

class ProviderClockSteps : public ProviderStory {
protected:
    // Does something while the clock is two hours ahead.
    template <class Work>
    void two_hours_ahead(Work&& work) {
        db.advance_clock(2h);
        work();
        db.advance_clock(-2h);
    }
};

TEST_P(ProviderClockSteps, AStartIsDueAtOnceWhateverTheClockSays) {
    two_hours_ahead([&] { start("a"); });
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

TEST_P(ProviderClockSteps, ASignalIsDueAtOnceWhateverTheClockSays) {
    begin("a");
    two_hours_ahead([&] { signal("a"); });
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

TEST_P(ProviderClockSteps, EarlyMailIsDueWithItsStartWhateverTheClockSays) {
    two_hours_ahead([&] { signal("a"); });
    start("a");
    EXPECT_EQ(claimed("a").messages.size(), 2U);
}

TEST_P(ProviderClockSteps, MailThatJoinsATimerThatIsDueStaysDueWhenTheClockIsSetBack) {
    start("a");
    const auto claim = claimed("a");
    EXPECT_EQ(commit(turn(claim).waits_until(2, claim.now + 1min)), Committed::yes);
    two_hours_ahead([&] { signal("a"); });
    const auto seen = claimed("a");
    ASSERT_EQ(seen.messages.size(), 1U) << "the timer is not due";
    EXPECT_TRUE(std::holds_alternative<SignalMessage>(seen.messages[0].message.body));
    EXPECT_EQ(commit(turn(seen)), Committed::yes);
    EXPECT_TRUE(idle());
    db.advance_clock(1min);
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

TEST_P(ProviderClockSteps, WhatATurnLeavesIsDueAtOnceWhateverTheClockSays) {
    begin("b");
    two_hours_ahead([&] {
        start("a");
        ClaimedTurn first = turn(claimed("a"));
        first.schedules(2, "pack").starts_child(3, "child");
        first.sends("b", SignalMessage{"go", text("now")});
        ASSERT_EQ(commit(first), Committed::yes);
    });
    EXPECT_EQ(take_all(), std::vector<std::string>{"pack"});
    EXPECT_EQ(claim_all().size(), 2U);
}

TEST_P(ProviderClockSteps, AnAnswerIsDueAtOnceWhateverTheClockSays) {
    queue("a", {"pack"});
    two_hours_ahead([&] { ASSERT_TRUE(end(taken("pack"))); });
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

TEST_P(ProviderClockSteps, WorkThatIsGivenBackIsDueAtOnceWhateverTheClockSays) {
    queue("a", {"pack"});
    two_hours_ahead([&] { ASSERT_TRUE(abandon(taken("pack"))); });
    EXPECT_EQ(taken("pack").attempt, 2);
    start("b");
    two_hours_ahead([&] { ASSERT_TRUE(provider.abandon_instance(claimed("b"), 0ms, false)); });
    EXPECT_EQ(claimed("b").attempt, 2);
}

TEST_P(ProviderClockSteps, ACancelledStartIsDueAtOnceWhateverTheClockSays) {
    (void)provider.start({.instance = "a", .start = start_of("order"), .delay = 24h});
    two_hours_ahead([&] { provider.send({"a", {.body = CancelMessage{"enough"}}}); });
    EXPECT_EQ(claimed("a").messages.size(), 2U);
}

// Neither kind may starve the other: what has waited longest comes first.
TEST_P(ProviderClockSteps, TimersAndMailThatIsDueAtOnceKeepTheirOrder) {
    start("timer");
    const auto claim = claimed("timer");
    EXPECT_EQ(commit(turn(claim).waits_until(2, claim.now + 2min)), Committed::yes);
    db.advance_clock(1min);
    start("early");
    db.advance_clock(2min);
    start("late");
    EXPECT_EQ(claim_all(), (std::vector<std::string>{"early", "timer", "late"}));
}

TEST_P(ProviderClockSteps, ActivitiesThatAreDueAtOnceAndOthersKeepTheirOrder) {
    queue("a", {"retried"});
    ASSERT_TRUE(abandon(taken("retried"), 2min));
    db.advance_clock(1min);
    queue("b", {"early"});
    db.advance_clock(2min);
    queue("c", {"late"});
    EXPECT_EQ(take_all(), (std::vector<std::string>{"early", "retried", "late"}));
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderClockSteps, every_setting(), setting_name);

// In a file leases end by the time since the machine was started, starts and timers by its wall
// clock.
class ProviderLeaseClock : public testing::Test {
protected:
    [[nodiscard]] sql::DatabaseOptions by_clock() {
        sql::DatabaseOptions options = test::quick_options();
        options.clock = &clock;
        return options;
    }
    void start(const std::string& instance, milliseconds delay = 0ms) {
        (void)provider->start(
            {.instance = instance,
             .start = {.name = "order", .version = "1.0.0", .input = text("input"), .parent = {}},
             .delay = delay});
    }
    std::vector<ClaimedInstance> claim(milliseconds lease = 5s) {
        return provider->claim_instances({.lease = lease, .count = 10});
    }
    // As another process sees it, perhaps after a restart of the machine.
    void open() {
        provider.reset();
        db.reopen();
        provider.emplace(*db, quick());
    }

    test::SteppingClock clock;
    test::Database db{test::Backend::sqlite, schema_part(), by_clock()};
    std::optional<SqlProvider> provider{std::in_place, *db, quick()};
    static constexpr std::array<std::chrono::hours, 5> steps{2h, 0h, 1h, -3h, 24h * 365};
};

TEST_F(ProviderLeaseClock, AClaimIsHeldWhateverTheWallClockSays) {
    start("a");
    const auto held = claim();
    ASSERT_EQ(held.size(), 1U);
    for (const auto step : steps) {
        clock.set_wall_ahead(step);
        EXPECT_TRUE(claim().empty()) << step.count() << " h";
        EXPECT_TRUE(provider->renew_instance("a", held[0].token, 5s)) << step.count() << " h";
    }
    ClaimedTurn first = turn(held[0]);
    first.schedules(2, "pack");
    ASSERT_EQ(provider->commit_turns(std::span(&first.commit, 1)).at(0), Committed::yes);
    const ClaimActivities ask{.lease = 30s,
                              .session = SessionClaim{.owner = "w", .lease = 30s, .count = 1}};
    const auto taken = provider->claim_activities(ask);
    ASSERT_EQ(taken.size(), 1U);
    for (const auto step : steps) {
        clock.set_wall_ahead(step);
        EXPECT_TRUE(provider->claim_activities(ask).empty()) << step.count() << " h";
        const std::pair mine{taken[0].task.key, taken[0].token};
        EXPECT_TRUE(provider->renew_activities(std::span(&mine, 1), 30s).at(0));
    }
}

TEST_F(ProviderLeaseClock, APauseOfAnActivityEndsInTimeAlthoughTheWallClockWasAhead) {
    start("a");
    ClaimedTurn first = turn(claim().at(0));
    first.schedules(2, "pack");
    ASSERT_EQ(provider->commit_turns(std::span(&first.commit, 1)).at(0), Committed::yes);
    clock.set_wall_ahead(2h);
    const auto taken = provider->claim_activities({});
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_TRUE(provider->abandon_activity(taken[0].task.key, taken[0].token, 10s, false));
    clock.set_wall_ahead(0h);
    EXPECT_TRUE(provider->claim_activities({}).empty());
    db.advance_clock(11s);
    EXPECT_EQ(provider->claim_activities({}).size(), 1U);
}

TEST_F(ProviderLeaseClock, ClaimsFromBeforeARestartAreTakenOver) {
    start("a");
    start("b");
    auto held = claim(1h);
    ASSERT_EQ(held.size(), 2U);
    ClaimedTurn first = turn(held[0]);
    first.schedules(2, "pack");
    ASSERT_EQ(provider->commit_turns(std::span(&first.commit, 1)).at(0), Committed::yes);
    const auto taken = provider->claim_activities({.lease = 1h});
    ASSERT_EQ(taken.size(), 1U);
    open();
    EXPECT_TRUE(claim().empty()) << "another process is not another boot";
    EXPECT_TRUE(provider->claim_activities({}).empty());
    provider.reset();
    db.close();
    clock.restart("boot 2");
    open();
    ASSERT_EQ(claim().size(), 1U);
    EXPECT_EQ(provider->claim_activities({}).size(), 1U);
    const ClaimedTurn late = turn(held[1]);
    EXPECT_EQ(provider->commit_turns(std::span(&late.commit, 1)).at(0), Committed::lost);
    const ActivityEnd end{taken[0].task.key, taken[0].token, ActivityAnswer{2, text("late")}};
    EXPECT_FALSE(provider->end_activities(std::span(&end, 1)).at(0));
}

TEST_F(ProviderLeaseClock, ADelayedStartFollowsTheWallClock) {
    start("a", 2h);
    EXPECT_TRUE(claim().empty());
    provider.reset();
    db.close();
    clock.restart("boot 2");
    open();
    EXPECT_TRUE(claim().empty()) << "a restart does not shorten it";
    clock.set_wall_ahead(2h + 1s);
    const auto due = claim();
    ASSERT_EQ(due.size(), 1U);
    const ClaimedTurn first = turn(due[0]);
    ASSERT_EQ(provider->commit_turns(std::span(&first.commit, 1)).at(0), Committed::yes);
    clock.set_wall_ahead(0h);
    provider->send({"a", {.body = SignalMessage{"go", text("now")}}});
    EXPECT_EQ(claim().size(), 1U) << "it has begun";
}

}  // namespace

}  // namespace holdfast::flow::tests

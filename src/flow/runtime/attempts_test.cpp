// Attempts of one activity: the same key, a growing number, the note of the attempt before, and no
// history until the activity ends.
#include "runtime/test/attempts_fixture.hpp"
#include <gmock/gmock.h>

namespace holdfast::flow::tests {
namespace {

using testing::ElementsAre;

class Attempts : public AttemptsFixture, public testing::TestWithParam<test::Backend> {
protected:
    Attempts() : AttemptsFixture(GetParam()) {}
};

TEST_P(Attempts, OfOneActivityShareItsKeyAndCountAndReadTheNoteOfTheOneBefore) {
    client.start<&tries>("flight", 2, 1);
    runtime->run_until_idle();
    advance(10s);
    advance(20s);
    EXPECT_THAT(tried.keys(), ElementsAre("flight/1/2", "flight/1/2", "flight/1/2"));
    EXPECT_THAT(tried.numbers(), ElementsAre(1, 2, 3));
    EXPECT_THAT(tried.notes(), ElementsAre(0, 10, 20));
    EXPECT_EQ(*client.result<&tries>("flight", 1s), 1);
}

TEST_P(Attempts, WriteOneScheduledAndOneClosingEventPerActivity) {
    client.start<&tries>("flight", 2, 3);
    runtime->run_until_idle();
    for (int i = 0; i < 6; ++i) {
        advance(20s);
    }
    ASSERT_EQ(*client.result<&tries>("flight", 1s), 3);
    EXPECT_EQ(tried.numbers().size(), 9U) << "each of three was tried three times";
    EXPECT_THAT(kinds("flight"),
                ElementsAre("workflow_started",
                            "activity_scheduled",
                            "activity_completed",
                            "activity_scheduled",
                            "activity_completed",
                            "activity_scheduled",
                            "activity_completed",
                            "workflow_completed"));
}

TEST_P(Attempts, TheClosingEventHasTheNumberAndTheFailureBeforeIt) {
    client.start<&tries>("flight", 2, 1);
    runtime->run_until_idle();
    advance(10s);
    advance(20s);
    const auto closing = std::get<ActivityCompleted>(history("flight").at(2).body);
    EXPECT_EQ(closing.attempt, 3);
    ASSERT_TRUE(closing.last_failure);
    EXPECT_EQ(closing.last_failure->message, "attempt 2");
}

TEST_P(Attempts, EndWithTheLastFailureWhenThereAreNoMore) {
    client.start<&tries>("flight", 99, 1);
    runtime->run_until_idle();
    for (int i = 0; i < 4; ++i) {
        advance(80s);
    }
    EXPECT_THAT(tried.numbers(), ElementsAre(1, 2, 3, 4, 5));
    const auto closing = std::get<ActivityFailedEvent>(history("flight").at(2).body);
    EXPECT_EQ(closing.attempt, 5);
    EXPECT_EQ(closing.failure.message, "attempt 5");
    EXPECT_EQ(client.info("flight")->status, Status::failed);
    EXPECT_EQ(client.stats().activities, 0);
}

// Ten processes that died make an activity poison; failures of its own do not.
TEST_P(Attempts, ThatFailAreNoPoisonHoweverMany) {
    client.start<&tries_at_once>("flight", 25);
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&tries_at_once>("flight", 1s), 1);
    EXPECT_EQ(tried.numbers().size(), 26U);
}

TEST_P(Attempts, EndAtOnceWithAFailureThatIsFinal) {
    tried.meanwhile = [](ActivityContext&) { throw permanent("CardDeclined", "no"); };
    client.start<&tries>("says so", 99, 1);
    runtime->run_until_idle();
    tried.meanwhile = [](ActivityContext&) { throw Failure("Fraud", "no"); };
    client.start<&tries>("is named", 99, 1);
    runtime->run_until_idle();
    EXPECT_THAT(tried.numbers(), ElementsAre(1, 1));
    EXPECT_EQ(client.info("says so")->status, Status::failed);
    EXPECT_EQ(client.info("is named")->status, Status::failed);
}

TEST_P(Attempts, DoNotBeginAfterTheTotalTime) {
    client.start<&tries_for_a_minute>("flight", 99);
    runtime->run_until_idle();
    advance(20s);
    advance(20s);
    EXPECT_THAT(tried.numbers(), ElementsAre(1, 2, 3));
    EXPECT_EQ(client.info("flight")->status, Status::running);
    advance(20s);  // At 60 s, and the next one would be after that.
    EXPECT_THAT(tried.numbers(), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(client.info("flight")->status, Status::failed);
    EXPECT_EQ(Client::failure_of(*client.info("flight")).message, "attempt 4");
}

// The worst moment for a bound: the process that had the last attempt in time is dead.
TEST_P(Attempts, ThatWereLostDoNotBeginAgainAfterTheTotalTime) {
    client.start<&tries_for_a_minute>("flight", 99);
    runtime->run_until_idle();
    place.db.advance_clock(20s);
    ASSERT_EQ(store.provider().claim_activities({.lease = 2s}).size(), 1U);  // And dies.
    advance(60s);
    EXPECT_THAT(tried.numbers(), ElementsAre(1));
    const FailureInfo failure = Client::failure_of(*client.info("flight"));
    EXPECT_EQ(failure.kind, FailureKind::timeout);
    EXPECT_EQ(failure.cause, "Refused: attempt 1");
}

TEST_P(Attempts, DoNotFollowACancellationDuringThePause) {
    client.start<&tries>("flight", 99, 1);
    runtime->run_until_idle();
    client.cancel("flight", "enough");
    runtime->run_until_idle();
    EXPECT_EQ(client.info("flight")->status, Status::cancelled);
    EXPECT_EQ(client.stats().activities, 0);
    advance(10min);
    EXPECT_THAT(tried.numbers(), ElementsAre(1));
}

TEST_P(Attempts, GoOnInAnotherProcessWithTheSameKey) {
    client.start<&tries>("flight", 2, 1);
    runtime->run_until_idle();
    runtime.emplace(store, registry, manual_options());  // The first one dies in the pause.
    place.db.advance_clock(10s);
    const auto lost = store.provider().claim_activities({.lease = 2s});
    ASSERT_EQ(lost.size(), 1U);  // Another process takes the second attempt, leaves a note, dies.
    EXPECT_EQ(lost[0].attempt, 2);
    EXPECT_EQ(lost[0].failures, 1);
    EXPECT_TRUE(store.provider().heartbeat(lost[0].task.key, lost[0].token, Payload{"77"}));
    advance(3s);
    EXPECT_THAT(tried.numbers(), ElementsAre(1, 3));
    EXPECT_THAT(tried.notes(), ElementsAre(0, 77));
    EXPECT_THAT(tried.keys(), ElementsAre("flight/1/2", "flight/1/2"));
    EXPECT_EQ(*client.result<&tries>("flight", 1s), 1);
}

// Two workers hold one attempt: the lease of the first ran out while it was paused by its host.
TEST_P(Attempts, AreDecidedOnlyByTheirOwner) {
    runtime.reset();
    client.start<&tries>("flight", 2, 1);
    RuntimeOptions no_activities = manual_options();
    no_activities.activity_threads = 0;
    runtime.emplace(store, registry, no_activities);
    runtime->run_until_idle();
    Provider& provider = store.provider();
    const ClaimedActivity ann = provider.claim_activities({.lease = 2s}).at(0);
    place.db.advance_clock(3s);
    const ClaimedActivity bob = provider.claim_activities({.lease = 2s}).at(0);
    const ActivityEnd late = end_of_attempt(ann, FailureInfo{.message = "late"}, 3s, 0.5);
    ASSERT_TRUE(late.again);
    EXPECT_EQ(provider.end_activities({&late, 1}), std::vector<bool>{false});
    const ActivityEnd good = end_of_attempt(bob, FailureInfo{.message = "good"}, 0s, 0.5);
    EXPECT_EQ(provider.end_activities({&good, 1}), std::vector<bool>{true});
    EXPECT_EQ(provider.end_activities({&good, 1}), std::vector<bool>{false}) << "once";
    const PendingActivity pending = provider.activities("flight", 10).at(0);
    EXPECT_EQ(pending.failures, 1);
    EXPECT_EQ(pending.last_failure->message, "good");
}

TEST_P(Attempts, AreShownWhileTheyArePending) {
    client.start<&tries>("flight", 99, 1);
    runtime->run_until_idle();
    const auto pending = store.provider().activities("flight", 10);
    ASSERT_EQ(pending.size(), 1U);
    EXPECT_FALSE(pending[0].running);
    EXPECT_EQ(pending[0].attempt, 2);
    EXPECT_EQ(pending[0].failures, 1);
    EXPECT_EQ(pending[0].last_failure->text(), "Refused: attempt 1");
    EXPECT_EQ(pending[0].heartbeat, Payload{"10"});
    EXPECT_EQ(pending[0].retry->attempts, 5);
    const milliseconds left = pending[0].due - pending[0].now;
    EXPECT_GT(left, 0s);
    EXPECT_LE(left, 10s);
}

// Once begun, how long it may wait for a worker does not matter any more.
TEST_P(Attempts, ThatPauseAreNotTakenForOnesThatWereNeverBegun) {
    client.start<&tries_soon>("flight", 1);
    runtime->run_until_idle();
    advance(5s);  // The limit on its first start has passed; the pause has not.
    EXPECT_EQ(client.info("flight")->status, Status::running);
    advance(5s);
    EXPECT_THAT(tried.numbers(), ElementsAre(1, 2));
    EXPECT_EQ(*client.result<&tries_soon>("flight", 1s), 1);
}

// What an activity without retries costs must not grow.
TEST_P(Attempts, CostOneCommitForAFailureAndNoneForTheWorkflow) {
    client.start<&tries>("flight", 1, 1);
    runtime->run_until_idle();
    const std::int64_t turns = runtime->stats().turns;
    place.db.advance_clock(10s);
    const auto before = place.db->driver_stats();
    runtime->run_until_idle();
    const auto after = place.db->driver_stats();
    ASSERT_EQ(*client.result<&tries>("flight", 1s), 1);
    EXPECT_EQ(runtime->stats().turns, turns + 1) << "the pause and the failure took none";
    if (GetParam() == test::Backend::sqlite) {
        EXPECT_LE(after.commits - before.commits, 3) << "the claim, its note, and the end";
    }
}

INSTANTIATE_TEST_SUITE_P(Every, Attempts, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

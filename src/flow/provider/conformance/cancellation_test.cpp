// Activities that are no longer awaited. A turn removes them, and a worker that runs one notices by
// its lost lease; the provider does not judge by the state of the instance.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

class ProviderCancellation : public ProviderStory {};

TEST_P(ProviderCancellation, AnActivityOfALiveInstanceIsTakenAndRenewed) {
    HOLDFAST_CHECK("runtime fetch_returns_running_state_for_active_orchestration");
    HOLDFAST_CHECK("runtime renew_returns_running_when_orchestration_active");
    queue("a", {"charge"});
    const auto held = taken("charge", {.lease = 10s});
    db.advance_clock(5s);
    EXPECT_TRUE(renew(held, 10s));
}

// An end removes the activities: no turn is left to take their answers, and a worker that holds one
// sees it as a cancellation.
TEST_P(ProviderCancellation, AnEndedInstanceLeavesNoActivities) {
    HOLDFAST_CHECK("runtime fetch_returns_terminal_state_when_orchestration_completed");
    HOLDFAST_CHECK("runtime fetch_returns_terminal_state_when_orchestration_failed");
    HOLDFAST_CHECK("runtime renew_returns_terminal_when_orchestration_completed");
    queue("a", {"held by a worker"});
    const auto held = taken("held by a worker");
    proceed("a", [](ClaimedTurn& last) { last.schedules(3, "of the last turn").completes(); });
    begin("b", [](ClaimedTurn& only) { only.schedules(2, "of b").fails(); });

    EXPECT_FALSE(take());
    EXPECT_FALSE(renew(held));
    EXPECT_FALSE(end(held));
    EXPECT_EQ(provider.stats().activities, 0);
    EXPECT_EQ(provider.stats().messages, 0) << "an ended instance hears nothing";
}

// An instance that continues lives on, and the provider does not judge what was left behind. The
// answer says which execution asked.
TEST_P(ProviderCancellation, ALeftoverOfAnEarlierExecutionIsStillTaken) {
    HOLDFAST_CHECK("runtime fetch_returns_terminal_state_when_orchestration_continued_as_new");
    begin("a", [](ClaimedTurn& only) { only.schedules(2, "leftover").continues(); });
    const auto held = taken("leftover", {.lease = 10s});
    EXPECT_TRUE(renew(held, 10s));
    EXPECT_TRUE(end(held));
    const auto next = claimed("a");
    ASSERT_EQ(next.messages.size(), 2U);
    EXPECT_EQ(next.execution, 2U);
    EXPECT_EQ(next.messages[1].message.execution, 1U);
}

// Deleting an instance takes its activities with it: nothing is left to be taken, and a worker that
// holds one learns it like a cancellation.
TEST_P(ProviderCancellation, ADeletedInstanceLeavesNoActivities) {
    HOLDFAST_CHECK("runtime fetch_returns_missing_state_when_instance_deleted");
    HOLDFAST_CHECK("runtime renew_returns_missing_when_instance_deleted");
    HOLDFAST_CHECK("runtime orphan_activity_after_instance_force_deletion");
    queue("a", {"held", "waiting"});
    const auto held = taken("held");
    EXPECT_EQ(provider.delete_tree("a", true).instances, 1);

    EXPECT_FALSE(take());
    EXPECT_FALSE(renew(held));
    EXPECT_FALSE(end(held));
    EXPECT_FALSE(abandon(held));
    EXPECT_FALSE(provider.heartbeat(held.task.key, held.token, text("half")));
    EXPECT_EQ(provider.stats().messages, 0);
    EXPECT_EQ(provider.stats().early_mailboxes, 0) << "the answer must not wait for a namesake";
}

TEST_P(ProviderCancellation, AnEndWithoutAnAnswerDropsTheActivity) {
    HOLDFAST_CHECK("runtime ack_work_item_none_deletes_without_enqueue");
    queue("a", {"charge"});
    EXPECT_TRUE(end_with(taken("charge"), std::nullopt));
    EXPECT_EQ(rows("flow_activities", "a"), 0);
    EXPECT_TRUE(idle());
}

TEST_P(ProviderCancellation, ATurnRemovesTheActivitiesItCancels) {
    HOLDFAST_CHECK("runtime cancelled_activities_deleted_from_worker_queue");
    queue("a", {"one", "two", "three"});
    proceed("a", [](ClaimedTurn& next) { next.cancels(2).cancels(4); });
    EXPECT_EQ(take_all(), std::vector<std::string>{"two"});
}

TEST_P(ProviderCancellation, AWorkerLearnsThatItsActivityWasCancelled) {
    HOLDFAST_CHECK("runtime ack_work_item_fails_when_entry_deleted");
    HOLDFAST_CHECK("runtime renew_fails_when_entry_deleted");
    queue("a", {"charge"});
    const auto held = taken("charge");
    proceed("a", [](ClaimedTurn& next) { next.cancels(2); });
    EXPECT_FALSE(renew(held));
    EXPECT_FALSE(end(held));
    EXPECT_FALSE(abandon(held));
    EXPECT_TRUE(idle()) << "no answer was sent";
}

TEST_P(ProviderCancellation, CancellingWhatIsNotThereIsNoError) {
    HOLDFAST_CHECK("runtime cancelling_nonexistent_activities_is_idempotent");
    queue("a", {"charge"});
    EXPECT_TRUE(end(taken("charge")));
    EXPECT_EQ(commit(turn(claimed("a")).cancels(2).cancels(77)), Committed::yes);
    proceed("a", [](ClaimedTurn& next) { next.cancels(2); });
}

TEST_P(ProviderCancellation, ManyAreCancelledAtOnceAndNeighboursStay) {
    HOLDFAST_CHECK("runtime batch_cancellation_deletes_multiple_activities");
    queue("b", {"other"});
    queue("a", {"one", "two", "three", "four", "five"});
    proceed("a", [](ClaimedTurn& next) {
        for (EventId event = 2; event <= 6; ++event) {
            next.cancels(event);
        }
    });
    EXPECT_EQ(take_all(), std::vector<std::string>{"other"}) << "the same events of b are not a's";
}

TEST_P(ProviderCancellation, WhatATurnSchedulesAndCancelsNeverRuns) {
    HOLDFAST_CHECK("runtime same_activity_in_worker_items_and_cancelled_is_noop");
    begin("a",
          [](ClaimedTurn& first) { first.schedules(2, "one").schedules(3, "two").cancels(2); });
    EXPECT_EQ(take_all(), std::vector<std::string>{"two"});
    EXPECT_EQ(history("a"), (std::vector<EventId>{1, 2, 3}));
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderCancellation, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

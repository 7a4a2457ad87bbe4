#include "history/start/options.hpp"

#include "history/test/run_fixture.hpp"

namespace holdfast::server::history::tests {

namespace {

class OptionsTest : public RunFixture {
protected:
    bool change(const OptionsChange& change) {
        return transition([&](Transition& t) { return change_options(t, change, "client"); });
    }
    static OptionsChange whole(int priority_key) {
        OptionsChange change;
        change.whole = true;
        change.priority.set_priority_key(priority_key);
        return change;
    }
};

TEST_F(OptionsTest, APriorityIsChangedByAnEventThatWakesNoWorker) {
    start();
    poll();
    ASSERT_TRUE(complete());
    ASSERT_TRUE(change(whole(1)));
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskCompleted, 5 OptionsUpdated")) << history();
    const auto& attributes = event(5).workflow_execution_options_updated_event_attributes();
    EXPECT_EQ(attributes.priority().priority_key(), 1);
    EXPECT_EQ(attributes.identity(), "client");
    EXPECT_TRUE(attributes.unset_versioning_override());
    EXPECT_TRUE(event(5).worker_may_ignore());
    EXPECT_EQ(run().priority().priority_key(), 1);
}

TEST_F(OptionsTest, WhatIsSoAlreadyIsNotWritten) {
    start();
    ASSERT_TRUE(change(whole(1)));
    ASSERT_TRUE(change(whole(1)));
    EXPECT_EQ(history(), "1 Started, 2 WorkflowTaskScheduled, 3 OptionsUpdated");
}

TEST_F(OptionsTest, APartIsChangedAlone) {
    start();
    ASSERT_TRUE(change(whole(2)));
    OptionsChange weight;
    weight.fairness_weight = true;
    weight.priority.set_fairness_weight(3);
    ASSERT_TRUE(change(weight));
    EXPECT_EQ(run().priority().priority_key(), 2);
    EXPECT_EQ(run().priority().fairness_weight(), 3);
}

TEST_F(OptionsTest, AWorkerThatIsBusyDoesNotHoldAChangeUp) {
    start();
    poll();
    ASSERT_TRUE(change(whole(1)));
    EXPECT_EQ(run().priority().priority_key(), 1);
    ASSERT_TRUE(complete());
    EXPECT_TRUE(
        history().ends_with("4 WorkflowTaskCompleted, 5 OptionsUpdated, "
                            "6 WorkflowTaskScheduled"))
        << history();
}

TEST_F(OptionsTest, AContinuedRunKeepsThePriority) {
    start();
    ASSERT_TRUE(change(whole(1)));
    poll();
    ASSERT_TRUE(complete({continue_as_new_command()}));
    EXPECT_EQ(last.next->started.priority().priority_key(), 1);
}

TEST_F(OptionsTest, AClosedRunIsLeftAlone) {
    start();
    terminate();
    EXPECT_FALSE(change(whole(1)));
}

}  // namespace

}  // namespace holdfast::server::history::tests

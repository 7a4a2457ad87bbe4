#include "history/query/query.hpp"

#include "history/test/run_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

class QueryPlanTest : public RunFixture {
protected:
    // "direct", "buffered", the status of a rejection, or why it is not ready.
    std::string plan(QueryRejectCondition reject = QUERY_REJECT_CONDITION_NONE,
                     Span patience = 30s) {
        return plan_of(run(), reject, patience);
    }
    static std::string plan_of(const state::Run& run,
                               QueryRejectCondition reject = QUERY_REJECT_CONDITION_NONE,
                               Span patience = 30s) {
        const auto plan =
            plan_query(run, {.reject = reject, .deadline = time_of(run.start_time()) + patience});
        if (const auto* rejected = std::get_if<QueryRejected>(&plan)) {
            return WorkflowExecutionStatus_Name(rejected->status)
                .substr(std::string_view("WORKFLOW_EXECUTION_STATUS_").size());
        }
        if (const auto* reason = std::get_if<QueryNotReady>(&plan)) {
            return reason->message;
        }
        return std::get<QueryRoute>(plan) == QueryRoute::direct ? "direct" : "buffered";
    }

    void become_idle() {
        start();
        poll();
        ASSERT_TRUE(complete());
    }

    void start_later(Span delay) {
        Started started;
        started.set_workflow_id("order-7");
        started.mutable_workflow_type()->set_name("Order");
        started.mutable_task_queue()->set_name("queue");
        *started.mutable_first_workflow_task_backoff() = to_duration(delay);
        normalise_timeouts(started, limits);
        start(started);
    }
};

TEST_F(QueryPlanTest, WaitsForAWorkflowTaskThatIsPending) {
    start();
    EXPECT_EQ(plan(), "buffered");
    poll();
    EXPECT_EQ(plan(), "buffered");
    complete();
    EXPECT_EQ(plan(), "direct");
    signal("paid");
    EXPECT_EQ(plan(), "buffered");
}

TEST_F(QueryPlanTest, ABackoffThatEndsInTimeIsWaitedFor) {
    HOLDFAST_CHECK("server H242");
    start_later(10s);
    EXPECT_EQ(plan(QUERY_REJECT_CONDITION_NONE, 9s), "Workflow task is not scheduled yet.");
    EXPECT_EQ(plan(QUERY_REJECT_CONDITION_NONE, 11s), "buffered");
    advance(10s);
    EXPECT_EQ(plan(QUERY_REJECT_CONDITION_NONE, 9s), "buffered") << "the backoff is over";
}

TEST_F(QueryPlanTest, AWorkflowTaskThatFailedTwiceFailsTheQuery) {
    HOLDFAST_CHECK("server H243");
    start();
    poll();
    fail_task();
    EXPECT_EQ(plan(), "buffered");
    poll();
    fail_task();
    EXPECT_EQ(plan(), "Unable to query workflow due to Workflow Task in failed state.");
}

TEST_F(QueryPlanTest, ARunThatClosedBeforeItsFirstTaskHasNothingToTell) {
    HOLDFAST_CHECK("server H244");
    start();
    terminate();
    EXPECT_EQ(plan(), "Workflow execution closed before WorkflowTaskStarted event");
    EXPECT_EQ(plan(QUERY_REJECT_CONDITION_NOT_OPEN), "TERMINATED") << "this comes first";
}

TEST_F(QueryPlanTest, ACompletedRunIsRejectedOnlyIfItMustBeOpen) {
    start();
    poll();
    complete({complete_command()});
    EXPECT_EQ(plan(), "direct");
    EXPECT_EQ(plan(QUERY_REJECT_CONDITION_NOT_OPEN), "COMPLETED");
    EXPECT_EQ(plan(QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY), "direct");
}

TEST_F(QueryPlanTest, AFailedRunHasNotCompletedCleanly) {
    HOLDFAST_CHECK("server H240");
    start();
    poll();
    EXPECT_EQ(plan(QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY), "buffered");
    complete({fail_command()});
    EXPECT_EQ(plan(QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY), "FAILED");
    EXPECT_EQ(plan(), "direct");
}

TEST_F(QueryPlanTest, APausedRunIsRejectedWhateverTheCallerAsks) {
    become_idle();
    state::Run paused = run();
    paused.set_status(WORKFLOW_EXECUTION_STATUS_PAUSED);
    EXPECT_EQ(plan_of(paused), "PAUSED");
}

}  // namespace

}  // namespace holdfast::server::history::tests

// What reaches a run from outside: signals, a wish to cancel, its termination.
#include "history/test/run_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

class OutsideTest : public RunFixture {
protected:
    // The start and the signal of one request, in one transition.
    void signal_with_start(Span delay = 0s) {
        transition([&](Transition& t) {
            Started started;
            started.set_workflow_id("order-7");
            started.mutable_workflow_type()->set_name("Order");
            started.mutable_task_queue()->set_name("queue");
            *started.mutable_first_workflow_task_backoff() = to_duration(delay);
            normalise_timeouts(started, limits);
            start_run(t, started, "request");
            return signal_run(t, named("go", "request"));
        });
    }

    bool signal_at_once(const std::string& name) {
        return transition([&](Transition& t) { return signal_run(t, named(name, ""), true); });
    }

    static temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes named(
        const std::string& name, const std::string& request_id) {
        temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes signal;
        signal.set_signal_name(name);
        signal.set_request_id(request_id);
        return signal;
    }

    void become_idle() {
        start();
        poll();
        ASSERT_TRUE(complete());
    }
};

Command cancel_run_command() {
    Command command;
    command.set_command_type(COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION);
    command.mutable_cancel_workflow_execution_command_attributes();
    return command;
}

TEST_F(OutsideTest, ASignalWakesAnIdleRun) {
    HOLDFAST_CHECK("server H211");
    become_idle();
    ASSERT_TRUE(signal("go"));
    EXPECT_TRUE(history().ends_with("5 Signaled, 6 WorkflowTaskScheduled")) << history();
}

TEST_F(OutsideTest, ASignalBeforeThePollIsInTheHistoryAtOnce) {
    HOLDFAST_CHECK("server H212");
    start();
    signal("go");
    poll();
    EXPECT_EQ(history(), "1 Started, 2 WorkflowTaskScheduled, 3 Signaled, 4 WorkflowTaskStarted");
}

TEST_F(OutsideTest, ASignalWithStartIsBeforeTheFirstWorkflowTask) {
    HOLDFAST_CHECK("server H216");
    signal_with_start();
    EXPECT_EQ(history(), "1 Started, 2 Signaled, 3 WorkflowTaskScheduled");
    EXPECT_EQ(last.batches.size(), 1U);
}

TEST_F(OutsideTest, ASignalWithStartOfARunningRunIsASignal) {
    HOLDFAST_CHECK("server H217");
    become_idle();
    ASSERT_TRUE(signal_at_once("go"));
    EXPECT_TRUE(history().ends_with("5 Signaled, 6 WorkflowTaskScheduled")) << history();
}

TEST_F(OutsideTest, ASecondSignalWithStartEndsTheDelay) {
    HOLDFAST_CHECK("server H220");
    signal_with_start(10s);
    EXPECT_EQ(history(), "1 Started, 2 Signaled");
    ASSERT_TRUE(signal_at_once("again"));
    EXPECT_EQ(history(), "1 Started, 2 Signaled, 3 Signaled, 4 WorkflowTaskScheduled");
    advance(10s);
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskScheduled")) << "the delay is void";
}

TEST_F(OutsideTest, ACancelIsRequestedOnce) {
    HOLDFAST_CHECK("server H223");
    become_idle();
    cancel();
    EXPECT_TRUE(history().ends_with("5 CancelRequested, 6 WorkflowTaskScheduled")) << history();
    cancel();
    EXPECT_FALSE(last.changed);
}

TEST_F(OutsideTest, TheCancelOfAClosedRunChangesNothing) {
    HOLDFAST_CHECK("server H224");
    start();
    terminate();
    cancel();
    EXPECT_FALSE(refusal);
    EXPECT_FALSE(last.changed);
}

TEST_F(OutsideTest, AWorkflowAgreesToItsCancel) {
    HOLDFAST_CHECK("server H225");
    start();
    cancel();
    poll();
    ASSERT_TRUE(complete({cancel_run_command()}));
    EXPECT_EQ(history(),
              "1 Started, 2 WorkflowTaskScheduled, 3 CancelRequested, 4 WorkflowTaskStarted, "
              "5 WorkflowTaskCompleted, 6 Canceled");
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_CANCELED);
}

TEST_F(OutsideTest, ATerminationSaysWhyAndHappensOnce) {
    HOLDFAST_CHECK("server H226");
    start();
    ASSERT_TRUE(terminate());
    EXPECT_EQ(event(3).workflow_execution_terminated_event_attributes().reason(), "enough");
    EXPECT_FALSE(terminate());
    EXPECT_EQ(refusal->kind, Refused::not_found);
}

TEST_F(OutsideTest, AContinuedRunHasWhatTheCommandGaveIt) {
    HOLDFAST_CHECK("server H179");
    HOLDFAST_CHECK("server H181");
    become_idle();
    signal("go on");
    poll();
    Command command = continue_as_new_command();
    auto& asked = *command.mutable_continue_as_new_workflow_execution_command_attributes();
    asked.mutable_input()->add_payloads()->set_data("in");
    (*asked.mutable_memo()->mutable_fields())["m"].set_data("1");
    (*asked.mutable_header()->mutable_fields())["h"].set_data("2");
    *asked.mutable_backoff_start_interval() = to_duration(7s);
    ASSERT_TRUE(complete({command}));
    ASSERT_TRUE(last.next);
    const Started& next = last.next->started;
    EXPECT_EQ(run().new_execution_run_id(), last.next->run_id);
    EXPECT_EQ(next.continued_execution_run_id(), "run-1");
    EXPECT_EQ(next.first_execution_run_id(), "run-1");
    EXPECT_EQ(next.input().payloads(0).data(), "in");
    EXPECT_EQ(next.memo().fields().at("m").data(), "1");
    EXPECT_EQ(next.header().fields().at("h").data(), "2");
    EXPECT_EQ(span_of(next.first_workflow_task_backoff()), 7s);
}

TEST_F(OutsideTest, ASignalThatIsUnseenKeepsARunFromContinuing) {
    HOLDFAST_CHECK("server H182");
    start();
    poll();
    signal("wait");
    EXPECT_FALSE(complete({continue_as_new_command()}));
    EXPECT_EQ(refusal->message, "UnhandledCommand");
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 Signaled, 6 WorkflowTaskScheduled"))
        << history();
}

TEST_F(OutsideTest, AContinuedRunKeepsTheEndOfItsExecution) {
    HOLDFAST_CHECK("server H164");
    Started started;
    *started.mutable_workflow_execution_timeout() = to_duration(100s);
    *started.mutable_workflow_run_timeout() = to_duration(30s);
    start(started);
    const auto expiration =
        event(1).workflow_execution_started_event_attributes().workflow_execution_expiration_time();
    advance(5s);
    poll();
    ASSERT_TRUE(complete({continue_as_new_command()}));
    const Started& next = last.next->started;
    EXPECT_EQ(time_of(next.workflow_execution_expiration_time()), time_of(expiration));
    EXPECT_EQ(span_of(next.workflow_execution_timeout()), 100s);
    EXPECT_EQ(span_of(next.workflow_run_timeout()), 30s);
}

}  // namespace

}  // namespace holdfast::server::history::tests

// Each rule of the checker has a history that breaks it, and only it.
#include "history/checker/checker.hpp"

#include "history/checker/test/history_text_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::server::history::tests {

namespace {

// NOLINTNEXTLINE(google-build-using-namespace): 50 names of it, in tests only.
using namespace temporal::api::enums::v1;
using temporal::api::history::v1::HistoryEvent;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckerTest : public testing::Test {
protected:
    HistoryText text;

    // Exactly one problem, and it says this.
    void expect_problem(const std::string& words) {
        EXPECT_THAT(text.problems(), ElementsAre(HasSubstr(words)));
    }
};

TEST_F(CheckerTest, ARightHistoryHasNoProblem) {
    text.first_task();
    text.activity_scheduled();
    text.timer_started();
    text.child_initiated();
    text.signal_initiated();
    text.update_accepted();
    text.child_started(7);
    text.timer_fired(6);
    text.activity_started(5).mutable_event_time()->set_seconds(6);  // Before what is above.
    text.activity_completed(5, 12);
    text.child_completed(7, 10);
    text.external_signaled(8).mutable_event_time()->set_seconds(12);  // It waited in the buffer.
    text.update_completed(9);
    text.task_scheduled();
    text.task_started(17);
    text.task_completed(17, 18);
    text.completed(19);
    EXPECT_THAT(text.problems(), IsEmpty());
}

TEST_F(CheckerTest, IdsFollowEachOther) {
    text.started();
    text.task_scheduled().set_event_id(3);
    expect_problem("event 3 WORKFLOW_TASK_SCHEDULED: it follows event 1");
}

TEST_F(CheckerTest, TaskIdsGrow) {
    text.started();
    text.task_scheduled().set_task_id(10);
    expect_problem("its task id 10 does not grow from 10");
}

TEST_F(CheckerTest, ATransientWorkflowTaskMayBeShownAtTheEnd) {
    text.started();
    HistoryEvent& scheduled = text.task_scheduled();
    scheduled.clear_task_id();
    scheduled.mutable_workflow_task_scheduled_event_attributes()->set_attempt(2);
    text.task_started(2).clear_task_id();
    EXPECT_THAT(text.problems(), IsEmpty());
    text.signaled();
    expect_problem("it follows an event that is not stored");
}

TEST_F(CheckerTest, AFirstAttemptIsStored) {
    text.started();
    text.task_scheduled().clear_task_id();
    expect_problem("its task id 0 does not grow from 10");
}

TEST_F(CheckerTest, TheFirstEventStartsTheRun) {
    text.signaled();
    expect_problem("the first event starts the run");
}

TEST_F(CheckerTest, ARunStartsOnce) {
    text.started();
    text.started();
    expect_problem("the run has started already");
}

TEST_F(CheckerTest, NothingFollowsTheEnd) {
    text.first_task();
    text.completed(4);
    text.signaled();
    expect_problem("event 6 WORKFLOW_EXECUTION_SIGNALED: the run is closed");
}

TEST_F(CheckerTest, ARunEndsOnce) {
    text.first_task();
    text.completed(4);
    text.completed(4);
    expect_problem("event 6 WORKFLOW_EXECUTION_COMPLETED: the run is closed");
}

TEST_F(CheckerTest, ACancelIsRequestedOnce) {
    text.started();
    for (int i = 0; i < 2; ++i) {
        text.add(EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED)
            .mutable_workflow_execution_cancel_requested_event_attributes();
    }
    expect_problem("the cancel of the run was requested already");
}

TEST_F(CheckerTest, AnEventHasATime) {
    text.started().clear_event_time();
    expect_problem("it has no time");
}

TEST_F(CheckerTest, TimesDoNotGoBack) {
    text.started();
    text.task_scheduled().mutable_event_time()->set_seconds(0);
    expect_problem("its time goes back");
}

TEST_F(CheckerTest, WhatWaitedKeepsItsOrder) {
    text.started();
    text.signaled().mutable_event_time()->set_seconds(5);
    text.signaled().mutable_event_time()->set_seconds(4);
    expect_problem("event 3 WORKFLOW_EXECUTION_SIGNALED: its time goes back");
}

TEST_F(CheckerTest, AnEventHasItsAttributes) {
    text.started();
    text.add(EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED).mutable_timer_fired_event_attributes();
    expect_problem("its attributes are missing, or are those of another type");
}

TEST_F(CheckerTest, WhatMustBeSetIsSet) {
    text.started()
        .mutable_workflow_execution_started_event_attributes()
        ->mutable_workflow_type()
        ->clear_name();
    expect_problem("workflow_type.name is not set");
}

TEST_F(CheckerTest, ACommandNamesTheLastCompletion) {
    text.first_task();
    text.completed(3);
    expect_problem("it names 3 as its completion, and the last one is 4");
}

TEST_F(CheckerTest, ACommandComesBeforeTheNextWorkflowTask) {
    text.first_task();
    text.task_scheduled();
    text.timer_started();
    expect_problem("workflow task 5 is pending");
}

TEST_F(CheckerTest, OneWorkflowTaskIsPending) {
    text.started();
    text.task_scheduled();
    text.task_scheduled();
    expect_problem("event 3 WORKFLOW_TASK_SCHEDULED: workflow task 2 is pending");
}

TEST_F(CheckerTest, AWorkflowTaskIsStartedOnce) {
    text.started();
    text.task_scheduled();
    text.task_started(2);
    text.task_started(2);
    expect_problem("workflow task 2 does not wait");
}

TEST_F(CheckerTest, AWorkflowTaskIsScheduledBeforeItStarts) {
    text.started();
    text.task_started(2);
    expect_problem("workflow task 2 does not wait");
}

TEST_F(CheckerTest, ACompletionNamesThePendingWorkflowTask) {
    text.started();
    text.task_scheduled();
    text.task_started(2);
    text.task_completed(1, 3);
    expect_problem("workflow task 1 is not pending");
}

TEST_F(CheckerTest, ACompletionNamesTheStart) {
    text.started();
    text.task_scheduled();
    text.task_started(2);
    text.task_completed(2, 4);
    expect_problem("the workflow task was not started by 4");
}

TEST_F(CheckerTest, OnlyAStartedWorkflowTaskCompletes) {
    text.started();
    text.task_scheduled();
    text.task_completed(2, 0);
    expect_problem("the workflow task was not started");
}

TEST_F(CheckerTest, TheEndComesAfterTheStartedWorkflowTask) {
    text.started();
    text.task_scheduled();
    text.task_started(2);
    text.add(EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED)
        .mutable_workflow_execution_terminated_event_attributes();
    expect_problem("workflow task 2 is still started");
}

TEST_F(CheckerTest, AnActivityIdIsUniqueAmongThePending) {
    text.first_task();
    text.activity_scheduled();
    text.activity_scheduled();
    expect_problem("activity 'a' is pending already");
}

TEST_F(CheckerTest, AnActivityIsScheduledBeforeItStarts) {
    text.first_task();
    text.activity_started(4);
    expect_problem("scheduled_event_id 4 is not pending");
}

TEST_F(CheckerTest, AnActivityDoesNotStartBeforeItIsScheduled) {
    text.first_task();
    text.activity_scheduled();
    text.activity_started(5).mutable_event_time()->set_seconds(4);
    expect_problem("it starts before it is scheduled");
}

TEST_F(CheckerTest, AnActivityStartsOnce) {
    text.first_task();
    text.activity_scheduled();
    text.activity_started(5);
    text.activity_started(5);
    expect_problem("it was started by 6 already");
}

TEST_F(CheckerTest, TheEndOfAnActivityNamesItsStart) {
    text.first_task();
    text.activity_scheduled();
    text.activity_started(5);
    text.activity_completed(5, 5);
    expect_problem("it names 5 as its start, which is 6");
}

TEST_F(CheckerTest, OnlyAStartedActivityCompletes) {
    text.first_task();
    text.activity_scheduled();
    text.activity_completed(5, 0);
    expect_problem("it was not started");
}

TEST_F(CheckerTest, AnActivityEndsOnce) {
    text.first_task();
    text.activity_scheduled();
    text.activity_started(5);
    text.activity_completed(5, 6);
    text.activity_completed(5, 6);
    expect_problem("event 8 ACTIVITY_TASK_COMPLETED: scheduled_event_id 5 is not pending");
}

TEST_F(CheckerTest, AnActivityIsAskedToStopOnce) {
    text.first_task();
    text.activity_scheduled();
    text.activity_cancel_requested(5);
    text.activity_cancel_requested(5);
    expect_problem("its cancel was requested already");
}

TEST_F(CheckerTest, OnlyWhatWasAskedToStopIsCanceled) {
    text.first_task();
    text.activity_scheduled();
    text.activity_cancel_requested(5);
    text.activity_canceled(5, 4);
    expect_problem("its cancel was not requested by 4");
}

TEST_F(CheckerTest, ATimerIdIsUniqueAmongThePending) {
    text.first_task();
    text.timer_started();
    text.timer_started();
    expect_problem("timer 't' is pending already");
}

TEST_F(CheckerTest, ATimerFiresOnce) {
    text.first_task();
    text.timer_started();
    text.timer_fired(5);
    text.timer_fired(5);
    expect_problem("started_event_id 5 is not pending");
}

TEST_F(CheckerTest, AFiringNamesItsTimer) {
    text.first_task();
    text.timer_started();
    text.timer_fired(5, "another");
    expect_problem("the timer's id is 't'");
}

TEST_F(CheckerTest, AChildIsAskedForBeforeItStarts) {
    text.first_task();
    text.child_started(4);
    expect_problem("initiated_event_id 4 is not pending");
}

TEST_F(CheckerTest, AStartedChildIsTheOneThatWasAskedFor) {
    text.first_task();
    text.child_initiated();
    text.child_started(5, "another");
    expect_problem("the child's workflow id is 'child'");
}

TEST_F(CheckerTest, AStartedChildDoesNotFailToStart) {
    text.first_task();
    text.child_initiated();
    text.child_started(5);
    HistoryEvent& event = text.add(EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED);
    auto& attributes = *event.mutable_start_child_workflow_execution_failed_event_attributes();
    attributes.set_workflow_id("child");
    attributes.set_cause(START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS);
    attributes.set_initiated_event_id(5);
    expect_problem("the child was started by 6");
}

TEST_F(CheckerTest, TheEndOfAChildNamesItsStart) {
    text.first_task();
    text.child_initiated();
    text.child_started(5);
    text.child_completed(5, 0);
    expect_problem("it names 0 as its start, which is 6");
}

TEST_F(CheckerTest, OnlyAStartedChildEnds) {
    text.first_task();
    text.child_initiated();
    text.child_completed(5, 0);
    expect_problem("it was not started");
}

TEST_F(CheckerTest, ASignalIsAnsweredOnce) {
    text.first_task();
    text.signal_initiated();
    text.external_signaled(5);
    text.external_signaled(5);
    expect_problem("initiated_event_id 5 is not pending");
}

TEST_F(CheckerTest, TheAnswerToACancelIsNotThatToASignal) {
    text.first_task();
    text.signal_initiated();
    HistoryEvent& event = text.add(EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED);
    auto& attributes =
        *event.mutable_external_workflow_execution_cancel_requested_event_attributes();
    attributes.mutable_workflow_execution()->set_workflow_id("other");
    attributes.set_initiated_event_id(5);
    expect_problem("initiated_event_id 5 is not pending");
}

TEST_F(CheckerTest, AnOperationIsScheduledBeforeItEnds) {
    text.first_task();
    text.operation_completed(4);
    expect_problem("scheduled_event_id 4 is not pending");
}

TEST_F(CheckerTest, AnUpdateIsAcceptedOnce) {
    text.first_task();
    text.update_accepted();
    text.update_accepted();
    expect_problem("the update was accepted already");
}

TEST_F(CheckerTest, AnEventHasTheRequestOfAnUpdate) {
    text.first_task();
    text.update_accepted()
        .mutable_workflow_execution_update_accepted_event_attributes()
        ->clear_accepted_request();
    expect_problem("no event has the update's request");
}

TEST_F(CheckerTest, AnUpdateWasSentAfterAnEarlierEvent) {
    text.first_task();
    text.update_accepted()
        .mutable_workflow_execution_update_accepted_event_attributes()
        ->set_accepted_request_sequencing_event_id(5);
    expect_problem("it names a later event");
}

TEST_F(CheckerTest, AnUpdateIsAcceptedBeforeItIsCompleted) {
    text.first_task();
    text.update_completed(4);
    expect_problem("accepted_event_id 4 is not pending");
}

TEST_F(CheckerTest, ACompletedUpdateIsTheOneThatWasAccepted) {
    text.first_task();
    text.update_accepted();
    text.update_completed(5, "another");
    expect_problem("the update's id is 'u'");
}

TEST_F(CheckerTest, ProblemsAreBounded) {
    text.started();
    for (std::size_t i = 0; i <= Checker::problems_max; ++i) {
        text.signaled().set_task_id(1);
    }
    EXPECT_EQ(text.problems().size(), Checker::problems_max);
}

}  // namespace

}  // namespace holdfast::server::history::tests

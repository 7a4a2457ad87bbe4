#include "frontend/test/frontend_fixture.hpp"
#include "history/outside.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;

using Request = api::GetWorkflowExecutionHistoryRequest;
using Answered = api::GetWorkflowExecutionHistoryResponse;

class HistoryReads : public FrontendTest {
protected:
    HistoryReads() {
        request.set_namespace_("home");
        request.mutable_execution()->set_workflow_id("order-7");
    }

    Answered read() { return call<Answered>("GetWorkflowExecutionHistory", request); }

    void signal() {
        static_cast<void>(turns.apply(*turns.run_of(order), [](history::Transition& transition) {
            temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes attributes;
            attributes.set_signal_name("paid");
            return history::signal_run(transition, attributes);
        }));
    }
    void terminate() {
        static_cast<void>(turns.apply(*turns.run_of(order), [](history::Transition& transition) {
            return history::terminate_run(transition, {});
        }));
    }
    // The attempt that follows is transient.
    void fail_task() {
        api::RespondWorkflowTaskFailedRequest failed;
        failed.set_namespace_("home");
        failed.set_task_token(turns.poll_task(order));
        call<api::RespondWorkflowTaskFailedResponse>("RespondWorkflowTaskFailed", failed);
    }
    // Parks a read behind the events that are there.
    std::shared_ptr<rpc::Call> park() {
        request.set_wait_new_event(true);
        request.set_next_page_token(read().next_page_token());
        answers.clear();
        auto parked = begin("GetWorkflowExecutionHistory", request);
        EXPECT_TRUE(answers.empty()) << "it waits";
        return parked;
    }

    Request request;
};

TEST_F(HistoryReads, PagesCountBatchesAndTheLastHasNoToken) {
    start_order();
    signal();
    request.set_maximum_page_size(1);
    const Answered first = read();
    EXPECT_EQ(first.history().events_size(), 2) << "events 1 and 2 are one batch";
    request.set_next_page_token(first.next_page_token());
    const Answered second = read();
    ASSERT_EQ(second.history().events_size(), 1);
    EXPECT_EQ(second.history().events(0).event_id(), 3);
    EXPECT_EQ(second.next_page_token(), "");
}

TEST_F(HistoryReads, APageSizeOutOfBoundsMeans256) {
    HOLDFAST_CHECK("server F57");
    start_order();
    for (int i = 0; i < 256; ++i) {
        signal();
    }
    for (const int size : {0, 257, -1}) {
        request.set_maximum_page_size(size);
        const Answered page = read();
        EXPECT_EQ(page.history().events_size(), 257) << size;
        EXPECT_NE(page.next_page_token(), "");
    }
}

TEST_F(HistoryReads, ATokenThatIsDamagedOrOfAnotherRunIsRefused) {
    start_order();
    request.set_next_page_token("garbage");
    EXPECT_EQ(refused("GetWorkflowExecutionHistory", request).message, "Invalid NextPageToken.");
    request.clear_next_page_token();
    request.set_wait_new_event(true);
    request.set_next_page_token(read().next_page_token());
    request.mutable_execution()->set_run_id(home_id);
    EXPECT_EQ(refused("GetWorkflowExecutionHistory", request).message,
              "RunId in the request does not match the NextPageToken.");
}

TEST_F(HistoryReads, TheCloseEventOfAnOpenRunIsNothingUntilItIsThere) {
    HOLDFAST_CHECK("server F58");
    start_order();
    request.set_history_event_filter_type(enums::HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT);
    EXPECT_EQ(read().history().events_size(), 0);
    terminate();
    const Answered closed = read();
    ASSERT_EQ(closed.history().events_size(), 1);
    EXPECT_TRUE(closed.history().events(0).has_workflow_execution_terminated_event_attributes());
    EXPECT_EQ(closed.next_page_token(), "");
}

TEST_F(HistoryReads, AReadForTheCloseEventWaitsForItAndForNothingElse) {
    start_order();
    request.set_history_event_filter_type(enums::HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT);
    request.set_wait_new_event(true);
    answers.clear();
    begin("GetWorkflowExecutionHistory", request);
    signal();
    EXPECT_TRUE(answers.empty());
    terminate();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(response<Answered>().history().events_size(), 1);
    EXPECT_EQ(alarms.pending(), 0U);
}

TEST_F(HistoryReads, AWaitingReadGetsTheNextEvent) {
    start_order();
    park();
    signal();
    ASSERT_EQ(answers.size(), 1U);
    const auto news = response<Answered>();
    ASSERT_EQ(news.history().events_size(), 1);
    EXPECT_EQ(news.history().events(0).event_id(), 3);
    EXPECT_NE(news.next_page_token(), "");
}

TEST_F(HistoryReads, AWaitThatEndsGivesAnEmptyPageAndAToken) {
    HOLDFAST_CHECK("server F63");
    start_order();
    park();
    alarms.ring(clock.steady_now() + std::chrono::seconds{19});
    EXPECT_TRUE(answers.empty());
    alarms.ring(clock.steady_now() + std::chrono::seconds{20});
    ASSERT_EQ(answers.size(), 1U);
    const auto empty = response<Answered>();
    EXPECT_EQ(empty.history().events_size(), 0);
    EXPECT_EQ(empty.next_page_token(), request.next_page_token());
    signal();
    EXPECT_EQ(answers.size(), 1U) << "the watch ended with the reply";
}

TEST_F(HistoryReads, AWaitEndsASecondBeforeItsCallersDeadline) {
    start_order();
    deadline = clock.wall_now() + std::chrono::seconds{5};
    park();
    alarms.ring(clock.steady_now() + std::chrono::seconds{4});
    EXPECT_EQ(answers.size(), 1U);
}

TEST_F(HistoryReads, ACallerThatLeavesTakesItsAlarmWithIt) {
    start_order();
    park()->cancel();
    EXPECT_EQ(alarms.pending(), 0U);
    EXPECT_EQ(refusal().code, rpc::StatusCode::cancelled);
}

TEST_F(HistoryReads, AStoppingServerAnswersWaitingReadsWithAnEmptyPage) {
    start_order();
    park();
    dispatch.stop();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(response<Answered>().next_page_token(), request.next_page_token());
}

TEST_F(HistoryReads, EventsOfATransientTaskAreShownToAllButTools) {
    HOLDFAST_CHECK("server F62");
    start_order();
    fail_task();
    EXPECT_EQ(read().history().events_size(), 5);
    caller.client_name = "temporal-cli";
    EXPECT_EQ(read().history().events_size(), 4);
}

TEST_F(HistoryReads, AReverseReadBeginsWithTheNewestEvent) {
    start_order();
    signal();
    api::GetWorkflowExecutionHistoryReverseRequest reverse;
    reverse.set_namespace_("home");
    reverse.mutable_execution()->set_workflow_id("order-7");
    reverse.set_maximum_page_size(1);
    const auto first = call<api::GetWorkflowExecutionHistoryReverseResponse>(
        "GetWorkflowExecutionHistoryReverse", reverse);
    ASSERT_EQ(first.history().events_size(), 1);
    EXPECT_EQ(first.history().events(0).event_id(), 3);
    reverse.set_next_page_token(first.next_page_token());
    const auto second = call<api::GetWorkflowExecutionHistoryReverseResponse>(
        "GetWorkflowExecutionHistoryReverse", reverse);
    ASSERT_EQ(second.history().events_size(), 2);
    EXPECT_EQ(second.history().events(0).event_id(), 2);
    EXPECT_EQ(second.next_page_token(), "");
}

}  // namespace

}  // namespace holdfast::server::frontend::tests

#include "time_skipping/skipper.hpp"

#include <optional>

#include "engine/test/server_fixture.hpp"
#include "history/times.hpp"
#include "time_skipping/test_service.hpp"
#include <google/protobuf/empty.pb.h>
#include <temporal/api/testservice/v1/request_response.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::time_skipping::tests {
namespace {

using namespace std::chrono_literals;
using engine::tests::activity_command;
using engine::tests::complete_command;
using engine::tests::Pending;
using engine::tests::Process;
using engine::tests::timer_command;
namespace testservice = temporal::api::testservice::v1;
namespace workflowservice = temporal::api::workflowservice::v1;

// A server of which the clock stands still, so that all its time is skipped time.
class TimeSkippingTest : public engine::tests::ServerTest {
protected:
    TimeSkippingTest() {
        process.reset();
        process = std::make_unique<Process>(db, clock, log, limits, &skipping, &skipper);
        skipper.connect([this] { process->engine.look_at_clock(); });
        add_test_service(process->dispatch, skipper, jumps);
    }
    ~TimeSkippingTest() override { process.reset(); }

    // Until nothing moves any more.
    void settle() {
        do {
            process->executor.run_all();
        } while (jumps.ring_due() + process->alarms.ring_due() != 0);
    }

    template <class Response, class Request>
    Pending<Response> ask(const std::string& method, const Request& request) {
        auto answer = std::make_shared<std::optional<rpc::Answer>>();
        auto call = std::make_shared<rpc::Call>(
            rpc::CallInfo{.method = "/temporal.api.testservice.v1.TestService/" + method,
                          .deadline = {},
                          .caller = {}},
            [answer](rpc::Answer given) { *answer = std::move(given); });
        process->dispatch.run(call, request.SerializeAsString());
        settle();
        return Pending<Response>(std::move(answer), std::move(call));
    }
    auto lock() {
        return ask<testservice::LockTimeSkippingResponse>("LockTimeSkipping",
                                                          testservice::LockTimeSkippingRequest());
    }
    auto unlock() {
        return ask<testservice::UnlockTimeSkippingResponse>(
            "UnlockTimeSkipping", testservice::UnlockTimeSkippingRequest());
    }
    auto sleep(const std::string& method, std::chrono::seconds span) {
        testservice::SleepRequest request;
        request.mutable_duration()->set_seconds(span.count());
        return ask<testservice::SleepResponse>(method, request);
    }
    // How far the time of the server is ahead.
    std::chrono::nanoseconds skipped() {
        const auto now =
            ask<testservice::GetCurrentTimeResponse>("GetCurrentTime", google::protobuf::Empty());
        return history::time_of(now.response().time()) - history::Time(clock.wall_now());
    }

    server::tests::ManualAlarms jumps{clock};
    SkippingClock skipping{clock};
    Skipper skipper{skipping, jumps, 1};
};

TEST_P(TimeSkippingTest, AWorkflowThatSleepsForAnHourGoesOnAtOnce) {
    HOLDFAST_CHECK("server Q213");
    start("order");
    const auto task = poll().response();
    EXPECT_EQ(complete(task, {timer_command("hour", 3600s)}).refusal(), nullptr);
    settle();
    const auto worker = poll();
    EXPECT_TRUE(worker.waits()) << "time is locked";
    EXPECT_EQ(skipped(), 0s);

    EXPECT_EQ(unlock().refusal(), nullptr);
    const auto next = worker.response();
    EXPECT_TRUE(history("order").find("TimerFired") != std::string::npos) << history("order");
    EXPECT_GE(skipped(), 3600s);
    EXPECT_LE(skipped(), 3601s);
    EXPECT_EQ(complete(next, {complete_command()}).refusal(), nullptr);
    settle();
    EXPECT_LE(skipped(), 3601s) << "nothing is due any more";
}

// What runs takes its time; what waits for its next attempt does not.
TEST_P(TimeSkippingTest, TimeIsRealWhileAnActivityRuns) {
    HOLDFAST_CHECK("server Q214");
    EXPECT_EQ(unlock().refusal(), nullptr);
    start("order");
    const auto task = poll().response();
    EXPECT_EQ(complete(task, {activity_command("a"), timer_command("hour", 3600s)}).refusal(),
              nullptr);
    settle();
    EXPECT_EQ(skipped(), 0s) << "the activity waits for a worker";
    const auto activity = poll_activity().response();
    settle();
    EXPECT_EQ(skipped(), 0s) << "the activity runs";

    workflowservice::RespondActivityTaskFailedRequest failed;
    failed.set_namespace_("default");
    failed.set_task_token(activity.task_token());
    failed.mutable_failure()->mutable_application_failure_info()->set_type("Passing");
    EXPECT_EQ(begin<workflowservice::RespondActivityTaskFailedResponse>("RespondActivityTaskFailed",
                                                                        failed)
                  .refusal(),
              nullptr);
    settle();
    EXPECT_GE(skipped(), 1s) << "the next attempt is not waited for";
    EXPECT_LT(skipped(), 3600s);
    EXPECT_EQ(poll_activity().response().attempt(), 2);
}

TEST_P(TimeSkippingTest, LocksAreCounted) {
    HOLDFAST_CHECK("server Q215");
    EXPECT_EQ(unlock().refusal(), nullptr);
    const auto twice = unlock();
    ASSERT_NE(twice.refusal(), nullptr);
    EXPECT_EQ(twice.refusal()->code, rpc::StatusCode::failed_precondition);
    EXPECT_NE(sleep("UnlockTimeSkippingWithSleep", 60s).refusal(), nullptr);

    EXPECT_EQ(lock().refusal(), nullptr);
    EXPECT_EQ(sleep("UnlockTimeSkippingWithSleep", 60s).refusal(), nullptr);
    EXPECT_EQ(skipped(), 60s);
    auto waiting = sleep("Sleep", 60s);
    EXPECT_TRUE(waiting.waits()) << "time is locked again";
    EXPECT_EQ(skipped(), 60s);
    waiting.cancel();
}

// A sleeper is due like a run: the earlier one is first.
TEST_P(TimeSkippingTest, ASleepEndsBeforeALaterTimer) {
    start("order");
    EXPECT_EQ(complete(poll().response(), {timer_command("hour", 3600s)}).refusal(), nullptr);
    auto sleeper = sleep("Sleep", 600s);
    auto gone = sleep("Sleep", 60s);
    EXPECT_TRUE(sleeper.waits());
    gone.cancel();
    EXPECT_EQ(unlock().refusal(), nullptr);
    EXPECT_EQ(sleeper.refusal(), nullptr);
    EXPECT_FALSE(sleeper.waits());
    EXPECT_GE(skipped(), 3600s) << "it is not locked after the sleep";
    EXPECT_NE(poll().response().task_token(), "");
}

// An unlock for a time skips that time and no more, however soon the next jump would be.
TEST_P(TimeSkippingTest, AnUnlockedSleepEndsWhereItSays) {
    start("order");
    EXPECT_EQ(complete(poll().response(), {timer_command("hour", 3600s)}).refusal(), nullptr);
    settle();
    EXPECT_EQ(sleep("UnlockTimeSkippingWithSleep", 60s).refusal(), nullptr);
    EXPECT_EQ(skipped(), 60s);

    auto left = sleep("UnlockTimeSkippingWithSleep", 7200s);
    EXPECT_TRUE(left.waits()) << "the workflow task after the timer waits for a worker";
    EXPECT_GE(skipped(), 3600s);
    left.cancel();
    EXPECT_EQ(complete(poll().response(), {timer_command("next", 3600s)}).refusal(), nullptr);
    settle();
    EXPECT_LT(skipped(), 3700s) << "a sleep that is cancelled locks time again";
}

// Time that is locked passes as everywhere else.
TEST_P(TimeSkippingTest, ALockedSleepTakesItsTime) {
    auto sleeper = sleep("Sleep", 10s);
    jumps.advance(9s);
    EXPECT_TRUE(sleeper.waits());
    jumps.advance(1s);
    EXPECT_FALSE(sleeper.waits());
    EXPECT_EQ(skipped(), 0s);

    testservice::SleepUntilRequest past;
    past.mutable_timestamp()->set_seconds(1);
    EXPECT_FALSE(ask<testservice::SleepResponse>("SleepUntil", past).waits());
}

// Days of retention pass in no time, and the result of a workflow is asked for after them.
TEST_P(TimeSkippingTest, NoSumOfSleepsOverflows) {
    EXPECT_EQ(unlock().refusal(), nullptr);
    for (int century = 0; century < 4; ++century) {
        EXPECT_FALSE(sleep("Sleep", 100 * 365 * 24h).waits());
    }
    EXPECT_GT(skipped(), 150 * 365 * 24h);
}

INSTANTIATE_TEST_SUITE_P(OnAFile,
                         TimeSkippingTest,
                         testing::Values(test::Backend::sqlite),
                         test::backend_name);

}  // namespace
}  // namespace holdfast::server::time_skipping::tests

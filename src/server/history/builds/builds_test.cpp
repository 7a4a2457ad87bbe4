#include "history/builds/builds.hpp"

#include "history/child/child.hpp"
#include "history/describe/describe.hpp"
#include "history/test/run_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using temporal::api::common::v1::WorkerVersionStamp;
using temporal::api::workflow::v1::WorkflowExecutionInfo;
using temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest;

WorkerVersionStamp stamp(const std::string& build_id) {
    WorkerVersionStamp stamp;
    stamp.set_build_id(build_id);
    return stamp;
}

class BuildsTest : public RunFixture {
protected:
    // One workflow task, run by a worker of this build.
    void run_task(const std::string& build_id,
                  std::vector<Command> commands = {},
                  const std::string& checksum = "") {
        if (!run().has_workflow_task()) {
            signal("go on");
        }
        const Poll poll{.scheduled_event_id = run().workflow_task().scheduled_event_id(),
                        .stamp = run().workflow_task().stamp(),
                        .request_id = "poll",
                        .identity = "worker",
                        .queue = "queue",
                        .worker_version = stamp(build_id)};
        ASSERT_TRUE(transition([&](Transition& t) { return start_workflow_task(t, poll); }));
        RespondWorkflowTaskCompletedRequest request;
        request.set_binary_checksum(checksum);
        if (!build_id.empty()) {
            *request.mutable_worker_version_stamp() = stamp(build_id);
        }
        for (Command& command : commands) {
            *request.add_commands() = std::move(command);
        }
        const TaskRef task{.scheduled_event_id = run().workflow_task().scheduled_event_id(),
                           .started_event_id = run().workflow_task().started_event_id(),
                           .attempt = 1,
                           .started_time = std::nullopt};
        ASSERT_TRUE(
            transition([&](Transition& t) { return complete_workflow_task(t, task, request); }));
    }

    [[nodiscard]] WorkflowExecutionInfo described() const {
        temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse response;
        describe(run(), response);
        return response.workflow_execution_info();
    }

    [[nodiscard]] std::string attribute(const std::string& name) const {
        const auto& attributes = run().search_attributes();
        const auto found = attributes.find(name);
        return found == attributes.end() ? "absent" : found->second.data();
    }
};

TEST_F(BuildsTest, TheVersionOfAWorkerIsInTheEventsOfItsTaskAndInTheDescription) {
    HOLDFAST_CHECK("server F121");
    start();
    run_task("one");
    EXPECT_EQ(event(3).workflow_task_started_event_attributes().worker_version().build_id(), "one");
    EXPECT_EQ(event(4).workflow_task_completed_event_attributes().worker_version().build_id(),
              "one");
    EXPECT_EQ(described().most_recent_worker_version_stamp().build_id(), "one");
}

// A worker that fails leaves a task without events: the next one must not pass for it.
TEST_F(BuildsTest, AReaderOfATransientTaskIsNotToldOfItsWorker) {
    start();
    poll();
    fail_task();
    const Poll again{.scheduled_event_id = run().workflow_task().scheduled_event_id(),
                     .stamp = 0,
                     .request_id = "poll",
                     .identity = "worker",
                     .queue = "queue",
                     .worker_version = stamp("two")};
    transition([&](Transition& t) { return start_workflow_task(t, again); });
    const auto shown = transient_events(run());
    EXPECT_FALSE(shown.events(1).workflow_task_started_event_attributes().has_worker_version());
    ASSERT_TRUE(complete());
    EXPECT_EQ(event(6).workflow_task_started_event_attributes().worker_version().build_id(), "two");
}

TEST_F(BuildsTest, ABuildThatIsNewToTheRunBeginsAResetPoint) {
    HOLDFAST_CHECK("server H75");
    start();
    run_task("one");
    run_task("one");
    run_task("two");
    run_task("two", {}, "checksum");
    const auto points = described().auto_reset_points().points();
    ASSERT_EQ(points.size(), 3);
    EXPECT_EQ(points[0].build_id(), "one");
    EXPECT_EQ(points[0].run_id(), "run-1");
    EXPECT_EQ(points[0].first_workflow_task_completed_id(), 4);
    EXPECT_EQ(time_of(points[0].create_time()), time_of(event(4).event_time()));
    EXPECT_TRUE(points[0].resettable());
    EXPECT_EQ(points[1].build_id(), "two");
    EXPECT_EQ(points[2].binary_checksum(), "checksum");
}

TEST_F(BuildsTest, APointIsOfNoUseWhileAChildIsOnItsWay) {
    start();
    run_task("one", {start_child_command("child")});
    run_task("two");
    const auto points = described().auto_reset_points().points();
    ASSERT_EQ(points.size(), 2);
    EXPECT_TRUE(points[0].resettable());
    EXPECT_FALSE(points[1].resettable());
}

TEST_F(BuildsTest, OnlyTheNewestTwentyPointsAreKept) {
    start();
    for (int build = 1; build <= 22; ++build) {
        run_task("build " + std::to_string(build));
    }
    const auto points = described().auto_reset_points().points();
    ASSERT_EQ(points.size(), 20);
    EXPECT_EQ(points[0].build_id(), "build 3");
    EXPECT_EQ(points[19].build_id(), "build 22");
}

TEST_F(BuildsTest, TheBuildsAreASearchAttribute) {
    start();
    EXPECT_EQ(attribute("BuildIds"), "absent");
    run_task("");
    EXPECT_EQ(attribute("BuildIds"), R"(["unversioned"])");
    run_task("one");
    run_task("two", {}, "sum");
    run_task("one");
    EXPECT_EQ(attribute("BuildIds"), R"(["unversioned","unversioned:one","unversioned:two"])");
    EXPECT_EQ(attribute("BinaryChecksums"), R"(["sum"])");
    EXPECT_EQ(run().search_attributes().at("BuildIds").metadata().at("type"), "KeywordList");
}

TEST_F(BuildsTest, TheOldestBuildsGiveWayToTheLimitOfAnAttribute) {
    start();
    run_task(std::string(1100, 'a'));
    run_task(std::string(1100, 'b'));
    run_task(std::string(1100, 'c'));
    EXPECT_EQ(attribute("BuildIds"),
              R"(["unversioned","unversioned:)" + std::string(1100, 'c') + R"("])");
}

// The points of a run are of use as long as its history is there.
TEST_F(BuildsTest, ARunThatIsFollowedHandsItsPointsOnWithTheirEnd) {
    Started started;
    auto& earlier = *started.mutable_prev_auto_reset_points()->add_points();
    earlier.set_build_id("zero");
    earlier.set_run_id("run-0");
    start(started);
    run_task("one", {continue_as_new_command()});
    ASSERT_TRUE(last.next.has_value());
    state::Run closed = run();
    expire_reset_points(closed, *last.next, time_of(closed.close_time()) + 24h);
    const auto points = last.next->started.prev_auto_reset_points().points();
    ASSERT_EQ(points.size(), 2);
    EXPECT_FALSE(points[0].has_expire_time()) << "the end of run-0 is not known here";
    EXPECT_EQ(time_of(points[1].expire_time()), time_of(closed.close_time()) + 24h);
    EXPECT_EQ(time_of(closed.reset_points(1).expire_time()), time_of(closed.close_time()) + 24h);
}

TEST_F(BuildsTest, TheVersionOfTheWorkerThatEndsAnActivityIsInTheEventOfItsStart) {
    start();
    poll();
    ASSERT_TRUE(complete({schedule_activity_command("a")}));
    start_activity(5);
    ASSERT_TRUE(transition([&](Transition& t) {
        return history::complete_activity(
            t,
            {.scheduled_event_id = 5, .number = 1, .worker_version = stamp("one")},
            "worker",
            nullptr);
    }));
    EXPECT_EQ(event(6).activity_task_started_event_attributes().worker_version().build_id(), "one");
}

}  // namespace

}  // namespace holdfast::server::history::tests

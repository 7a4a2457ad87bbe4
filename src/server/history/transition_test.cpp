#include "history/projection.hpp"
#include "history/test/run_fixture.hpp"
#include <gmock/gmock.h>

namespace holdfast::server::history::tests {

namespace {

using testing::ElementsAre;

class TransitionTest : public testing::Test {
protected:
    CountingSource source;
    Limits limits;
    state::Run run = new_run("namespace-id", "run-1");
    Transition transition{run, Time{}, source, limits};
};

TEST_F(TransitionTest, ItsTasksCanBeReadBeforeItsEnd) {
    const Task activity{Task::Kind::activity, 5, 0};
    const Task child{Task::Kind::start_child, 6, 0};
    transition.add_task(activity);
    transition.add_task(child);
    EXPECT_THAT(transition.tasks(), ElementsAre(activity, child));
    transition.withdraw_task(Task::Kind::activity, 5);
    EXPECT_THAT(transition.tasks(), ElementsAre(child));
}

TEST_F(TransitionTest, ARestartForgetsItsTasks) {
    transition.add_task({Task::Kind::activity, 5, 0});
    transition.restart();
    EXPECT_TRUE(transition.tasks().empty());
}

// Clients may send any numbers.
TEST(MomentsTest, OneOutsideOfTheCalendarIsCutToItsEnds) {
    google::protobuf::Timestamp timestamp;
    timestamp.set_seconds(INT64_MIN);
    timestamp.set_nanos(INT32_MIN);
    const Time first = time_of(timestamp);
    timestamp.set_seconds(INT64_MAX);
    timestamp.set_nanos(INT32_MAX);
    const Time last = time_of(timestamp);
    EXPECT_LT(first, Time{});
    EXPECT_GT(last, Time{});
    EXPECT_EQ(time_of(to_timestamp(first)), first);
    EXPECT_EQ(time_of(to_timestamp(last)), last);
}

}  // namespace

}  // namespace holdfast::server::history::tests

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

}  // namespace

}  // namespace holdfast::server::history::tests

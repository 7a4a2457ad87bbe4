#include <holdfast/base/clock.hpp>

#include <future>
#include <thread>

#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

TEST(SystemClock, SleepsUntilItsTimeByTheSteadyClock) {
    HOLDFAST_CHECK("connections sleep.full");
    const Steady until = system_clock().steady_now() + 5ms;
    EXPECT_TRUE(system_clock().sleep_until(until, {}));
    EXPECT_GE(system_clock().steady_now(), until);
}

TEST(SystemClock, DoesNotSleepForATimeThatHasPassed) {
    HOLDFAST_CHECK("connections sleep.negative");
    HOLDFAST_CHECK("connections sleep.zero");
    EXPECT_TRUE(system_clock().sleep_until(system_clock().steady_now() - 1h, {}));
    EXPECT_TRUE(system_clock().sleep_until(system_clock().steady_now(), {}));
}

// Were the stop not noticed, the test would run into its time limit.
TEST(SystemClock, AStopEndsASleep) {
    HOLDFAST_CHECK("connections sleep.early");
    std::stop_source stop;
    auto slept = std::async(std::launch::async, [token = stop.get_token()] {
        return system_clock().sleep_until(system_clock().steady_now() + 10min, token);
    });
    stop.request_stop();
    EXPECT_FALSE(slept.get());
}

TEST(SystemClock, AStopThatCameBeforeIsNoticed) {
    HOLDFAST_CHECK("connections sleep.stopped");
    std::stop_source stop;
    stop.request_stop();
    EXPECT_FALSE(system_clock().sleep_until(system_clock().steady_now() + 10min, stop.get_token()));
}

TEST(SystemClock, WallTimeIsTheSystemsOwn) {
    const auto before = std::chrono::system_clock::now();
    const Wall now = system_clock().wall_now();
    EXPECT_GE(now + 1us, before);
    EXPECT_LE(now, std::chrono::system_clock::now());
}

TEST(Deadline, CountsDownToZeroAndStaysThere) {
    const Steady start{1h};
    const Deadline deadline = Deadline::at(start + 5s);
    EXPECT_EQ(deadline.remaining(start), 5s);
    EXPECT_FALSE(deadline.passed(start + 5s - 1ns));
    EXPECT_TRUE(deadline.passed(start + 5s));
    EXPECT_EQ(deadline.remaining(start + 5s), 0s);
    EXPECT_EQ(deadline.remaining(start + 1h), 0s);
}

TEST(Deadline, TheEarlierOfTwoCounts) {
    const Deadline early = Deadline::at(Steady{1s});
    const Deadline late = Deadline::at(Steady{2s});
    EXPECT_EQ(early.earlier(late), early);
    EXPECT_EQ(late.earlier(early), early);
}

// now + nanoseconds::max() would overflow and lie in the past.
TEST(Deadline, AnAbsurdWaitIsALongOne) {
    const Deadline deadline = Deadline::after(std::chrono::nanoseconds::max());
    EXPECT_FALSE(deadline.passed());
    EXPECT_GT(deadline.remaining(), 24h * 364);
}

TEST(Deadline, AWaitOfZeroHasPassed) {
    EXPECT_TRUE(Deadline::after(0s).passed());
    EXPECT_TRUE(Deadline::after(-1s).passed());
}

}  // namespace
}  // namespace holdfast

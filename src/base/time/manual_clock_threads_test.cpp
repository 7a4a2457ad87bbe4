#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include <holdfast/base/manual_clock.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::soon;

TEST(ManualClock, StandsStillUntilMoved) {
    ManualClock clock;
    const Steady steady = clock.steady_now();
    EXPECT_EQ(clock.wall_now(), ManualClock::first_wall);
    clock.advance(1500us);
    EXPECT_EQ(clock.steady_now() - steady, 1500us);
    EXPECT_EQ(clock.wall_now() - ManualClock::first_wall, 1500us);
}

TEST(ManualClock, SmallStepsOfWallTimeAddUp) {
    ManualClock clock;
    for (int i = 0; i < 10; ++i) {
        clock.advance(100ns);
    }
    EXPECT_EQ(clock.wall_now() - ManualClock::first_wall, 1us);
}

TEST(ManualClock, WallTimeJumpsAlone) {
    ManualClock clock;
    clock.advance(3s);
    const Steady steady = clock.steady_now();
    clock.set_wall(ManualClock::first_wall - 1h);
    EXPECT_EQ(clock.steady_now(), steady);
    EXPECT_EQ(clock.wall_now(), ManualClock::first_wall - 1h);
    clock.advance(2s);
    EXPECT_EQ(clock.wall_now(), ManualClock::first_wall - 1h + 2s);
}

TEST(ManualClock, ASleeperWakesWhenItsTimeHasComeAndNotBefore) {
    ManualClock clock;
    const Steady until = clock.steady_now() + 10s;
    auto sleeper = std::async(std::launch::async, [&] {
        const bool whole = clock.sleep_until(until, {});
        return std::pair(whole, clock.steady_now());
    });
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(9s);
    EXPECT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(1s);
    EXPECT_EQ(sleeper.get(), std::pair(true, until));
}

TEST(ManualClock, AStopWakesASleeper) {
    ManualClock clock;
    std::stop_source stop;
    auto sleeper = std::async(std::launch::async, [&] {
        return clock.sleep_until(clock.steady_now() + 1s, stop.get_token());
    });
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    stop.request_stop();
    EXPECT_FALSE(sleeper.get());
    EXPECT_FALSE(clock.wait_for_sleepers(1, Deadline::after(0s)));
}

// A sleeper that is due but has not run yet must not be taken for one that sleeps again.
TEST(ManualClock, ASleeperThatIsDueIsNotWaitedFor) {
    ManualClock clock;
    std::atomic<int> rounds = 0;
    std::stop_source stop;
    auto ticker = std::async(std::launch::async, [&] {
        while (clock.sleep_until(clock.steady_now() + 1s, stop.get_token())) {
            ++rounds;
        }
    });
    for (int round = 0; round < 100; ++round) {
        ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
        ASSERT_EQ(rounds, round);
        clock.advance(1s);
    }
    stop.request_stop();
    ticker.get();
}

}  // namespace
}  // namespace holdfast

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "executor/alarm_clock.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/manual_clock.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server {
namespace {

using namespace std::chrono_literals;
using holdfast::test::soon;

class AlarmClockTest : public testing::Test {
protected:
    Steady in(std::chrono::nanoseconds span) const { return clock.steady_now() + span; }

    // Rings after everything that is set for its moment: then that has rung, or never will.
    std::future<void> mark(Steady at) {
        auto rung = std::make_shared<std::promise<void>>();
        alarms.set(at, [rung] { rung->set_value(); });
        return rung->get_future();
    }

    ManualClock clock;
    std::vector<std::string> rang;  // Without a lock: all alarms ring on one thread.
    AlarmClock alarms{clock};
};

TEST_F(AlarmClockTest, AlarmsRingInTheOrderOfTheirMoments) {
    alarms.set(in(3s), [&] { rang.emplace_back("third"); });
    alarms.set(in(1s), [&] { rang.emplace_back("first"); });
    alarms.set(in(1s), [&] { rang.emplace_back("second"); });
    auto last = mark(in(3s));
    clock.advance(3s);
    last.get();
    EXPECT_EQ(rang, (std::vector<std::string>{"first", "second", "third"}));
}

TEST_F(AlarmClockTest, AnAlarmDoesNotRingBeforeItsTime) {
    alarms.set(in(2s), [&] { rang.emplace_back("late"); });
    auto between = mark(in(1s));
    clock.advance(1s);
    between.get();
    EXPECT_TRUE(rang.empty());
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    alarms.stop();
    EXPECT_TRUE(rang.empty());
}

// The thread sleeps for an hour when the alarm for the next second comes.
TEST_F(AlarmClockTest, AnEarlierAlarmWakesTheThread) {
    alarms.set(in(1h), [&] { rang.emplace_back("late"); });
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    auto early = mark(in(1s));
    clock.advance(1s);
    early.get();
    EXPECT_TRUE(rang.empty());
}

TEST_F(AlarmClockTest, AnAlarmThatIsDueRingsAtOnce) {
    mark(in(0s)).get();
    mark(in(-1s)).get();
}

TEST_F(AlarmClockTest, ACancelledAlarmNeverRings) {
    const auto owned = std::make_shared<int>(0);
    const AlarmId alarm = alarms.set(in(1s), [owned] { ++*owned; });
    auto after = mark(in(1s));
    EXPECT_TRUE(alarms.cancel(alarm));
    EXPECT_EQ(owned.use_count(), 1) << "what a cancelled alarm owns must be destroyed";
    EXPECT_FALSE(alarms.cancel(alarm));
    clock.advance(1s);
    after.get();
    EXPECT_EQ(*owned, 0);
}

TEST_F(AlarmClockTest, AnAlarmThatRingsCannotBeCancelledAndIsNotWaitedFor) {
    std::promise<void> begun;
    std::promise<void> end;
    const AlarmId alarm = alarms.set(in(0s), [&, ended = end.get_future().share()] {
        begun.set_value();
        ended.wait();
    });
    begun.get_future().get();
    EXPECT_FALSE(alarms.cancel(alarm));
    end.set_value();
}

TEST_F(AlarmClockTest, AnAlarmMaySetAndCancelAlarms) {
    const AlarmId other = alarms.set(in(2s), [&] { rang.emplace_back("other"); });
    auto done = std::make_shared<std::promise<void>>();
    alarms.set(in(1s), [this, other, done] {
        rang.emplace_back(alarms.cancel(other) ? "cancelled" : "too late");
        alarms.set(in(1s), [done] { done->set_value(); });
    });
    clock.advance(1s);
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(1s);
    done->get_future().get();
    EXPECT_EQ(rang, std::vector<std::string>{"cancelled"});
}

TEST_F(AlarmClockTest, StopWaitsForTheAlarmThatRingsAndDestroysTheOthers) {
    const auto owned = std::make_shared<int>(0);
    std::promise<void> begun;
    alarms.set(in(0s), [&] {
        begun.set_value();
        rang.emplace_back("now");
    });
    alarms.set(in(1s), [owned] { ++*owned; });
    begun.get_future().get();
    alarms.stop();
    EXPECT_EQ(rang, std::vector<std::string>{"now"});
    EXPECT_EQ(owned.use_count(), 1);
    alarms.set(in(0s), [owned] { ++*owned; });
    EXPECT_EQ(owned.use_count(), 1) << "an alarm that is set after the stop must be destroyed";
}

TEST_F(AlarmClockTest, ManyThreadsSetAndCancelWhileTimeGoesOn) {
    constexpr int each = 200;
    std::atomic<int> rung = 0;
    std::atomic<int> cancelled = 0;
    const auto work = [&] {
        for (int i = 0; i < each; ++i) {
            const AlarmId alarm = alarms.set(in(1ms * (i % 7)), [&] { ++rung; });
            if (i % 3 == 0 && alarms.cancel(alarm)) {
                ++cancelled;
            }
            clock.advance(1ms);
        }
    };
    auto ann = std::async(std::launch::async, work);
    auto bob = std::async(std::launch::async, work);
    ann.get();
    bob.get();
    auto last = mark(in(1s));
    clock.advance(1s);
    last.get();
    EXPECT_EQ(rung + cancelled, 2 * each);
}

}  // namespace
}  // namespace holdfast::server

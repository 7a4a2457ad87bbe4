#include "executor/test/manual_alarms.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace holdfast::server::tests {
namespace {

using namespace std::chrono_literals;

class ManualAlarmsTest : public testing::Test {
protected:
    void set(std::chrono::nanoseconds in, const std::string& name) {
        alarms.set(clock.steady_now() + in, [this, name] { rang.push_back(name); });
    }

    ManualClock clock;
    ManualAlarms alarms{clock};
    std::vector<std::string> rang;
};

TEST_F(ManualAlarmsTest, AlarmsRingInOrderAtTheirMoments) {
    const Steady start = clock.steady_now();
    set(2s, "second");
    set(1s, "first");
    set(4s, "later");
    alarms.set(start + 1s, [&] { EXPECT_EQ(clock.steady_now(), start + 1s); });
    EXPECT_EQ(alarms.advance(3s), 3U);
    EXPECT_EQ(rang, (std::vector<std::string>{"first", "second"}));
    EXPECT_EQ(clock.steady_now(), start + 3s);
    EXPECT_EQ(alarms.next(), start + 4s);
}

TEST_F(ManualAlarmsTest, AnAlarmThatAnAlarmSetsRingsInTheSameMove) {
    alarms.set(clock.steady_now() + 1s, [&] { set(1s, "set by an alarm"); });
    EXPECT_EQ(alarms.advance(2s), 2U);
    EXPECT_EQ(rang, std::vector<std::string>{"set by an alarm"});
}

TEST_F(ManualAlarmsTest, ACancelledAlarmNeverRings) {
    const AlarmId alarm = alarms.set(clock.steady_now() + 1s, [&] { rang.emplace_back("rang"); });
    EXPECT_TRUE(alarms.cancel(alarm));
    EXPECT_FALSE(alarms.cancel(alarm));
    EXPECT_EQ(alarms.advance(2s), 0U);
    EXPECT_TRUE(rang.empty());
}

}  // namespace
}  // namespace holdfast::server::tests

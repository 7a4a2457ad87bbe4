#include "event_queue.hpp"

#include "compat/second_limiter.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

std::vector<char> all(EventQueue<char>& events) {
    std::vector<char> order;
    while (const auto what = events.next()) {
        order.push_back(*what);
    }
    return order;
}

TEST(EventQueue, EqualTimesRunInTheOrderInWhichTheyWereScheduled) {
    HOLDFAST_CHECK("poolsim engine.ties");
    EventQueue<char> events(seconds{10});
    events.at(seconds{2}, 'c');
    events.at(seconds{1}, 'a');
    events.at(seconds{2}, 'd');
    events.at(seconds{1}, 'b');
    EXPECT_THAT(all(events), ElementsAre('a', 'b', 'c', 'd'));
    EXPECT_EQ(events.executed(), 4);
}

TEST(EventQueue, AnEventAtTheEndRunsAndALaterOneDoesNot) {
    HOLDFAST_CHECK("poolsim engine.end");
    EventQueue<char> events(seconds{10});
    events.at(seconds{10}, 'a');
    events.at(seconds{10} + Time{1}, 'b');
    EXPECT_THAT(all(events), ElementsAre('a'));
    EXPECT_EQ(events.now(), seconds{10});
    EXPECT_EQ(events.waiting(), 1);
}

TEST(EventQueue, WhatIsScheduledForThisInstantRunsAfterWhatAlreadyWaitsForIt) {
    HOLDFAST_CHECK("poolsim engine.nested");
    EventQueue<char> events(seconds{10});
    events.at(seconds{1}, 'a');
    events.at(seconds{1}, 'b');
    EXPECT_EQ(events.next(), 'a');
    events.after(Time{0}, 'c');
    EXPECT_THAT(all(events), ElementsAre('b', 'c'));
}

TEST(SecondLimiter, GrantsTheLimitInASecondAndSaysWhenToComeBack) {
    HOLDFAST_CHECK("poolsim limiter.grants");
    SecondLimiter limiter(3);
    const Time now = seconds{7} + milliseconds{200};
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(limiter.refusal(now), std::nullopt);
    }
    EXPECT_EQ(limiter.refusal(now), milliseconds{805});
    EXPECT_EQ(limiter.refusal(seconds{8}), std::nullopt) << "a new second has its own permits";
    EXPECT_EQ(limiter.refusal(seconds{8}, 3), milliseconds{1005}) << "two are left, not three";
    EXPECT_EQ(limiter.refusal(seconds{8}, 2), std::nullopt);
}

TEST(SecondLimiter, EndpointsDoNotKnowEachOther) {
    HOLDFAST_CHECK("poolsim limiter.endpoints");
    SecondLimiter one(1);
    SecondLimiter other(1);
    EXPECT_EQ(one.refusal(seconds{1}), std::nullopt);
    EXPECT_EQ(other.refusal(seconds{1}), std::nullopt);
    EXPECT_NE(one.refusal(seconds{1}), std::nullopt);
}

}  // namespace
}  // namespace holdfast::sim

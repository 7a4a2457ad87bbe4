#include "agenda.hpp"

#include "second_limiter.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

std::vector<char> all(Agenda<char>& agenda) {
    std::vector<char> order;
    while (const auto what = agenda.next()) {
        order.push_back(*what);
    }
    return order;
}

TEST(Agenda, EqualTimesRunInTheOrderInWhichTheyWereScheduled) {
    HOLDFAST_CHECK("poolsim engine.ties");
    Agenda<char> agenda(seconds{10});
    agenda.at(seconds{2}, 'c');
    agenda.at(seconds{1}, 'a');
    agenda.at(seconds{2}, 'd');
    agenda.at(seconds{1}, 'b');
    EXPECT_THAT(all(agenda), ElementsAre('a', 'b', 'c', 'd'));
    EXPECT_EQ(agenda.executed(), 4);
}

TEST(Agenda, AnEventAtTheEndRunsAndALaterOneDoesNot) {
    HOLDFAST_CHECK("poolsim engine.end");
    Agenda<char> agenda(seconds{10});
    agenda.at(seconds{10}, 'a');
    agenda.at(seconds{10} + Time{1}, 'b');
    EXPECT_THAT(all(agenda), ElementsAre('a'));
    EXPECT_EQ(agenda.now(), seconds{10});
    EXPECT_EQ(agenda.waiting(), 1);
}

TEST(Agenda, WhatIsScheduledForThisInstantRunsAfterWhatAlreadyWaitsForIt) {
    HOLDFAST_CHECK("poolsim engine.nested");
    Agenda<char> agenda(seconds{10});
    agenda.at(seconds{1}, 'a');
    agenda.at(seconds{1}, 'b');
    EXPECT_EQ(agenda.next(), 'a');
    agenda.after(Time{0}, 'c');
    EXPECT_THAT(all(agenda), ElementsAre('b', 'c'));
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

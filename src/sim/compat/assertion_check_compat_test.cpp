#include "model.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::seconds;

// One service that wants ten and starts after a second; samples are put in by hand.
class AssertionCheckTest : public testing::Test {
protected:
    AssertionCheckTest() {
        scenario.profile = Profile::compat_r;
        scenario.converge_within = seconds{5};
        scenario.stable_for = seconds{3};
        scenario.services.push_back({.name = "history", .target = 10, .start_delay = seconds{1}});
    }

    void owned(std::initializer_list<int> each_second) {
        for (const int size : each_second) {
            const Time at = seconds{result.samples.size() + 1};
            result.samples.push_back({.at = at, .service = 0, .ready = size, .target = 10});
        }
    }
    std::string checked() {
        const auto violations = check_compat(scenario, result);
        return violations.empty() ? "" : violations.front().assertion;
    }

    Scenario scenario;
    Result result;
};

TEST_F(AssertionCheckTest, TheOpenRateMayReachItsLimit) {
    HOLDFAST_CHECK("poolsim assert.open_rate");
    owned({10, 10});
    scenario.opens_per_second_max = 100;
    result.opens = {100, 3};
    EXPECT_EQ(checked(), "");
    result.opens = {3, 101};
    EXPECT_EQ(checked(), "assertMaxConnectsPerSec");
    scenario.opens_per_second_max = -1;
    EXPECT_EQ(checked(), "");
}

TEST_F(AssertionCheckTest, ConvergenceCountsFromTheFirstSampleAndTheDelayAndMayTakeExactlyItsTime) {
    HOLDFAST_CHECK("poolsim assert.converge");
    owned({0, 0, 0, 0, 0, 0, 10, 10});  // From the second on: five seconds later is the seventh.
    EXPECT_EQ(checked(), "");
    result.samples.clear();
    owned({0, 0, 0, 0, 0, 0, 0, 10});
    EXPECT_EQ(checked(), "assertConvergeWithin");
    result.samples.clear();
    owned({10, 9, 9});
    EXPECT_EQ(checked(), "assertConvergeWithin") << "never reached: the first sample is too early";
    result.samples.clear();
    EXPECT_EQ(checked(), "assertConvergeWithin") << "without a sample nothing is shown";
    scenario.converge_within = seconds{-1};
    EXPECT_EQ(checked(), "");
}

TEST_F(AssertionCheckTest, StabilityIsLookedAtForItsWindowAndNoLonger) {
    HOLDFAST_CHECK("poolsim assert.stable");
    owned({0, 10, 10, 10, 10, 9});
    EXPECT_EQ(checked(), "") << "the dip comes four seconds after";
    result.samples.clear();
    owned({0, 10, 10, 10, 9});
    EXPECT_EQ(checked(), "assertStableFor") << "the end of the window belongs to it";
    scenario.stable_for = seconds{-1};
    EXPECT_EQ(checked(), "");
}

TEST_F(AssertionCheckTest, WhoeverNeverConvergesIsNamedBeforeWhoeverDips) {
    HOLDFAST_CHECK("poolsim assert.stable");
    scenario.services.push_back({.name = "matching", .target = 10});
    for (const int size : {0, 10, 9}) {
        const Time at = seconds{result.samples.size() / 2 + 1};
        result.samples.push_back({.at = at, .service = 0, .ready = size, .target = 10});
        result.samples.push_back({.at = at, .service = 1, .ready = 0, .target = 10});
    }
    EXPECT_EQ(checked(), "assertConvergeWithin");
    EXPECT_EQ(check_compat(scenario, result).front().service, "matching");
}

TEST_F(AssertionCheckTest, LentConnectionsAreOwned) {
    owned({0, 10, 10, 10, 10});
    result.samples[2].ready = 4;
    result.samples[2].lent = 6;
    EXPECT_EQ(checked(), "");
}

TEST_F(AssertionCheckTest, EmptyEventsMatterOnlyIfAskedFor) {
    HOLDFAST_CHECK("poolsim assert.zero_empty");
    owned({10, 10, 10});
    scenario.zero_empty = true;
    EXPECT_EQ(checked(), "");
    result.samples[1].counters.empty = 1;
    EXPECT_EQ(checked(), "assertZeroEmptyEvents");
    scenario.zero_empty = false;
    EXPECT_EQ(checked(), "");
}

TEST_F(AssertionCheckTest, TheKeepersModelLooksAtClosures) {
    HOLDFAST_CHECK("poolsim assert.closures");
    scenario.profile = Profile::compat_s;
    scenario.closures_per_second_max = 5;
    owned({10, 10, 10});
    result.samples[1].counters.closed_age = 3;
    result.samples[1].counters.closed_server = 2;
    result.samples[2].counters.closed_age = 8;
    result.samples[2].counters.closed_server = 2;
    EXPECT_EQ(checked(), "");
    result.samples[2].counters.closed_server = 3;
    EXPECT_EQ(checked(), "assertMaxClosurePerSec");
    scenario.sample_every = seconds{2};  // Six in two seconds are three in one.
    EXPECT_EQ(checked(), "");
    scenario.closures_per_second_max = 2;
    EXPECT_EQ(check_compat(scenario, result).front().value, 3) << "two and a half, rounded up";
}

}  // namespace
}  // namespace holdfast::sim

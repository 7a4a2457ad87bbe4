#include "compat/reservoir.hpp"

#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::seconds;

// Room for three, and a guard of ten seconds.
class ReservoirStory : public testing::Test {
protected:
    void add(std::uint64_t id, Time expires) {
        ASSERT_TRUE(reservoir.add({.id = id, .expires = expires}));
    }

    // Which one is lent; 0 if none.
    std::uint64_t lent_at(Time now) {
        const auto lent = reservoir.check_out(now);
        return lent ? lent->id : 0;
    }

    Counters counters;
    Reservoir reservoir{3, seconds{10}, counters};
};

TEST_F(ReservoirStory, LendsTheFirstThatIsStillGood) {
    HOLDFAST_CHECK("poolsim reservoir.checkout");
    add(1, seconds{100});
    add(2, seconds{109});
    add(3, seconds{110});
    const auto lent = reservoir.check_out(seconds{100});
    ASSERT_TRUE(lent);
    EXPECT_EQ(lent->id, 3) << "exactly the guard is left, which is enough";
    EXPECT_EQ(counters.discard_expired, 1);
    EXPECT_EQ(counters.discard_guard, 1);
    EXPECT_EQ(counters.checkouts, 1);
    EXPECT_EQ(counters.empty, 0);
    EXPECT_EQ(reservoir.lent(), 1);
}

TEST_F(ReservoirStory, AnEmptyLineIsOneEmptyEvent) {
    HOLDFAST_CHECK("poolsim reservoir.empty");
    add(1, seconds{5});
    EXPECT_FALSE(reservoir.check_out(seconds{6}));
    EXPECT_EQ(counters.empty, 1);
    EXPECT_EQ(counters.checkouts, 0);
}

TEST_F(ReservoirStory, TakesBackWhatIsGoodIfThereIsRoom) {
    HOLDFAST_CHECK("poolsim reservoir.return");
    add(1, seconds{100});
    const auto lent = reservoir.check_out(seconds{1});
    ASSERT_TRUE(lent);
    reservoir.give_back(seconds{2}, *lent);
    EXPECT_EQ(reservoir.idle(), 1);
    EXPECT_EQ(reservoir.lent(), 0);
    reservoir.give_back(seconds{95}, {.id = 7, .expires = seconds{100}});
    EXPECT_EQ(counters.discard_guard, 1);
    reservoir.give_back(seconds{95}, {.id = 8, .expires = seconds{95}});
    EXPECT_EQ(counters.discard_expired, 1);
    add(2, seconds{200});
    add(3, seconds{200});
    reservoir.give_back(seconds{2}, {.id = 9, .expires = seconds{200}});
    EXPECT_EQ(counters.discard_full, 1);
}

TEST_F(ReservoirStory, ANewOneIsCountedOnlyIfThereIsRoom) {
    HOLDFAST_CHECK("poolsim reservoir.add");
    add(1, seconds{100});
    add(2, seconds{100});
    add(3, seconds{100});
    EXPECT_FALSE(reservoir.add({.id = 4, .expires = seconds{100}}));
    EXPECT_EQ(counters.opens, 3);
    EXPECT_EQ(counters.discard_full, 1);
}

TEST_F(ReservoirStory, AScanThrowsAwayTheOldAndKeepsTheOrder) {
    HOLDFAST_CHECK("poolsim reservoir.scan");
    add(1, seconds{300});
    add(2, seconds{100});
    add(3, seconds{200});
    EXPECT_EQ(reservoir.scan(seconds{90}), 0);
    EXPECT_EQ(reservoir.scan(seconds{90} + Time{1}), 1);
    EXPECT_EQ(counters.discard_guard, 1);
    EXPECT_EQ(reservoir.scan(seconds{200}), 1);
    EXPECT_EQ(counters.discard_expired, 1);
    EXPECT_EQ(lent_at(seconds{200}), 1);
}

TEST_F(ReservoirStory, DroppingAllForgetsTheLentButTheyComeBack) {
    HOLDFAST_CHECK("poolsim reservoir.drop_all");
    add(1, seconds{100});
    add(2, seconds{100});
    const auto lent = reservoir.check_out(seconds{1});
    ASSERT_TRUE(lent);
    reservoir.drop_all();
    EXPECT_EQ(reservoir.idle() + reservoir.lent(), 0);
    EXPECT_EQ(counters.discards(), 0);
    EXPECT_EQ(counters.dropped, 2);
    reservoir.give_back(seconds{2}, *lent);
    EXPECT_EQ(reservoir.idle(), 1);
}

TEST_F(ReservoirStory, AFractionIsCutToAWholeNumberButAtLeastOneAndTheOldestGo) {
    HOLDFAST_CHECK("poolsim reservoir.drop_fraction");
    reservoir.drop_fraction(0.5);
    EXPECT_EQ(counters.dropped, 0) << "of nothing";
    add(1, seconds{100});
    reservoir.drop_fraction(0.1);
    EXPECT_EQ(reservoir.idle(), 0) << "of one";
    add(2, seconds{100});
    add(3, seconds{100});
    add(4, seconds{100});
    reservoir.drop_fraction(0.6);
    EXPECT_EQ(reservoir.idle(), 2) << "1.8 is cut to 1";
    EXPECT_EQ(lent_at(seconds{1}), 3);
    EXPECT_EQ(counters.discards(), 0);
}

}  // namespace
}  // namespace holdfast::sim

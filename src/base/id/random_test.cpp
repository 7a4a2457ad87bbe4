#include <holdfast/base/random.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace holdfast {
namespace {

// Computed by another program: a seed written down today must give the same run in ten years.
TEST(Random, ASeedGivesTheSameSequenceEverywhere) {
    Random random(42);
    EXPECT_EQ(random.next(), 0x15780b2e0c2ec716U);
    EXPECT_EQ(random.next(), 0x6104d9866d113a7eU);
    EXPECT_EQ(random.next(), 0xae17533239e499a1U);
    EXPECT_EQ(random.next(), 0xecb8ad4703b360a1U);
}

TEST(Random, NeighbouringSeedsGiveUnrelatedSequences) {
    std::set<std::uint64_t> first;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        first.insert(Random(seed).next());
    }
    EXPECT_EQ(first.size(), 1000U);
}

RC_GTEST_PROP(Random, BelowStaysBelowItsBound, (std::uint64_t seed, std::uint64_t bound)) {
    RC_PRE(bound > 0U);
    Random random(seed);
    for (int i = 0; i < 20; ++i) {
        RC_ASSERT(random.below(bound) < bound);
    }
}

// With a plain remainder the lower half of this bound would come twice as often as the upper.
TEST(Random, BelowDoesNotFavourSmallResults) {
    Random random(7);
    const std::uint64_t bound = (std::uint64_t{1} << 63U) + (std::uint64_t{1} << 62U);
    int low = 0;
    constexpr int draws = 30'000;
    for (int i = 0; i < draws; ++i) {
        low += random.below(bound) < bound / 2 ? 1 : 0;
    }
    EXPECT_NEAR(low, draws / 2.0, 500);  // Fair: 15,000 with a deviation of 87; biased: 20,000.
}

TEST(Random, BelowReachesEveryResult) {
    Random random(1);
    std::array<int, 6> seen{};
    for (int i = 0; i < 6000; ++i) {
        ++seen.at(random.below(6));
    }
    for (const int count : seen) {
        EXPECT_NEAR(count, 1000, 200);
    }
    EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, UnitStaysInItsInterval) {
    Random random(3);
    double sum = 0;
    for (int i = 0; i < 10'000; ++i) {
        const double value = random.unit();
        ASSERT_GE(value, 0.0);
        ASSERT_LT(value, 1.0);
        sum += value;
    }
    EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(RandomDeathTest, BelowZeroIsABug) {
    EXPECT_DEATH(static_cast<void>(Random(1).below(0)), "broken invariant: bound > 0");
}

TEST(SecureRandom, FillsEveryByte) {
    std::vector<std::byte> once(10'000);  // More than getrandom promises in one piece.
    secure_random(once);
    const std::set<std::byte> values(once.begin(), once.end());
    EXPECT_EQ(values.size(), 256U);
    EXPECT_NE(secure_seed(), secure_seed());
}

}  // namespace
}  // namespace holdfast

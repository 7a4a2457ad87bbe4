#include "runtime/lease_length.hpp"

#include <gtest/gtest.h>

namespace holdfast::flow {
namespace {

using namespace std::chrono_literals;

TEST(LeaseLengthTest, IsWhatWasAskedForWhileLeasesAreRenewedInTime) {
    LeaseLength lease(3s);
    const Steady now{};
    for (int i = 0; i < 100; ++i) {
        lease.looked_after(1s, now + i * 1s);
        lease.looked_after(2s, now + i * 1s);
    }
    EXPECT_EQ(lease.get(), 3s);
}

// The worst moment: everybody's leases run out before anybody has done anything with them.
TEST(LeaseLengthTest, GrowsUntilItIsEnough) {
    LeaseLength lease(3s);
    const Steady now{};
    lease.looked_after(2001ms, now);
    EXPECT_EQ(lease.get(), 6s);
    for (int i = 0; i < 10; ++i) {
        lease.looked_after(7s, now);
    }
    EXPECT_EQ(lease.get(), 12s) << "a third of it is left";
    for (int i = 0; i < 10; ++i) {
        lease.looked_after(1h, now);
    }
    EXPECT_EQ(lease.get(), 48s) << "a dead process must not be waited for without end";
}

TEST(LeaseLengthTest, GoesBackWhenTheMachineHasBeenInTimeForAWhile) {
    LeaseLength lease(3s);
    Steady now{};
    lease.looked_after(7s, now);
    lease.looked_after(7s, now);
    ASSERT_EQ(lease.get(), 12s);
    now += LeaseLength::relax_after;
    lease.looked_after(5s, now);
    EXPECT_EQ(lease.get(), 12s) << "half of it would not have been enough";
    now += LeaseLength::relax_after - 1s;
    lease.looked_after(1s, now);
    EXPECT_EQ(lease.get(), 12s) << "not yet";
    now += 1s;
    lease.looked_after(1s, now);
    EXPECT_EQ(lease.get(), 6s);
    lease.looked_after(1s, now);
    EXPECT_EQ(lease.get(), 6s) << "step by step";
    now += LeaseLength::relax_after;
    lease.looked_after(1s, now);
    EXPECT_EQ(lease.get(), 3s);
    now += LeaseLength::relax_after;
    lease.looked_after(1s, now);
    EXPECT_EQ(lease.get(), 3s);
}

}  // namespace
}  // namespace holdfast::flow

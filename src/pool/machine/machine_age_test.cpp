// How old a connection is, from when on that counts, and what a life may be.
#include "machine/test/machine_fixture.hpp"
#include "test/pool_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/pool/machine.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

// Every connection lives for exactly ten minutes.
Config ten_minutes() {
    Config config;
    config.target = 2;
    config.life = 10min;
    config.life_jitter = 0s;
    config.guard = 1min;
    config.limits.spread_from = 1.0;
    config.limits.spread_margin = 0s;
    return config;
}

// A connection that is still being opened has no birth yet. So it has no age and no end, though its
// opening may take longer than it will live.
TEST(MachineAge, CountsFromTheMomentAConnectionIsOpen) {
    HOLDFAST_CHECK("connections entry.age");
    HOLDFAST_CHECK("connections entry.age_unset");
    HOLDFAST_CHECK("connections entry.expires_unset");
    Script pool(ten_minutes());
    EXPECT_EQ(pool.machine.oldest(), std::nullopt);
    pool.borrow(ann, 3h);
    const ConnectionId slow = pool.said_of<Open>().at(0).connection;
    pool.advance(2h);
    EXPECT_THAT(pool.tell(Tick{}), IsEmpty());
    EXPECT_EQ(pool.machine.counts().opening, 1);
    EXPECT_EQ(pool.machine.oldest(), std::nullopt);

    pool.tell(Opened{slow});
    ASSERT_THAT(pool.said_of<Lend>(), SizeIs(1));
    const Steady opened = pool.now;
    pool.advance(5min);
    EXPECT_EQ(pool.machine.oldest(), opened) << "lent or not, it is five minutes old";
    EXPECT_THAT(pool.tell(GiveBack{.connection = slow}), IsEmpty());
    EXPECT_EQ(pool.machine.oldest(), opened);
    EXPECT_EQ(pool.machine.next_wake(), opened + 9min + 1ns) << "with less than a minute left";
    pool.advance(4min + 1ns);
    pool.tell(Tick{});
    ASSERT_THAT(pool.said_of<Close>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Close>()[0].reason, Reason::expired);
    EXPECT_EQ(pool.machine.oldest(), std::nullopt) << "what is being closed has no age any more";
}

TEST(MachineAge, ALifeOfNoneIsRefused) {
    HOLDFAST_CHECK("connections entry.zero_life");
    HOLDFAST_CHECK("connections entry.negative_life");
    for (const auto life : {0s, -1s}) {
        Config config = ten_minutes();
        config.guard = 0s;
        config.life = life;
        EXPECT_THROW(Machine(config, 1), InvalidArgument) << life.count();
    }
}

}  // namespace
}  // namespace holdfast::pool

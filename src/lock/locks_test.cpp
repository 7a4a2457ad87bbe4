#include <holdfast/lock/locks.hpp>

#include "hooks.hpp"
#include "statements/statements.hpp"
#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/catalogue_rules.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::lock {
namespace {

using namespace std::chrono_literals;

TEST(LockStatements, KeepTheRulesOfTheCatalogue) {
    EXPECT_EQ(test::broken_rules(catalogue()), std::vector<std::string>{});
}

class LockStory : public testing::TestWithParam<test::Backend> {
protected:
    Grant take(std::string_view key, std::chrono::milliseconds ttl = 10s) {
        return std::get<Grant>(locks().acquire(key, ttl));
    }
    Locks& locks() {
        if (!locks_) {
            // A turn in line does not lapse because the machine is busy.
            locks_.emplace(db, LocksOptions{}, Locks::Hooks{.reservation = 20s});
        }
        return *locks_;
    }

    test::Database db{GetParam(), schema_part()};
    std::optional<Locks> locks_;
};

// The worst moment: a holder is paused by its host, loses its lease, and wakes up sure of itself.
TEST_P(LockStory, AStalledHolderHasAnOlderFenceThanItsRival) {
    const Grant ann = take("invoice/7");
    EXPECT_TRUE(std::holds_alternative<Busy>(locks().acquire("invoice/7", 10s)));

    db.advance_clock(12s);  // Ann is paused.
    const Grant bob = take("invoice/7");
    EXPECT_GT(bob.fence, ann.fence);

    EXPECT_FALSE(locks().extend(ann.lock_id, 10s).ok) << "a lost lock must stay lost";
    EXPECT_FALSE(locks().release(ann.lock_id).ok) << "it is Bob's now";
    EXPECT_TRUE(locks().is_locked("invoice/7"));
    EXPECT_TRUE(locks().release(bob.lock_id).ok);
    EXPECT_FALSE(locks().is_locked("invoice/7"));
    EXPECT_EQ(to_string(take("invoice/7").fence), "000000000000003");
}

TEST_P(LockStory, TheFirstInLineIsCalledAndTheKeyIsKeptForThem) {
    const Grant ann = take("k");
    const LockId bob = LockId::fresh();
    const auto ticket = locks().line_up("k", bob, Deadline::after(10s));
    ASSERT_TRUE(ticket->join());
    ASSERT_FALSE(ticket->join());
    EXPECT_TRUE(std::holds_alternative<Busy>(locks().acquire("k", 10s, {.lock_id = bob})));

    EXPECT_TRUE(locks().release(ann.lock_id).ok);
    ticket->wait(std::chrono::steady_clock::now() + 10s, {});
    EXPECT_TRUE(std::holds_alternative<Busy>(locks().acquire("k", 10s))) << "it is Bob's turn";
    EXPECT_EQ(locks().find("k"), std::nullopt) << "nobody holds it yet";
    const auto granted = std::get<Grant>(locks().acquire("k", 10s, {.lock_id = bob}));
    ticket->arrived();
    EXPECT_EQ(to_string(granted.fence), "000000000000002");
    EXPECT_TRUE(locks().release(granted.lock_id).ok);
    EXPECT_FALSE(locks().is_locked("k"));
}

INSTANTIATE_TEST_SUITE_P(Every, LockStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::lock

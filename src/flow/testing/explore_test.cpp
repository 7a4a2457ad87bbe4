#include <holdfast/flow_testing/explore.hpp>

#include <set>

#include "test/loan_fixture.hpp"
#include <gtest/gtest.h>

namespace holdfast::flow::tests {

namespace {

using flow::test::Explored;
using flow::test::Unexpected;
using flow::test::World;

// Which bank answers first wins.
Workflow<int> race(Context& ctx, std::string prefix) {
    std::vector<Op<int>> offers;
    for (const char* bank : {"a", "bb", "ccc"}) {
        offers.push_back(ctx.activity<&quote>(prefix + bank));
    }
    auto first = co_await any(std::move(offers));
    co_return first.second;
}

}  // namespace

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::race, "test.race");

namespace holdfast::flow::tests {

namespace {

TEST(Explore, EveryOrderOfAllGivesTheSameResult) {
    std::set<std::string> orders;
    const Explored explored = test::explore([&](World& world) {
        std::string order;
        world.stub<&quote>([&](std::string bank) {
            order += bank + " ";
            return quote(bank);
        });
        world.start<&tender>("t", "");
        EXPECT_EQ(*world.result<&tender>("t"), 3) << world.order();
        orders.insert(order);
    });
    EXPECT_TRUE(explored.all);
    EXPECT_EQ(orders.size(), 6U) << "three can end in six orders";
    EXPECT_GT(explored.orders, 6) << "and be seen together or one by one";
}

TEST(Explore, EachBranchOfAnyWinsInSomeOrder) {
    std::set<int> winners;
    const Explored explored = test::explore([&](World& world) {
        world.activity<&quote>();
        world.start<&race>("r", "");
        winners.insert(*world.result<&race>("r"));
    });
    EXPECT_TRUE(explored.all);
    EXPECT_EQ(winners, (std::set<int>{1, 2, 3}));
}

TEST(Explore, AnActivityMayBeLaterThanItsTimeout) {
    std::set<std::string> ends;
    const Explored explored = test::explore(
        [&](World& world) {
            world.activity<&quote>();
            world.start<&hurry>("h", "bank");
            world.advance(3min);
            ends.insert(*world.result<&hurry>("h"));
        },
        {.late_activities = true});
    EXPECT_TRUE(explored.all);
    EXPECT_EQ(ends.size(), 2U) << "in time, or timed out";
    EXPECT_TRUE(ends.contains("4"));
}

void must_not_lose(World& world) {
    world.activity<&quote>();
    world.start<&race>("r", "");
    if (*world.result<&race>("r") == 3) {
        throw std::runtime_error("ccc has won");
    }
}

TEST(Explore, ABrokenInvariantComesWithTheOrderThatBreaksIt) {
    try {
        test::explore(must_not_lose);
        FAIL() << "in some order ccc wins";
    } catch (const Unexpected& error) {
        EXPECT_NE(std::string(error.what()).find("ccc has won"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("{2"), std::string::npos) << error.what();
    }
    EXPECT_THROW(test::run_order(must_not_lose, {2}), Unexpected);
    EXPECT_NO_THROW(test::run_order(must_not_lose, {0}));
}

TEST(Explore, MoreOrdersThanAllowedAreDrawnAtRandom) {
    const Explored explored = test::explore(
        [](World& world) {
            world.activity<&quote>();
            for (const char* id : {"a", "b"}) {
                world.start<&tender>(id, "");
            }
            EXPECT_EQ(*world.result<&tender>("a"), 3) << world.order();
            EXPECT_EQ(*world.result<&tender>("b"), 3) << world.order();
        },
        {.orders_max = 30, .seed = 7});
    EXPECT_FALSE(explored.all);
    EXPECT_EQ(explored.orders, 30);
}

}  // namespace

}  // namespace holdfast::flow::tests

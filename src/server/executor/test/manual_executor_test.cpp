#include "executor/test/manual_executor.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace holdfast::server::tests {
namespace {

using Order = std::vector<std::string>;

Order order_of(std::optional<std::uint64_t> seed) {
    ManualExecutor executor(seed);
    Order order;
    for (const std::string job : {"a1", "a2", "b1", "b2", "c1"}) {
        executor.post(job.substr(0, 1), [&order, job] { order.push_back(job); });
    }
    executor.run_all();
    return order;
}

TEST(ManualExecutor, RunsNothingUntilItIsTold) {
    ManualExecutor executor;
    int ran = 0;
    executor.post("ann", [&] { ++ran; });
    EXPECT_EQ(ran, 0);
    EXPECT_TRUE(executor.run_one());
    EXPECT_EQ(ran, 1);
    EXPECT_FALSE(executor.run_one());
}

TEST(ManualExecutor, RunsJobsAsTheyWerePostedWithoutASeed) {
    EXPECT_EQ(order_of({}), (Order{"a1", "a2", "b1", "b2", "c1"}));
}

TEST(ManualExecutor, ASeedMixesKeysAndKeepsTheOrderOfEach) {
    std::set<Order> orders;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const Order order = order_of(seed);
        EXPECT_EQ(order, order_of(seed)) << "a seed must give one order";
        const auto at = [&](const std::string& job) {
            return std::ranges::find(order, job) - order.begin();
        };
        EXPECT_LT(at("a1"), at("a2"));
        EXPECT_LT(at("b1"), at("b2"));
        orders.insert(order);
    }
    EXPECT_GT(orders.size(), 5U);
}

TEST(ManualExecutor, WhatIsDroppedNeverRuns) {
    ManualExecutor executor;
    int ran = 0;
    executor.post("ann", [&] { ++ran; });
    executor.drop_all();
    EXPECT_EQ(executor.run_all(), 0U);
    EXPECT_EQ(ran, 0);
}

}  // namespace
}  // namespace holdfast::server::tests

// The same scenario under every order in which its activities can end.
//
//   auto explored = flow::test::explore([](flow::test::World& world) {
//       world.stub<&quote>(...);
//       world.start<&race>("r");
//       EXPECT_EQ(*world.result<&race>("r"), 3) << world.order();
//   });
//   EXPECT_TRUE(explored.all);
//
// What is varied: which of the running activities ends next, whether the workflow sees it before
// the next one ends, and, if asked for, whether an activity ends only after the clock was moved.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <holdfast/flow_testing/world.hpp>

namespace holdfast::flow::test {

struct ExploreOptions {
    // If there are more orders, half of these are the first ones and half are drawn at random.
    int orders_max = 500;
    std::uint64_t seed = 1;
    bool late_activities = false;
};

struct Explored {
    int orders = 0;    // How many were tried.
    bool all = false;  // There are no others.
};

using Scenario = std::function<void(World&)>;

// Each order gets a new world. What the scenario throws comes out as Unexpected, with the order
// that led to it. Requires: the scenario does the same in the same order.
Explored explore(const Scenario& scenario, const ExploreOptions& options = {});

// Runs one order again, as a failure or World::order() printed it.
void run_order(const Scenario& scenario,
               std::vector<int> order,
               const ExploreOptions& options = {});

}  // namespace holdfast::flow::test

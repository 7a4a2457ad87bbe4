// Workflows that start later, and those that run by a schedule.
#include "runtime/test/runtime_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {

Workflow<std::int64_t> tally(Context& ctx);
Workflow<Unit> nap(Context& ctx);

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::tally, "test.tally");
HOLDFAST_NAME(holdfast::flow::tests::nap, "test.nap");

namespace holdfast::flow::tests {

// Counts its own runs; every second one fails.
Workflow<std::int64_t> tally(Context& ctx) {
    const std::int64_t runs = ctx.kv().get<std::int64_t>("runs").value_or(0) + 1;
    ctx.kv().set("runs", runs);
    co_await ctx.activity<&greet>("tally");
    if (runs % 2 == 0) {
        throw Failure("Even", "no");
    }
    co_return runs;
}

Workflow<Unit> nap(Context& ctx) {
    co_await ctx.sleep(30min);
    co_return Unit{};
}

namespace {

class Schedule : public testing::TestWithParam<test::Backend> {
protected:
    Schedule() {
        // Just after a full hour, so that the test knows what comes when.
        const auto hour = std::chrono::ceil<std::chrono::hours>(store.provider().now());
        place.db.advance_clock(hour - store.provider().now());
    }
    StoreFixture place{GetParam()};
    Store& store = *place.store;
    Client client{store};
    std::optional<Runtime> runtime{std::in_place, store, registry(), manual_options()};

    static Registry registry() {
        Registry registry = test_registry();
        registry.workflow<&tally>();
        registry.workflow<&nap>();
        return registry;
    }
    void advance(std::chrono::microseconds by) {
        place.db.advance_clock(by);
        runtime->run_until_idle();
    }
    Status status(std::string_view id) { return client.info(id)->status; }
};

TEST_P(Schedule, ADelayedStartWaitsAndCanBeCancelled) {
    client.start_with<&hello>({.delay = 1h}, "one", "Ann");
    client.start_with<&hello>({.delay = 24h}, "two", "Bob");
    runtime->run_until_idle();
    EXPECT_EQ(status("one"), Status::pending);
    ASSERT_TRUE(client.info("one")->due);
    EXPECT_GT(*client.info("one")->due, store.provider().now() + 59min);
    client.cancel("two", "changed my mind");
    runtime->run_until_idle();
    EXPECT_EQ(status("two"), Status::cancelled) << "nobody waits a day for a cancellation";
    EXPECT_EQ(seen.of("greet Bob"), 0);
    advance(1h);
    EXPECT_EQ(status("one"), Status::completed);
}

TEST_P(Schedule, ADelayedStartCanBeTerminated) {
    client.start_with<&hello>({.delay = 24h}, "one", "Ann");
    client.terminate("one", "enough");
    runtime->run_until_idle();
    EXPECT_EQ(status("one"), Status::cancelled);
    EXPECT_EQ(seen.of("greet Ann"), 0);
}

TEST_P(Schedule, RunsAgainAfterItHasCompletedOrFailed) {
    client.start_with<&tally>({.cron = "*/10 * * * *"}, "one");
    runtime->run_until_idle();
    EXPECT_EQ(seen.of("greet tally"), 0) << "first at the next time that fits";
    for (int run = 1; run <= 3; ++run) {
        advance(10min);
        EXPECT_EQ(seen.of("greet tally"), run);
        EXPECT_EQ(status("one"), Status::pending);
        EXPECT_EQ(client.kv<std::int64_t>("one", "runs"), run);
    }
    const std::vector<ExecutionInfo> executions = client.executions("one");
    ASSERT_EQ(executions.size(), 4U);
    EXPECT_EQ(executions[0].status, Status::completed);
    EXPECT_EQ(executions[0].output, "1");
    EXPECT_EQ(executions[1].status, Status::failed);
    EXPECT_EQ(executions[2].status, Status::completed);
    EXPECT_EQ(client.info("one")->cron, "*/10 * * * *");
}

TEST_P(Schedule, RunsThatWereMissedAreLeftOut) {
    client.start_with<&tally>({.cron = "@every 10m"}, "one");
    runtime.reset();  // No worker runs for five hours.
    place.db.advance_clock(5h + 3min);
    runtime.emplace(store, registry(), manual_options());
    runtime->run_until_idle();
    EXPECT_EQ(seen.of("greet tally"), 1);
    const std::optional<Moment> due = client.info("one")->due;
    ASSERT_TRUE(due);
    EXPECT_GT(*due, store.provider().now());
    EXPECT_LE(*due, store.provider().now() + 10min);
}

TEST_P(Schedule, MessagesWaitForTheNextRunAndACancelEndsTheSchedule) {
    client.start_with<&listener>({.cron = "@hourly"}, "one", 1);
    EXPECT_EQ(client.signal("one", inbox, std::string("a")), Delivery::delivered);
    runtime->run_until_idle();
    EXPECT_EQ(status("one"), Status::pending) << "a message is no reason to run earlier";
    advance(1h);
    EXPECT_EQ(client.executions("one")[0].output, "\"a\"");
    EXPECT_EQ(status("one"), Status::pending);
    client.cancel("one", "enough");
    runtime->run_until_idle();
    EXPECT_EQ(status("one"), Status::cancelled);
    advance(2h);
    EXPECT_EQ(client.executions("one").size(), 2U);
}

// It tidies up and returns: that is the end of this run, and there is to be no other.
TEST_P(Schedule, ARunThatCleansUpWhenItIsCancelledIsTheLast) {
    client.start_with<&cleaner>({.cron = "@hourly"}, "one");
    advance(1h);
    EXPECT_EQ(status("one"), Status::running);
    client.cancel("one", "enough");
    runtime->run_until_idle();
    EXPECT_EQ(status("one"), Status::completed);
    EXPECT_EQ(seen.of("greet clean-up"), 1);
    advance(2h);
    EXPECT_EQ(client.executions("one").size(), 1U);
}

// No worker ran when the run came to its end, nor when the schedule was cancelled: both are found
// in the same turn.
TEST_P(Schedule, AnEndThatIsFoundTogetherWithARequestToStopIsTheLast) {
    client.start_with<&nap>({.cron = "@hourly"}, "cancelled");
    client.start_with<&nap>({.cron = "@hourly"}, "terminated");
    client.start_with<&nap>({.cron = "@hourly"}, "wanted");
    advance(1h);
    place.db.advance_clock(31min);
    client.cancel("cancelled", "enough");
    client.terminate("terminated", "enough");
    runtime->run_until_idle();
    EXPECT_EQ(status("cancelled"), Status::completed);
    EXPECT_EQ(status("terminated"), Status::completed);
    advance(2h);
    EXPECT_EQ(client.executions("cancelled").size(), 1U);
    EXPECT_EQ(client.executions("terminated").size(), 1U);
    EXPECT_GT(client.executions("wanted").size(), 1U);
}

TEST_P(Schedule, ACrashDoesNotEndTheSchedule) {
    client.start_with<&tally>({.cron = "@every 1h"}, "one");
    for (int run = 1; run <= 3; ++run) {
        advance(1h + 1s);
        runtime.reset();
        runtime.emplace(store, registry(), manual_options());
    }
    runtime->run_until_idle();
    EXPECT_EQ(client.kv<std::int64_t>("one", "runs"), 3);
}

TEST_P(Schedule, AWorkflowThatContinuesAsNewKeepsIt) {
    client.start_with<&loop>({.cron = "@hourly"}, "one", 1, 3);
    advance(1h);
    EXPECT_EQ(status("one"), Status::pending);
    const std::vector<ExecutionInfo> executions = client.executions("one");
    ASSERT_EQ(executions.size(), 4U);
    EXPECT_EQ(executions[1].status, Status::continued);
    EXPECT_EQ(executions[2].status, Status::completed);
}

TEST_P(Schedule, WhatIsNoScheduleIsRefusedAtTheDoor) {
    EXPECT_EQ(test::code_of([&] { client.start_with<&tally>({.cron = "soon"}, "one"); }),
              Code::invalid_argument);
    EXPECT_EQ(client.info("one"), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Every, Schedule, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

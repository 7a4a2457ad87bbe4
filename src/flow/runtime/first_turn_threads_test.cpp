// Starts that a runtime of the same process commits together with their first turn.
#include <latch>
#include <thread>

#include "runtime/test/runtime_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {
namespace {

// Workflow code that blocks, which it must not. Set by the test.
std::latch* gate = nullptr;
Workflow<std::string> blocked(Context& ctx);
Workflow<std::int64_t> hasty(Context& ctx, std::int64_t round);

}  // namespace
}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::blocked, "test.blocked");
HOLDFAST_NAME(holdfast::flow::tests::hasty, "test.hasty");

namespace holdfast::flow::tests {
namespace {

Workflow<std::string> blocked(Context& ctx) {
    gate->wait();
    std::string text = co_await ctx.activity<&greet>("late");
    co_return text;
}

// Continues as new without waiting for anything.
Workflow<std::int64_t> hasty(Context&, std::int64_t round) {
    if (round < 3) {
        co_return again(round + 1);
    }
    co_return round;
}

class FirstTurns : public testing::TestWithParam<test::Backend> {
protected:
    StoreFixture place{GetParam()};
    Store& store = *place.store;
    Client client{store};
    Runtime runtime{store, with_blocked(), {}};

    static Registry with_blocked() {
        Registry registry = test_registry();
        registry.workflow<&blocked>().workflow<&hasty>();
        return registry;
    }
};

TEST_P(FirstTurns, AChainOfStepsTakesOneCommitForEachStepAndOneMore) {
    client.start<&chain>("warm", 1);
    ASSERT_EQ(*client.result<&chain>("warm", 30s), 1);
    constexpr int steps = 5;
    const auto before = place.db->driver_stats();
    const auto turns = runtime.stats().commits;
    client.start<&chain>("chain", steps);
    ASSERT_EQ(*client.result<&chain>("chain", 30s), steps);
    EXPECT_EQ(runtime.stats().commits - turns, steps + 1);
    if (GetParam() == test::Backend::sqlite) {
        EXPECT_EQ(place.db->driver_stats().commits - before.commits, steps + 1);
    }
}

TEST_P(FirstTurns, AnIdThatIsTakenIsAnAnswer) {
    client.start<&hello>("ann", "Ann");
    EXPECT_EQ(holdfast::test::code_of([&] { client.start<&hello>("ann", "Ann"); }),
              Code::already_exists);
    StartOptions again;
    again.duplicate = DuplicatePolicy::use_existing;
    EXPECT_FALSE(client.start_with<&hello>(again, "ann", "Ann"));
    EXPECT_EQ(*client.result<&hello>("ann", 30s), "hello Ann");
    EXPECT_FALSE(client.start_with<&hello>(again, "ann", "Ann"));
    EXPECT_EQ(seen.of("greet Ann"), 1);
}

TEST_P(FirstTurns, MailThatCameBeforeTheStartIsTakenFirst) {
    EXPECT_EQ(client.signal("listener", inbox, std::string("a")), Delivery::early);
    client.start<&listener>("listener", 2);
    EXPECT_EQ(client.signal("listener", inbox, std::string("b")), Delivery::delivered);
    EXPECT_EQ(*client.result<&listener>("listener", 30s), "ab");
}

// A start promises that it is stored, not that its code has run.
TEST_P(FirstTurns, CodeThatBlocksDoesNotBlockTheStart) {
    std::latch open{1};
    gate = &open;
    client.start<&blocked>("blocked");
    EXPECT_EQ(client.info("blocked")->status, Status::pending);
    open.count_down();
    EXPECT_EQ(*client.result<&blocked>("blocked", 30s), "hello late");
    EXPECT_EQ(seen.of("greet late"), 1);
}

// The only thread is busy, so the client starts it by itself, and the runtime finds it as anybody
// would: it must not forget that it has claimed it because a first turn is in the line.
TEST_P(FirstTurns, AnInstanceThatIsClaimedBehindItsOwnFirstTurnGoesOnAtOnce) {
    ASSERT_TRUE(runtime.drain(10s).clean());
    RuntimeOptions options;
    options.workflow_threads = 1;
    options.workflow_lease = 1h;  // What is forgotten is not seen again.
    Runtime busy(store, with_blocked(), options);
    client.start<&hello>("first", "Ann");  // From now on it has heard the clock.
    ASSERT_EQ(*client.result<&hello>("first", 30s), "hello Ann");
    std::latch open{1};
    gate = &open;
    client.start<&blocked>("blocked");
    client.start<&hello>("second", "Bob");
    while (place.db.number("SELECT count(*) FROM flow_instances WHERE instance_id = 'second' "
                           "AND locked_until_us > 0") == 0) {
        std::this_thread::yield();
    }
    open.count_down();
    EXPECT_EQ(*client.result<&hello>("second", 30s), "hello Bob");
    EXPECT_EQ(*client.result<&blocked>("blocked", 30s), "hello late");
}

TEST_P(FirstTurns, AnIdThatCannotBeStoredIsRefusedAndHarmsNobody) {
    const std::string endless(300, 'x');
    EXPECT_EQ(holdfast::test::code_of([&] { client.start<&hello>(endless, "Ann"); }),
              Code::invalid_argument);
    client.start<&hello>("ann", "Ann");
    EXPECT_EQ(*client.result<&hello>("ann", 30s), "hello Ann");
}

TEST_P(FirstTurns, OneThatContinuesAtOnceStillStarts) {
    client.start<&hasty>("hasty", 1);
    EXPECT_EQ(*client.result<&hasty>("hasty", 30s), 3);
    EXPECT_EQ(client.executions("hasty").size(), 3U);
}

// A wait that is answered without the database says the same as one that is not.
TEST_P(FirstTurns, WhatAWaiterIsToldIsWhatIsStored) {
    client.start<&retrier>("fails", 5, 1);
    const auto failed = client.result<&retrier>("fails", 30s);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.failure(), Client::failure_of(*client.info("fails")));
    const InstanceInfo info = client.wait("fails", 30s);
    EXPECT_EQ(info.status, Status::failed);
    EXPECT_TRUE(info.completed);
}

INSTANTIATE_TEST_SUITE_P(Every, FirstTurns, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

// Whole workflows with real threads: what only shows when things happen at once.
#include <atomic>
#include <barrier>
#include <latch>
#include <thread>

#include "runtime/test/runtime_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

constexpr sql::Statement book{"test.book", "INSERT INTO book (entry, cents) VALUES ($1, $2)"};

// Writes into the user's own table, together with its answer.
std::int64_t charge(sql::Tx& tx, std::string order, std::int64_t cents) {
    tx.exec(book, order, cents);
    return cents;
}
std::int64_t charge_and_refuse(sql::Tx& tx, std::string order) {
    tx.exec(book, order, 1);
    throw Failure("Declined", "the bank said no");
}

Workflow<std::int64_t> pay(Context& ctx, std::int64_t times);
Workflow<std::int64_t> pay_in_vain(Context& ctx);
Workflow<std::string> hurried(Context& ctx, std::int64_t limit_ms);
Workflow<std::string> holder(Context& ctx);

}  // namespace
}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::charge, "test.charge");
HOLDFAST_NAME(holdfast::flow::tests::charge_and_refuse, "test.charge_and_refuse");
HOLDFAST_NAME(holdfast::flow::tests::pay, "test.pay");
HOLDFAST_NAME(holdfast::flow::tests::pay_in_vain, "test.pay_in_vain");
HOLDFAST_NAME(holdfast::flow::tests::hurried, "test.hurried");
HOLDFAST_NAME(holdfast::flow::tests::holder, "test.holder");

namespace holdfast::flow::tests {
namespace {

Workflow<std::int64_t> pay(Context& ctx, std::int64_t times) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < times; ++i) {
        std::string entry = ctx.instance() + "/" + std::to_string(i);
        std::int64_t paid = co_await ctx.activity<&charge>(entry, 5);
        sum += paid;
    }
    co_return sum;
}
Workflow<std::int64_t> pay_in_vain(Context& ctx) {
    std::int64_t paid = co_await ctx.activity<&charge_and_refuse>(ctx.instance());
    co_return paid;
}

Workflow<std::string> holder(Context& ctx) {
    std::string text = co_await ctx.activity<&hold>("it");
    co_return text;
}

Workflow<std::string> hurried(Context& ctx, std::int64_t limit_ms) {
    const milliseconds limit{limit_ms};
    auto done = co_await ctx.activity<&add>(1, 1).start_within(limit).outcome();
    std::string how = "begun";
    if (!done) {
        how = done.failure().type;
    }
    co_return how;
}

Registry paying_registry() {
    Registry registry = test_registry();
    registry.activity<&charge>()
        .activity<&charge_and_refuse>()
        .workflow<&pay>()
        .workflow<&pay_in_vain>()
        .workflow<&hurried>()
        .workflow<&holder>();
    return registry;
}

class RuntimeThreads : public testing::TestWithParam<test::Backend> {
protected:
    StoreFixture place{GetParam()};
    Store& store = *place.store;
    Client client{store};

    static RuntimeOptions options() {
        RuntimeOptions options;
        options.shadow_replay_every = 8;
        return options;
    }
    // Starts `count` workflows from several threads, and waits for all.
    template <auto W, class... A>
    void run_many(const std::string& prefix, int count, A... args) {
        std::atomic<int> next = 0;
        std::vector<std::jthread> clients;
        for (int i = 0; i < 16; ++i) {
            clients.emplace_back([&] {
                for (int n = next++; n < count; n = next++) {
                    const std::string id = prefix + std::to_string(n);
                    client.start<W>(id, args...);
                    EXPECT_TRUE(client.result<W>(id, 60s)) << id;
                }
            });
        }
    }
};

TEST_P(RuntimeThreads, ManyWorkflowsShareTheirCommits) {
    Runtime runtime(store, test_registry(), options());
    constexpr int workflows = 200;
    run_many<&chain>("chain-", workflows, std::int64_t{2});
    EXPECT_EQ(seen.of("add"), 2 * workflows) << "an activity that committed must not run again";
    const RuntimeStats stats = runtime.stats();
    EXPECT_LT(stats.commits, workflows * 3) << "turns of many workflows share a commit";
    EXPECT_TRUE(runtime.drain(10s).clean());
}

// One workflow alone takes a commit for its start and one for its end: 128. A flush of a test's
// disk is too short for commits to pile up, so the crowd is made by hand.
TEST_P(RuntimeThreads, SixtyFourAtOnceTakeFewerFlushesThanTheyAre) {
    if (GetParam() != test::Backend::sqlite) {
        return;  // A server shares flushes by itself, and several of our commits are under way.
    }
    constexpr int workflows = 64;
    std::barrier everybody{workflows};
    seen.meanwhile = [&](ActivityContext&) { everybody.arrive_and_wait(); };
    RuntimeOptions crowd = options();
    crowd.shadow_replay_every = 0;
    crowd.activity_threads = workflows;
    Runtime runtime(store, paying_registry(), crowd);
    client.start<&sleeper>("warm", 0);
    ASSERT_EQ(*client.result<&sleeper>("warm", 30s), "awake");
    const std::int64_t before = place.db->driver_stats().commits;
    {
        std::vector<std::jthread> clients;
        for (int i = 0; i < workflows; ++i) {
            clients.emplace_back([&, id = "w-" + std::to_string(i)] {
                everybody.arrive_and_wait();
                client.start<&holder>(id);
                EXPECT_TRUE(client.result<&holder>(id, 60s)) << id;
            });
        }
    }
    EXPECT_LT(place.db->driver_stats().commits - before, workflows);
    seen.meanwhile = nullptr;
}

TEST_P(RuntimeThreads, SeveralRuntimesShareAStore) {
    Runtime one(store, test_registry(), options());
    Runtime two(store, test_registry(), options());
    sql::Database second_db(place.db.url(), place.db.options());
    Store second(second_db);
    Runtime three(second, test_registry(), options());
    run_many<&parent>("family-", 20, std::int64_t{3});
    EXPECT_EQ(client.stats().activities, 0);
    EXPECT_EQ(client.stats().messages, 0);
}

TEST_P(RuntimeThreads, WhatATransactionalActivityWritesIsThereExactlyOnce) {
    place.db.execute("CREATE TABLE book (entry TEXT NOT NULL, cents {bigint} NOT NULL) {strict}");
    Runtime one(store, paying_registry(), options());
    Runtime two(store, paying_registry(), options());
    run_many<&pay>("pay-", 40, std::int64_t{3});
    EXPECT_EQ(place.db.number("SELECT count(*) FROM book"), 120);
    EXPECT_EQ(place.db.number("SELECT count(DISTINCT entry) FROM book"), 120);
}

TEST_P(RuntimeThreads, ATransactionalActivityThatFailsLeavesNothing) {
    place.db.execute("CREATE TABLE book (entry TEXT NOT NULL, cents {bigint} NOT NULL) {strict}");
    Runtime runtime(store, paying_registry(), options());
    client.start<&pay_in_vain>("vain");
    const auto result = client.result<&pay_in_vain>("vain", 30s);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.failure().type, "Declined");
    EXPECT_EQ(place.db.number("SELECT count(*) FROM book"), 0);
}

TEST_P(RuntimeThreads, ACancelledActivityLearnsOfItAtOnce) {
    HOLDFAST_CHECK("runtime activity_receives_cancellation_signal");
    std::latch holding{1};
    std::atomic<bool> told = false;
    seen.meanwhile = [&](ActivityContext& ctx) {
        std::stop_callback on_stop(ctx.stop_token(), [&] {
            told = true;
            told.notify_all();
        });
        holding.count_down();
        told.wait(false);
    };
    Runtime runtime(store, test_registry(), options());
    client.start<&racer>("racer");
    holding.wait();
    client.terminate("racer", "never mind");
    told.wait(false);
    EXPECT_EQ(client.wait("racer", 30s).status, Status::cancelled);
    EXPECT_TRUE(runtime.drain(10s).clean());
}

TEST_P(RuntimeThreads, DrainingWaitsForWhatRunsAndGivesBackTheRest) {
    std::latch holding{1};
    std::latch go_on{1};
    seen.meanwhile = [&](ActivityContext&) {
        holding.count_down();
        go_on.wait();
    };
    {
        Runtime runtime(store, test_registry(), options());
        client.start<&racer>("racer");
        holding.wait();
        std::jthread later([&] { go_on.count_down(); });
        EXPECT_TRUE(runtime.drain(30s).clean());
    }
    seen.meanwhile = nullptr;
    Runtime next(store, test_registry(), options());
    EXPECT_EQ(*client.result<&racer>("racer", 30s), "slow");
    EXPECT_EQ(seen.of("hold slow"), 1) << "it had ended, and its answer was kept";
}

// A process with a single thread keeps other work in hand behind it; what has a limit must not be
// caught there.
TEST_P(RuntimeThreads, WhatABusyWorkerDoesNotBeginInTimeHasFailed) {
    std::latch holding{1};
    std::latch go_on{1};
    seen.meanwhile = [&](ActivityContext&) {
        holding.count_down();
        go_on.wait();
    };
    RuntimeOptions single = options();
    single.activity_threads = 1;
    Runtime runtime(store, paying_registry(), single);
    client.start<&racer>("racer");
    holding.wait();
    client.start<&hurried>("impatient", 50);
    client.start<&hurried>("patient", 60'000);
    EXPECT_EQ(*client.result<&hurried>("impatient", 30s), "NotStarted");
    go_on.count_down();
    EXPECT_EQ(*client.result<&hurried>("patient", 30s), "begun");
    EXPECT_TRUE(runtime.drain(10s).clean());
}

TEST_P(RuntimeThreads, AMessageToAWaitingWorkflowIsTakenWithoutPolling) {
    RuntimeOptions slow = options();
    slow.poll_max = 30s;  // No poll by chance.
    Runtime runtime(store, test_registry(), slow);
    client.start<&counter>("counter");
    for (int i = 0; i < 20; ++i) {
        client.signal("counter", inbox, std::string("count"));
    }
    client.signal("counter", inbox, std::string("stop"));
    EXPECT_EQ(*client.result<&counter>("counter", 20s), 20);
}

INSTANTIATE_TEST_SUITE_P(Every, RuntimeThreads, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

// Activities that wait for a worker: not for ever, and not all in the order they came.
#include "runtime/test/placement_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {
namespace {

class WaitingBehaviour : public PlacementBehaviour {
protected:
    WaitingBehaviour() {
        code("limited", [](Context& ctx, std::string, std::string) -> Task<std::string> {
            auto done =
                co_await ctx.activity<&work>("where", "").tag("gpu").start_within(1min).outcome();
            if (done) {
                co_return *done;
            }
            const FailureInfo& failure = done.failure();
            std::string what = std::string(to_string(failure.kind)) + " " + failure.type;
            co_return what;
        });
        node("plain", serving(TagFilter::default_only()));
    }
    void pass(std::chrono::microseconds time) {
        place.db.advance_clock(time);
        everybody_works();
    }
};

TEST_F(WaitingBehaviour, WhatNobodyBeginsInTimeHasFailed) {
    start("limited", "w");
    everybody_works();
    pass(59s);
    EXPECT_EQ(status("w"), Status::running);
    pass(1s);
    EXPECT_EQ(result("w"), "timeout NotStarted");
    EXPECT_EQ(client.stats().activities, 0) << "nobody can begin it any more";
    EXPECT_EQ(client.stats().messages, 0);
}

TEST_F(WaitingBehaviour, WhatWasBegunInTimeMayTakeLonger) {
    start("limited", "w");
    everybody_works();
    const auto begun =
        store.provider().claim_activities({.lease = 1h, .tags = TagFilter::only({"gpu"})});
    ASSERT_EQ(begun.size(), 1U);
    pass(30min);
    EXPECT_EQ(status("w"), Status::running);
    const ActivityAnswer answer{begun[0].task.key.event, Payload{R"("done")"}};
    const ActivityEnd end{begun[0].task.key, begun[0].token, answer};
    EXPECT_TRUE(store.provider().end_activities(std::span(&end, 1)).at(0));
    pass(0s);
    EXPECT_EQ(result("w"), "done");
}

// The worker that has taken it may have died before it began it. If its lease is longer than the
// limit, that shows only later.
TEST_F(WaitingBehaviour, WhatADeadWorkerHasTakenWasNotBegun) {
    for (const auto lease : {30s, 120s}) {
        const std::string id = "w" + std::to_string(lease.count());
        start("limited", id);
        everybody_works();
        ASSERT_EQ(store.provider()
                      .claim_activities({.lease = lease, .tags = TagFilter::only({"gpu"})})
                      .size(),
                  1U);
        pass(59s);
        EXPECT_EQ(status(id), Status::running);
        pass(1s);
        EXPECT_EQ(status(id), lease < 60s ? Status::completed : Status::running);
        for (int i = 0; i < 3; ++i) {
            pass(30s);
        }
        EXPECT_EQ(result(id), "timeout NotStarted");
        EXPECT_EQ(client.stats().activities + client.stats().messages, 0);
    }
}

// Its own process takes it with the turn that asks for it, and may die before it begins it.
TEST_F(WaitingBehaviour, WhatIsTakenAtOnceHasADeadlineToo) {
    code("here", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string text = co_await ctx.activity<&work>("look", "").start_within(1min);
        co_return text;
    });
    std::int64_t deadlines = 0;
    activity("look", [&](ActivityContext&, const std::string&) {
        deadlines = client.stats().messages;
        return std::string("begun");
    });
    start("here", "h");
    everybody_works();
    EXPECT_EQ(result("h"), "begun");
    EXPECT_EQ(deadlines, 1);
    EXPECT_EQ(client.stats().messages, 0) << "it was taken back with the answer";
}

TEST_F(WaitingBehaviour, ALimitThatWasKeptCostsNoTurn) {
    start("limited", "w");
    everybody_works();
    EXPECT_EQ(client.stats().messages, 1) << "the deadline";
    Node& gpu = node("render", serving(TagFilter::only({"gpu"})));
    code("waits", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string where = co_await ctx.activity<&work>("where", "").tag("gpu").start_within(1min);
        co_await ctx.receive(inbox);
        co_return where;
    });
    start("waits", "v");
    everybody_works();
    EXPECT_EQ(result("w"), "render/gpu/-");
    EXPECT_EQ(client.stats().messages, 0) << "it was taken back with the answer";
    place.db.advance_clock(2min);
    EXPECT_EQ(works(gpu) + works(nodes.front()), 0);
    EXPECT_EQ(status("v"), Status::running);
}

TEST_F(WaitingBehaviour, WhoeverStopsWaitingLeavesNoDeadlineBehind) {
    code("drops", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        co_await any(ctx.activity<&work>("where", "").tag("gpu").start_within(1min), ctx.sleep(1s));
        co_await ctx.receive(inbox);
        co_return "over";
    });
    start("drops", "d");
    start("limited", "c");
    everybody_works();
    pass(1s);
    client.terminate("c", "enough");
    everybody_works();
    EXPECT_EQ(client.stats().messages, 0);
    EXPECT_EQ(client.stats().activities, 0);
    EXPECT_EQ(status("d"), Status::running);
}

TEST_F(WaitingBehaviour, AfterAResetTheLimitCountsAnew) {
    start("limited", "w");
    everybody_works();
    pass(1min);
    ASSERT_EQ(result("w"), "timeout NotStarted");
    client.reset("w", {.to = ResetTo::event, .event = 2});
    pass(59s);
    EXPECT_EQ(status("w"), Status::running);
    pass(1s);
    EXPECT_EQ(result("w"), "timeout NotStarted");
}

TEST_F(WaitingBehaviour, AnotherLimitIsNoOtherCode) {
    start("limited", "w");
    everybody_works();
    code("limited", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string where =
            co_await ctx.activity<&work>("where", "").tag("gpu").start_within(2h).ahead(1h);
        co_return where;
    });
    nodes.clear();  // The coroutine is in no memory.
    place.db.advance_clock(30s);
    node("render", serving(TagFilter::everything()));
    everybody_works();
    EXPECT_EQ(result("w"), "render/gpu/-");
}

TEST_F(WaitingBehaviour, WhoIsUrgentIsServedFirstWhenWorkersAreShort) {
    code("asks", [](Context& ctx, std::string, std::string urgent) -> Task<std::string> {
        auto operation = ctx.activity<&work>("order", urgent).tag("gpu");
        if (!urgent.empty()) {
            operation = std::move(operation).ahead(10min);
        }
        co_await operation;
        co_return "";
    });
    std::vector<std::string> order;
    activity("order", [&](ActivityContext&, const std::string& urgent) {
        order.push_back(urgent);
        return urgent;
    });
    start("asks", "first");
    everybody_works();
    pass(5min);
    start("asks", "second", "urgent");
    everybody_works();
    node("render", serving(TagFilter::only({"gpu"})));
    everybody_works();
    EXPECT_THAT(order, ElementsAre("urgent", ""));
}

// What a process has asked for it keeps to itself; there, too, the urgent comes first.
TEST_F(WaitingBehaviour, WhoIsUrgentIsServedFirstByTheProcessThatAskedForIt) {
    code("crowd", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::vector<Op<std::string>> crowd;
        crowd.push_back(ctx.activity<&work>("order", "first"));
        crowd.push_back(ctx.activity<&work>("order", "second"));
        crowd.push_back(ctx.activity<&work>("order", "urgent").ahead(10min));
        co_await all(std::move(crowd));
        co_return "";
    });
    std::vector<std::string> order;
    activity("order", [&](ActivityContext&, const std::string& which) {
        order.push_back(which);
        return which;
    });
    start("crowd", "c");
    everybody_works();
    EXPECT_THAT(order, ElementsAre("urgent", "first", "second"));
}

TEST_F(WaitingBehaviour, OnlyActivitiesWaitForWorkers) {
    code("wrong", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string said;
        try {
            co_await ctx.sleep(1s).start_within(1s);
        } catch (const Failure& failure) {
            said += failure.type();
        }
        try {
            co_await ctx.activity<&work>("where", "").ahead(-1s);
        } catch (const Failure& failure) {
            said += " " + failure.type();
        }
        co_return said;
    });
    start("wrong", "w");
    everybody_works();
    EXPECT_EQ(result("w"), "InvalidOperation InvalidOperation");
}

}  // namespace
}  // namespace holdfast::flow::tests

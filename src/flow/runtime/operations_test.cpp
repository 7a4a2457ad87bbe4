// What operators see and set: metrics, retention, limits, heartbeats.
#include "runtime/test/runtime_fixture.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/flow_engine/limits.hpp>

namespace holdfast::flow::tests {

// No database can make it smaller.
std::string large(std::int64_t bytes) {
    constexpr std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    Random random(1);
    std::string text(static_cast<std::size_t>(bytes), ' ');
    for (char& letter : text) {
        letter = letters[random.below(letters.size())];
    }
    return text;
}
std::int64_t length(std::string text) {
    return static_cast<std::int64_t>(text.size());
}

Workflow<std::string> carrier(Context& ctx, std::int64_t bytes, std::string way);

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::large, "test.large");
HOLDFAST_NAME(holdfast::flow::tests::length, "test.length");
HOLDFAST_NAME(holdfast::flow::tests::carrier, "test.carrier");

namespace holdfast::flow::tests {

Workflow<std::string> carrier(Context& ctx, std::int64_t bytes, std::string way) {
    const std::string load = large(bytes);
    if (way == "input") {
        co_await ctx.activity<&length>(load);
    } else if (way == "answer") {
        co_await ctx.activity<&large>(bytes);
    } else if (way == "child") {
        co_await ctx.child<&hello>(load);
    } else if (way == "again") {
        co_return again(bytes, load);
    }
    co_return way == "result" ? load : "fits";
}

namespace {

class House : public testing::TestWithParam<test::Backend> {
protected:
    StoreFixture place{GetParam()};
    Store& store = *place.store;
    Client client{store};
    Metrics metrics;

    static Registry registry() {
        Registry registry = test_registry();
        registry.activity<&large>().activity<&length>().workflow<&carrier>();
        return registry;
    }
    RuntimeOptions options() {
        RuntimeOptions options = manual_options();
        options.metrics = &metrics;
        return options;
    }
    Status status(std::string_view id) { return client.info(id)->status; }
};

TEST_P(House, MetricsMove) {
    Runtime runtime(store, registry(), options());
    client.start<&hello>("ann", "Ann");
    client.start<&retrier>("ben", 9, 1);
    client.start<&sleeper>("cat", 60);
    client.start<&loop>("dan", 1, 2);
    client.start<&sleeper>("eve", 3600);
    runtime.run_until_idle();
    place.db.advance_clock(2min);
    runtime.run_until_idle();

    const auto value = [&](std::string_view name, Labels labels = {}) {
        return metrics.value(name, labels);
    };
    EXPECT_EQ(value("holdfast_flow_starts_total",
                    {{"workflow", "test.hello"}, {"version", "1.0.0"}, {"by", "client"}}),
              1);
    EXPECT_EQ(value("holdfast_flow_starts_total",
                    {{"workflow", "test.loop"}, {"version", "1.0.0"}, {"by", "continue"}}),
              1);
    EXPECT_EQ(value("holdfast_flow_ends_total",
                    {{"workflow", "test.hello"}, {"version", "1.0.0"}, {"status", "completed"}}),
              1);
    EXPECT_EQ(value("holdfast_flow_ends_total",
                    {{"workflow", "test.loop"}, {"version", "1.0.0"}, {"status", "continued"}}),
              1);
    EXPECT_EQ(value("holdfast_flow_failures_total",
                    {{"workflow", "test.retrier"}, {"version", "1.0.0"}, {"kind", "application"}}),
              1);
    EXPECT_EQ(value("holdfast_flow_activities_total",
                    {{"activity", "test.greet"}, {"tag", ""}, {"outcome", "success"}}),
              1);
    EXPECT_EQ(value("holdfast_flow_activities_total",
                    {{"activity", "test.refuse"}, {"tag", ""}, {"outcome", "error"}}),
              1);
    EXPECT_EQ(value("holdfast_flow_activity_duration_seconds", {{"activity", "test.greet"}}), 1);
    EXPECT_EQ(value("holdfast_flow_schedule_to_start_seconds", {{"activity", "test.greet"}}), 1);
    EXPECT_EQ(value("holdfast_flow_duration_seconds",
                    {{"workflow", "test.hello"}, {"status", "completed"}}),
              1);
    EXPECT_EQ(value("holdfast_flow_history_events", {{"workflow", "test.hello"}}), 1);
    EXPECT_EQ(value("holdfast_flow_timer_lateness_seconds"), 1);
    EXPECT_EQ(value("holdfast_flow_turns_total"), runtime.stats().turns);
    EXPECT_EQ(value("holdfast_flow_turns_from_cache_total"), runtime.stats().turns_from_cache);
    EXPECT_GT(value("holdfast_flow_turns_from_cache_total"), 0);
    EXPECT_GT(value("holdfast_flow_commits_total"), 0);
    EXPECT_GT(value("holdfast_flow_shadow_replays_total"), 0);
    EXPECT_EQ(value("holdfast_flow_active_instances"), 2) << "as measured after the first run";
    EXPECT_EQ(value("holdfast_flow_poison_total"), 0);
    EXPECT_EQ(metrics.expose().find("ann"), std::string::npos) << "no label is an instance";
}

TEST_P(House, WhatEndedLongAgoIsRemovedByTheRuntime) {
    RuntimeOptions keeps = options();
    keeps.retention = 24h;
    Runtime runtime(store, registry(), keeps);
    client.start<&hello>("old", "Ann");
    client.start<&sleeper>("alive", 3600 * 72);
    client.start_with<&hello>({.cron = "@hourly"}, "often", "Bob");
    runtime.run_until_idle();
    place.db.advance_clock(1h);
    runtime.run_until_idle();
    ASSERT_EQ(client.executions("often").size(), 2U);
    place.db.advance_clock(22h);
    runtime.run_until_idle();
    EXPECT_TRUE(client.info("old"));
    client.start<&hello>("young", "Eve");
    place.db.advance_clock(3h);
    runtime.run_until_idle();
    EXPECT_FALSE(client.info("old"));
    EXPECT_TRUE(client.info("young"));
    EXPECT_TRUE(client.info("alive"));
    EXPECT_EQ(client.executions("often").front().execution, 2U) << "the first ended too long ago";
}

TEST_P(House, TooMuchIsRefusedByName) {
    Runtime runtime(store, registry(), options());
    constexpr auto beyond = static_cast<std::int64_t>(payload_bytes_max);  // It has quotes, too.
    constexpr std::int64_t fits = beyond - 100;  // Or an argument beside it.
    for (const char* way : {"input", "answer", "child", "again", "result"}) {
        const std::string id = std::string("small ") + way;
        if (std::string_view(way) != "again") {  // It would go on for ever.
            client.start<&carrier>(id, fits, way);
            runtime.run_until_idle();
            EXPECT_EQ(status(id), Status::completed) << way << client.info(id)->output;
        }
        client.start<&carrier>(way, beyond, way);
        runtime.run_until_idle();
        ASSERT_EQ(status(way), Status::failed) << way;
        EXPECT_EQ(Client::failure_of(*client.info(way)).type, "LimitExceeded") << way;
    }
    EXPECT_EQ(test::code_of([&] { client.start<&hello>("big", large(beyond)); }),
              Code::limit_exceeded);
    EXPECT_EQ(client.info("big"), std::nullopt);
    client.start<&listener>("small", 1);
    EXPECT_EQ(test::code_of([&] { client.signal("small", inbox, large(beyond)); }),
              Code::limit_exceeded);
}

// Aurora DSQL takes 3,000 rows in a transaction, and each child is several.
TEST(HouseOnDsql, ATurnThatIsTooLargeEndsItsWorkflowAndNobodyElses) {
    StoreFixture place{test::Backend::dsql};
    Client client{*place.store};
    Runtime runtime(*place.store, test_registry(), manual_options());
    client.start<&parent>("large", 1'000);
    client.start<&parent>("small", 3);
    runtime.run_until_idle();
    ASSERT_EQ(client.info("large")->status, Status::failed);
    const FailureInfo failure = Client::failure_of(*client.info("large"));
    EXPECT_EQ(failure.type, "LimitExceeded");
    EXPECT_THAT(failure.message, testing::HasSubstr("in one transaction"));
    EXPECT_EQ(place.db.number("SELECT COUNT(*) FROM flow_instances"), 2 + 3);
    EXPECT_EQ(client.info("small")->status, Status::completed);
}

// A database that fails for a moment must not fail an activity that only sends a heartbeat; one
// that was cancelled learns of it even so.
TEST_P(House, AHeartbeatThatIsLostDisturbsNobodyAndARefusedOneTellsOfTheCancellation) {
    Runtime runtime(store, registry(), options());
    bool stopped = false;
    seen.meanwhile = [&](ActivityContext& ctx) {
        place.db.execute("ALTER TABLE flow_activities RENAME TO flow_hidden");
        ctx.heartbeat(std::string("lost"));
        place.db.execute("ALTER TABLE flow_hidden RENAME TO flow_activities");
        ctx.heartbeat(std::string("kept"));
        EXPECT_FALSE(ctx.cancelled());
        place.db.execute("DELETE FROM flow_activities");  // As a cancellation does.
        ctx.heartbeat(std::string("refused"));
        stopped = ctx.cancelled();
    };
    client.start<&racer>("one");
    runtime.run_until_idle();
    EXPECT_TRUE(stopped);
    EXPECT_EQ(metrics.value("holdfast_flow_store_errors_total", {{"operation", "heartbeat"}}), 1);
}

INSTANTIATE_TEST_SUITE_P(Every, House, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

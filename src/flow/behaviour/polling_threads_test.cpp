// How work is found that others left in the store, and how leases are kept meanwhile.
#include <barrier>
#include <latch>
#include <thread>

#include "behaviour/test/behaviour_fixture.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {
namespace {

class PollingBehaviour : public testing::TestWithParam<test::Backend>, public Stage {
protected:
    PollingBehaviour() : Stage(GetParam()) {
        runtime.reset();
        code("quick", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
            std::string text = co_await ctx.activity<&work>("step", arg);
            co_return text;
        });
    }
    static RuntimeOptions threaded(milliseconds poll_max = 1s) {
        RuntimeOptions options;
        options.poll_max = poll_max;
        options.shadow_replay_every = 1;
        return options;
    }
    // A client in another process: it shares the database and nothing else.
    sql::Database other_db{place.db.url(), place.db.options()};
    Store other_store{other_db};
    Client caller{other_store};
};

TEST_P(PollingBehaviour, WhatAnotherProcessStartedIsFound) {
    HOLDFAST_CHECK("runtime default_polling_frequency");
    HOLDFAST_CHECK("runtime custom_polling_frequency");
    HOLDFAST_CHECK("runtime fast_polling");
    HOLDFAST_CHECK("runtime sqlite_file_concurrent_access");
    EXPECT_EQ(RuntimeOptions{}.poll_max, 1s);
    for (const milliseconds poll_max : {RuntimeOptions{}.poll_max, 200ms, 5ms}) {
        const std::string id = "q-" + std::to_string(poll_max.count());
        const Runtime threads(store, behaviour_registry(), threaded(poll_max));
        caller.start<&script>(id, "quick", "found");
        EXPECT_EQ(*caller.result<&script>(id, 60s), "found") << id;
    }
}

TEST_P(PollingBehaviour, WorkInTheSameProcessIsFoundAtOnce) {
    HOLDFAST_CHECK("runtime long_poll_returns_early_on_work");
    HOLDFAST_CHECK("runtime dispatcher_uses_long_polling");
    const Runtime threads(store, behaviour_registry(), threaded(1h));  // No poll by chance.
    for (int i = 0; i < 10; ++i) {
        const std::string id = "q-" + std::to_string(i);
        client.start<&script>(id, "quick", id);
        EXPECT_EQ(*client.result<&script>(id, 60s), id);
    }
}

// A turn that takes longer than its lease: only a turn that began with a claim has one.
TEST_P(PollingBehaviour, ALongTurnKeepsItsInstance) {
    HOLDFAST_CHECK("runtime orchestration_lock_renewal_prevents_expiration");
    static std::latch* holding = nullptr;
    static std::latch* released = nullptr;
    std::latch holds{1};
    std::latch lets_go{1};
    holding = &holds;
    released = &lets_go;
    // Blocking in a workflow is wrong; here it stands for a long replay.
    code("long", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        if (!ctx.replaying()) {
            holding->count_down();
            released->wait();
        }
        co_return "done";
    });
    RuntimeOptions options = threaded(5ms);
    options.workflow_lease = 6s;  // A third of it is how late a busy machine may be.
    options.shadow_replay_every = 0;
    const Runtime threads(store, behaviour_registry(), options);
    caller.start<&script>("l", "long", "");
    holds.wait();
    const auto until_us = [&] {
        return place.db.number("SELECT locked_until_us FROM flow_instances");
    };
    const std::int64_t first_us = until_us();
    while (until_us() <= first_us) {  // A renewal shows only here.
        std::this_thread::yield();
    }
    place.db.advance_clock(std::chrono::microseconds{first_us - place.db.lease_now_us()} + 1ms);
    EXPECT_TRUE(caller.provider().claim_instances({}).empty()) << "it would be free without it";
    lets_go.count_down();
    EXPECT_EQ(*caller.result<&script>("l", 60s), "done");
    EXPECT_EQ(threads.stats().turns_lost, 0);
}

// A third of the lease passes between renewals, whatever its length. A lease that is too short for
// that would be renewed when it has run out, so it is refused.
TEST_P(PollingBehaviour, LeasesHaveDefaultsAndALeastLength) {
    HOLDFAST_CHECK("runtime default_lock_timeouts");
    HOLDFAST_CHECK("runtime custom_renewal_buffer");
    HOLDFAST_CHECK("runtime orchestrator_lock_renewal_buffer_defaults");
    EXPECT_EQ(RuntimeOptions{}.workflow_lease, 5s);
    EXPECT_EQ(RuntimeOptions{}.activity_lease, 30s);
    EXPECT_EQ(RuntimeOptions{}.session_lease, 30s);
    for (milliseconds RuntimeOptions::* const lease : {&RuntimeOptions::workflow_lease,
                                                       &RuntimeOptions::activity_lease,
                                                       &RuntimeOptions::session_lease}) {
        RuntimeOptions options = manual_options();
        options.*lease = 1999ms;
        EXPECT_EQ(test::code_of([&] { Runtime(store, behaviour_registry(), options); }),
                  Code::invalid_argument);
        options.*lease = 2s;
        EXPECT_EQ(test::code_of([&] { Runtime(store, behaviour_registry(), options); }),
                  std::nullopt);
    }
}

// A session belongs to a runtime, and all its threads serve it, whether the worker has a name of
// its own or not.
TEST_P(PollingBehaviour, AllThreadsOfARuntimeServeItsSessions) {
    HOLDFAST_CHECK("runtime two_slots_serve_same_session_concurrently");
    HOLDFAST_CHECK("runtime ephemeral_same_session_serialized");
    for (const char* name : {"w-1", ""}) {
        std::barrier meet{2};  // Neither ends before the other has begun.
        activity("meets", [&meet](ActivityContext& ctx, const std::string&) {
            meet.arrive_and_wait();
            return ctx.session().value_or("-");
        });
        code("two", [](Context& ctx, std::string, std::string session) -> Task<std::string> {
            auto [a, b] = co_await all(ctx.activity<&work>("meets", "").session(session),
                                       ctx.activity<&work>("meets", "").session(session));
            co_return a + b;
        });
        RuntimeOptions options = threaded(5ms);
        options.worker_id = name;
        const Runtime threads(store, behaviour_registry(), options);
        const std::string id = std::string("t") + name;
        client.start<&script>(id, "two", "s" + id);
        EXPECT_EQ(*client.result<&script>(id, 60s), fmt::format("s{0}s{0}", id));
    }
}

INSTANTIATE_TEST_SUITE_P(Every, PollingBehaviour, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

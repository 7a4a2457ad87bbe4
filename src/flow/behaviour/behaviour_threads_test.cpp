// What needs real threads: activities that run while something happens to their workflow, and
// leases that are renewed meanwhile.
#include <atomic>
#include <latch>
#include <set>
#include <thread>

#include "behaviour/test/behaviour_fixture.hpp"
#include <fmt/core.h>

namespace holdfast::flow::tests {
namespace {

// An activity that runs until it is asked to stop, and says so.
class Patient {
public:
    std::string operator()(ActivityContext& ctx) {
        holding_.count_down();
        const std::stop_callback on_stop(ctx.stop_token(), [this] {
            stopped_ = true;
            stopped_.notify_all();
        });
        stopped_.wait(false);
        return "stopped";
    }
    void wait_until_it_runs() { holding_.wait(); }
    void wait_until_it_is_stopped() const { stopped_.wait(false); }

private:
    std::latch holding_{1};
    std::atomic<bool> stopped_ = false;
};

class ThreadsBehaviour : public testing::Test, public Stage {
protected:
    ThreadsBehaviour() : Stage(test::Backend::sqlite) { runtime.reset(); }
    static RuntimeOptions threaded() {
        RuntimeOptions options;
        options.shadow_replay_every = 1;
        return options;
    }
    // The smallest runtime that has threads.
    static RuntimeOptions one_by_one() {
        RuntimeOptions options = threaded();
        options.workflow_threads = 1;
        options.activity_threads = 1;
        return options;
    }
    std::string wait(std::string_view id) {
        (void)client.wait(id, 60s);
        return result(id);
    }
};

// The code that wants the answer stops wanting it while the activity runs, in one of four ways.
TEST_F(ThreadsBehaviour, AnActivityThatNobodyWantsAnyMoreIsToldToStop) {
    HOLDFAST_CHECK("runtime select2_loser_activity_receives_cancellation_signal");
    HOLDFAST_CHECK("runtime explicit_drop_activity_triggers_cancellation");
    HOLDFAST_CHECK("runtime activity_out_of_scope_triggers_cancellation");
    code("drops", [](Context& ctx, std::string, std::string how) -> Task<std::string> {
        if (how == "race") {
            auto first = co_await any(ctx.activity<&work>("patient", how), ctx.receive(inbox));
            co_await ctx.receive(inbox);
            co_return std::to_string(first.index());
        }
        {
            auto handle = ctx.start(ctx.activity<&work>("patient", how));
            co_await ctx.receive(inbox);
            if (how == "dropped") {
                handle.cancel();
                co_await ctx.receive(inbox);
                co_return "1";
            }
        }
        co_await ctx.receive(inbox);
        co_return "1";
    });
    std::map<std::string, Patient> patients;
    for (const char* how : {"race", "dropped", "scope"}) {
        patients.try_emplace(how);
    }
    activity("patient",
             [&](ActivityContext& ctx, const std::string& how) { return patients.at(how)(ctx); });
    Runtime threads(store, behaviour_registry(), threaded());
    for (auto& [how, patient] : patients) {
        start("drops", how, how);
        patient.wait_until_it_runs();
        client.signal(how, inbox, std::string("drop it"));
        patient.wait_until_it_is_stopped();
        client.signal(how, inbox, std::string("end"));
        EXPECT_EQ(wait(how), "1") << how;
        EXPECT_THAT(events<ActivityCompleted>(how), IsEmpty()) << how;
    }
    EXPECT_TRUE(threads.drain(10s).clean());
}

TEST_F(ThreadsBehaviour, OneThreadOfEachKindIsEnoughToCancelAnActivity) {
    HOLDFAST_CHECK("runtime single_thread_1x1_cooperative_activity_cancellation");
    Patient patient;
    activity("patient", [&](ActivityContext& ctx, const std::string&) { return patient(ctx); });
    code("waits", [](Context& ctx, std::string, std::string what) -> Task<std::string> {
        std::string text = co_await ctx.activity<&work>(what, "ran");
        co_return text;
    });
    Runtime threads(store, behaviour_registry(), one_by_one());
    start("waits", "w", "patient");
    patient.wait_until_it_runs();
    client.cancel("w", "enough");
    EXPECT_EQ(wait("w"), "cancelled: enough");
    patient.wait_until_it_is_stopped();
    start("waits", "next", "quick");
    EXPECT_EQ(wait("next"), "ran") << "the thread is free again";
    EXPECT_TRUE(threads.drain(10s).clean());
}

// A process takes several at a time, because most are short. One that is not must not hold the
// others up while another process has nothing to do.
TEST_F(ThreadsBehaviour, WhatWaitsBehindSomethingLongIsLeftToOthers) {
    std::latch open{1};
    std::latch begun{1};
    activity("long", [&](ActivityContext&, const std::string&) {
        begun.count_down();
        open.wait();
        return std::string("long");
    });
    code("crowd", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::vector<Op<std::string>> all_of_it;
        all_of_it.push_back(ctx.activity<&work>("long", ""));
        for (int i = 0; i < 5; ++i) {
            all_of_it.push_back(ctx.activity<&work>("short", ""));
        }
        auto texts = co_await all(std::move(all_of_it));
        co_return texts[0];
    });
    const Runtime threads(store, behaviour_registry(), one_by_one());
    start("crowd", "c");
    begun.wait();
    Store elsewhere(*place.db);
    const Runtime other(elsewhere, behaviour_registry(), threaded());
    while (seen.of("short") < 5) {
        std::this_thread::yield();
    }
    EXPECT_EQ(status("c"), Status::running) << "the long one still runs";
    open.count_down();
    EXPECT_EQ(wait("c"), "long");
    EXPECT_EQ(seen.of("short"), 5) << "and none ran twice";
}

// A plain function cannot be ended from outside. Its answer is fenced off, it is counted, and
// another thread takes its place.
TEST_F(ThreadsBehaviour, AnActivityThatDoesNotListenLosesItsPlace) {
    HOLDFAST_CHECK("runtime activity_aborted_after_cancellation_grace");
    HOLDFAST_CHECK("runtime single_thread_1x1_runaway_activity_aborted");
    std::latch holding{1};
    std::latch released{1};
    std::latch left{1};
    activity("runaway", [&](ActivityContext&, const std::string&) {
        holding.count_down();
        released.wait();
        left.count_down();
        return "nobody listens";
    });
    code("waits", [](Context& ctx, std::string, std::string what) -> Task<std::string> {
        std::string text = co_await ctx.activity<&work>(what, "ran");
        co_return text;
    });
    RuntimeOptions options = one_by_one();
    options.cancel_grace = 1ms;
    const Runtime threads(store, behaviour_registry(), options);
    start("waits", "w", "runaway");
    holding.wait();
    client.cancel("w", "enough");
    EXPECT_EQ(wait("w"), "cancelled: enough");
    start("waits", "next", "quick");
    EXPECT_EQ(wait("next"), "ran") << "on the thread that took its place";
    released.count_down();
    left.wait();
    EXPECT_THAT(events<ActivityCompleted>("w"), IsEmpty());
    EXPECT_EQ(seen.of("runaway"), 1);
}

// --- leases; short ones, so that a test sees renewals within seconds

TEST_F(ThreadsBehaviour, AnActivityMayRunLongerThanItsLease) {
    HOLDFAST_CHECK("runtime long_running_activity_with_lock_renewal");
    HOLDFAST_CHECK("runtime lock_renewal_short_timeout");
    HOLDFAST_CHECK("runtime concurrent_activities_with_renewal");
    HOLDFAST_CHECK("runtime very_short_lock_timeout_works");
    RuntimeOptions options = threaded();
    options.activity_lease = 6s;
    std::latch holding{3};
    std::latch released{1};
    activity("long", [&](ActivityContext&, const std::string& arg) {
        holding.count_down();
        released.wait();
        return arg;
    });
    code("three", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto [a, b, c] = co_await all(ctx.activity<&work>("long", "a"),
                                      ctx.activity<&work>("long", "b"),
                                      ctx.activity<&work>("long", "c"));
        co_return a + b + c;
    });
    const Runtime threads(store, behaviour_registry(), options);
    start("three", "t");
    holding.wait();
    const auto until_us = [&] {
        return place.db.number("SELECT MIN(available_at_us) FROM flow_activities");
    };
    const std::int64_t first_us = until_us();
    constexpr std::int64_t late_us = 3'000'000;  // As late as a busy machine may be.
    while (until_us() <= first_us + late_us) {   // A renewal shows only here.
        std::this_thread::yield();
    }
    // A moment after the first leases have lapsed.
    place.db.advance_clock(std::chrono::microseconds{first_us - place.db.lease_now_us()} + 1ms);
    Runtime rival(store, behaviour_registry(), manual_options());
    rival.run_until_idle();
    released.count_down();
    EXPECT_EQ(wait("t"), "abc");
    EXPECT_EQ(seen.of("long"), 3) << "none was taken over";
}

TEST_F(ThreadsBehaviour, AShortActivityEndsBeforeItsLeaseNeedsRenewal) {
    HOLDFAST_CHECK("runtime short_activity_no_renewal_needed");
    HOLDFAST_CHECK("runtime orchestration_with_custom_timeout_completes");
    HOLDFAST_CHECK("runtime custom_lock_timeout_configuration");
    std::int64_t lease_us = 0;
    activity("short", [&](ActivityContext&, const std::string& arg) {
        const std::int64_t until = place.db.number("SELECT available_at_us FROM flow_activities");
        lease_us = until - place.db.lease_now_us();
        return arg;
    });
    code("one", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string text = co_await ctx.activity<&work>("short", "done");
        co_return text;
    });
    RuntimeOptions options = manual_options();
    options.activity_lease = 90s;
    options.workflow_lease = 7s;
    runtime.emplace(store, behaviour_registry(), options);
    run_script("one", "o");
    EXPECT_EQ(result("o"), "done");
    EXPECT_GE(lease_us, 89'000'000);
    EXPECT_LE(lease_us, 91'000'000);
}

// --- several at once

TEST_F(ThreadsBehaviour, ManyWritersOfKeysDoNotDisturbEachOther) {
    HOLDFAST_CHECK("runtime kv_stress_concurrent_writes");
    HOLDFAST_CHECK("runtime kv_stress_can_throughput");
    HOLDFAST_CHECK("runtime kv_stress_cross_instance_reads");
    HOLDFAST_CHECK("runtime concurrent_continue_as_new_chains");
    HOLDFAST_CHECK("runtime instance_actor_pattern_stress_test");
    activity("read", [this](ActivityContext&, const std::string& id) {
        return std::to_string(client.kv<std::int64_t>(id, "sum").value_or(-1));
    });
    code("rounds", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        const std::int64_t sum = ctx.kv().get<std::int64_t>("sum").value_or(0);
        ctx.kv().set("sum", sum + 1);
        const std::string same = co_await ctx.activity<&work>("echo", round);
        if (round != "5") {
            co_return again(self, std::to_string(std::stoi(same) + 1));
        }
        std::string stored = co_await ctx.activity<&work>("read", ctx.instance());
        co_return stored;
    });
    const Runtime one(store, behaviour_registry(), threaded());
    const Runtime two(store, behaviour_registry(), threaded());
    constexpr int actors = 30;
    for (int i = 0; i < actors; ++i) {
        start("rounds", "a-" + std::to_string(i), "1");
    }
    for (int i = 0; i < actors; ++i) {
        const std::string id = "a-" + std::to_string(i);
        EXPECT_EQ(wait(id), "5") << id;
        EXPECT_EQ(client.executions(id).size(), 5U) << id;
    }
    EXPECT_EQ(seen.of("echo"), actors * 5);
}

TEST_F(ThreadsBehaviour, ManyWorkflowsWithTheSameAndWithOtherActivities) {
    HOLDFAST_CHECK("runtime concurrent_orchestrations_different_activities_fs");
    HOLDFAST_CHECK("runtime concurrent_orchestrations_same_activities_fs");
    HOLDFAST_CHECK("runtime multiple_orchestrations_retrying");
    activity("flaky", [](ActivityContext&, const std::string& arg) -> std::string {
        if (seen.of("flaky " + arg) == 0) {
            seen.count("flaky " + arg);
            throw Failure("Busy", "not yet");
        }
        return arg;
    });
    code("one of many", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
        const std::string same = co_await ctx.activity<&work>("shared", arg);
        const std::string own = co_await ctx.activity<&work>("only " + arg, same + "!");
        const RetryPolicy policy{.attempts = 3, .first = 1ms};
        const std::string retried = co_await ctx.activity<&work>("flaky", arg).retry(policy);
        co_return own + retried;
    });
    const Runtime threads(store, behaviour_registry(), threaded());
    constexpr int workflows = 20;
    for (int i = 0; i < workflows; ++i) {
        start("one of many", "w-" + std::to_string(i), std::to_string(i));
    }
    for (int i = 0; i < workflows; ++i) {
        const std::string arg = std::to_string(i);
        EXPECT_EQ(wait("w-" + arg), fmt::format("{0}!{0}", arg));
        EXPECT_EQ(seen.of("only " + arg), 1);
    }
    EXPECT_EQ(seen.of("shared"), workflows);
    EXPECT_EQ(seen.of("flaky"), 2 * workflows);
}

}  // namespace
}  // namespace holdfast::flow::tests

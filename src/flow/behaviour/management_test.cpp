// What an operator asks and does, and what generated workflows leave in their histories.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "behaviour/test/behaviour_fixture.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log_capture.hpp>

namespace holdfast::flow::tests {
namespace {

class ManagementBehaviour : public StoredBehaviour {
protected:
    ManagementBehaviour() {
        code("waits", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
            const std::string text = co_await ctx.receive(inbox);
            if (text == "fail") {
                throw permanent("Sad", "no stock");
            }
            co_return arg + text;
        });
    }
};

// Every provider can be administered; there is nothing to ask first.
TEST_P(ManagementBehaviour, AnEmptyStoreAnswersEverything) {
    HOLDFAST_CHECK("runtime capability_discovery");
    HOLDFAST_CHECK("runtime management_unknown_instance_errors");
    HOLDFAST_CHECK("runtime error_handling");
    EXPECT_EQ(client.stats().instances, 0);
    EXPECT_THAT(client.list().instances, IsEmpty());
    EXPECT_FALSE(client.info("nobody"));
    EXPECT_THAT(client.executions("nobody"), IsEmpty());
    EXPECT_THAT(client.tree("nobody"), IsEmpty());
    EXPECT_THAT(client.kv_all("nobody"), IsEmpty());
    const auto refused = [](auto&& ask) { return test::code_of(ask); };
    EXPECT_EQ(refused([&] { (void)client.history("nobody"); }), Code::not_found);
    EXPECT_EQ(refused([&] { (void)client.export_history("nobody"); }), Code::not_found);
    EXPECT_EQ(refused([&] { (void)client.wait("nobody", 0ms); }), Code::not_found);
    EXPECT_EQ(refused([&] { (void)client.wait_for_status("nobody", 0, 0ms); }), Code::not_found);
    EXPECT_EQ(refused([&] { (void)client.query("nobody", 0ms, what_now); }), Code::not_found);
    EXPECT_EQ(refused([&] { client.remove("nobody"); }), Code::not_found);
    EXPECT_EQ(refused([&] { client.prune("nobody", {}); }), Code::not_found);
    EXPECT_FALSE(client.resume("nobody"));
    EXPECT_EQ(client.remove_ended({}).instances, 0);
}

TEST_P(ManagementBehaviour, AWorkflowIsFoundLookedAtAndCounted) {
    HOLDFAST_CHECK("runtime management_features_with_workflow");
    HOLDFAST_CHECK("runtime instance_discovery");
    HOLDFAST_CHECK("runtime system_metrics");
    HOLDFAST_CHECK("runtime queue_depths");
    HOLDFAST_CHECK("runtime complex_workflow_management");
    HOLDFAST_CHECK("runtime sqlite_provider_basic");
    HOLDFAST_CHECK("runtime execution_status_completed");
    HOLDFAST_CHECK("runtime execution_status_running");
    for (const char* id : {"a-1", "a-2", "b-1", "b-2"}) {
        run_script("waits", id, id);
    }
    tell("a-1", inbox, std::string("!"));
    tell("a-2", inbox, std::string("fail"));
    client.cancel("b-1", "enough");
    client.suspend("b-2", "audit");
    run();
    EXPECT_TRUE(info("b-2").suspended);
    start("waits", "c-1");
    client.signal("b-2", inbox, std::string("unread"));
    const auto found = [&](const ListInstances& ask) {
        std::vector<std::string> ids;
        for (const InstanceInfo& one : client.list(ask).instances) {
            ids.push_back(one.instance);
        }
        std::ranges::sort(ids);
        return ids;
    };
    EXPECT_THAT(found({}), ElementsAre("a-1", "a-2", "b-1", "b-2", "c-1"));
    EXPECT_THAT(found({.status = Status::completed}), ElementsAre("a-1"));
    EXPECT_THAT(found({.status = Status::failed}), ElementsAre("a-2"));
    EXPECT_THAT(found({.status = Status::cancelled}), ElementsAre("b-1"));
    EXPECT_THAT(found({.status = Status::running}), ElementsAre("b-2"));
    EXPECT_THAT(found({.status = Status::pending}), ElementsAre("c-1"));
    EXPECT_THAT(found({.name = "test.script", .id_prefix = "a-"}), ElementsAre("a-1", "a-2"));
    EXPECT_THAT(found({.name = "test.other"}), IsEmpty());
    const SystemStats stats = client.stats();
    EXPECT_EQ(stats.instances, 5);
    EXPECT_EQ(stats.executions, 5);
    std::size_t events = 0;
    for (const std::string& id : found({})) {
        events += client.history(id).size();
    }
    EXPECT_EQ(stats.events, static_cast<std::int64_t>(events));
    EXPECT_EQ(stats.completed + stats.failed + stats.cancelled, 3);
    EXPECT_EQ(stats.running, 1);
    EXPECT_EQ(stats.pending, 1);
    EXPECT_EQ(stats.messages, 2) << "a start and a message wait";
    EXPECT_EQ(client.executions("a-1").at(0).status, Status::completed);
    EXPECT_EQ(client.executions("b-2").at(0).status, Status::running);
    EXPECT_THAT(
        kinds("a-1"),
        ElementsAre(
            "workflow_started", "message_awaited", "message_received", "workflow_completed"));
    run();
    EXPECT_EQ(status("b-2"), Status::running) << "it rests";
    client.resume("b-2");
    run();
    EXPECT_EQ(result("b-2"), "b-2unread");
    EXPECT_EQ(client.stats().messages, 0);
}

TEST_P(ManagementBehaviour, WhatWaitsForAWorkerIsCounted) {
    code("queues", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto [a, b] = co_await all(ctx.activity<&work>("a", "").tag("nobody"),
                                   ctx.activity<&work>("b", "").tag("nobody"));
        co_return a + b;
    });
    run_script("queues", "q");
    EXPECT_EQ(client.stats().activities, 2);
    client.terminate("q", "enough");
    run();
    EXPECT_EQ(client.stats().activities, 0);
}

INSTANTIATE_TEST_SUITE_P(Every, ManagementBehaviour, test::every_backend(), test::backend_name);

// --- generated workflows

// Does what a random source says; the same source gives the same steps on every replay.
Task<std::string> generated(Context& ctx, std::string self, std::string seed) {
    std::minstd_rand random(static_cast<unsigned>(std::stoul(seed)));
    const auto below = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };
    const unsigned steps = 1 + below(6);
    for (unsigned i = 0; i < steps; ++i) {
        const std::string arg = std::to_string(i);
        const unsigned what = below(7);
        if (what == 0) {
            co_await ctx.activity<&work>("step", arg);
        } else if (what == 1) {
            const std::chrono::seconds pause{below(3)};
            co_await ctx.sleep(pause);
        } else if (what == 2) {
            const unsigned width = 1 + below(4);
            std::vector<Op<std::string>> many;
            many.reserve(width);
            for (unsigned k = 0; k < width; ++k) {
                many.push_back(ctx.activity<&work>("step", arg));
            }
            co_await all(std::move(many));
        } else if (what == 3) {
            co_await any(ctx.activity<&work>("step", arg).tag("nobody"), ctx.sleep(1s));
        } else if (what == 4) {
            ctx.kv().set(arg, below(100));
        } else if (what == 5) {
            co_await ctx.activity<&work>("fails", arg).outcome();
        } else if (ctx.execution() < 3 && below(2) == 0) {
            co_return again(self, std::to_string(std::stoul(seed) + 1000));
        }
    }
    if (below(4) == 0) {
        throw permanent("Drawn", "this one fails");
    }
    co_return "done";
}

class GeneratedWorkflows : public Behaviour {
protected:
    static unsigned first_seed() {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
        const char* const chosen = std::getenv("HOLDFAST_SEED");
        return chosen != nullptr ? static_cast<unsigned>(std::strtoul(chosen, nullptr, 10)) : 1;
    }
    void check_history(const std::vector<Event>& history) {
        ASSERT_FALSE(history.empty());
        EventId last = 0;
        std::int64_t time = 0;
        int terminals = 0;
        std::set<EventId> open;
        for (const Event& event : history) {
            EXPECT_GT(event.id, last);
            EXPECT_GE(event.time_ms, time);
            EXPECT_EQ(terminals, 0) << "something after the end";
            last = event.id;
            time = event.time_ms;
            terminals += is_terminal(event.body) ? 1 : 0;
            if (std::holds_alternative<ActivityScheduled>(event.body)) {
                open.insert(event.id);
            } else if (std::holds_alternative<ActivityCompleted>(event.body) ||
                       std::holds_alternative<ActivityFailedEvent>(event.body)) {
                EXPECT_EQ(open.erase(event.source), 1U) << "one answer, to what was asked before";
            } else if (const auto* given_up = std::get_if<OperationCancelled>(&event.body);
                       given_up != nullptr && given_up->operation == Dropped::activity) {
                EXPECT_EQ(open.erase(event.source), 1U);
            }
        }
        EXPECT_TRUE(std::holds_alternative<WorkflowStarted>(history.front().body));
        EXPECT_EQ(history.front().id, 1U);
        EXPECT_EQ(terminals, 1);
        EXPECT_TRUE(open.empty()) << "every activity is answered or given up";
        EXPECT_LE(history.size(), 2U + 6U * 10U) << "bounded by what the code can ask for";
    }
};

TEST_F(GeneratedWorkflows, EveryHistoryIsInOrderAndEndsOnce) {
    HOLDFAST_CHECK("runtime prop_event_ids_monotonic");
    HOLDFAST_CHECK("runtime prop_single_terminal_state");
    HOLDFAST_CHECK("runtime prop_activity_lifecycle");
    HOLDFAST_CHECK("runtime prop_history_event_count_bounds");
    code("generated", &generated);
    activity("fails", [](ActivityContext&, const std::string&) -> std::string {
        throw permanent("Drawn", "no");
    });
    const unsigned first = first_seed();
    constexpr unsigned cases = 20;
    for (unsigned seed = first; seed < first + cases; ++seed) {
        SCOPED_TRACE("HOLDFAST_SEED=" + std::to_string(seed));
        const std::string id = "g-" + std::to_string(seed);
        run_script("generated", id, std::to_string(seed));
        for (int i = 0; i < 100 && !is_final(status(id)); ++i) {
            advance(1s);
        }
        ASSERT_TRUE(is_final(status(id)));
        for (const ExecutionInfo& execution : client.executions(id)) {
            check_history(client.history(id, execution.execution));
        }
    }
    EXPECT_EQ(client.stats().activities, 0);
    EXPECT_EQ(client.stats().messages, 0);
}

// --- both workloads of the benchmark, in miniature

TEST_F(Behaviour, ASmallLoadOfParallelWorkflows) {
    HOLDFAST_CHECK("runtime stress_infrastructure_minimal");
    code("fanout", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::vector<Op<std::string>> many;
        many.reserve(5);
        for (int i = 0; i < 5; ++i) {
            many.push_back(ctx.activity<&work>("step", std::to_string(i)));
        }
        std::string said;
        for (const std::string& text : co_await all(std::move(many))) {
            said += text;
        }
        co_return said;
    });
    for (int i = 0; i < 20; ++i) {
        start("fanout", "f-" + std::to_string(i));
    }
    run();
    EXPECT_EQ(client.stats().completed, 20);
    EXPECT_EQ(seen.of("step"), 100);
    EXPECT_EQ(runtime->stats().turns_lost, 0);
}

TEST_F(Behaviour, ASmallLoadOfLargePayloads) {
    HOLDFAST_CHECK("runtime large_payload_stress_infrastructure");
    activity("grow", [](ActivityContext&, const std::string& bytes) {
        return std::string(static_cast<std::size_t>(std::stoi(bytes)), 'x');
    });
    code("child", [](Context& ctx, std::string, std::string bytes) -> Task<std::string> {
        std::string text = co_await ctx.activity<&work>("grow", bytes);
        co_return text;
    });
    code("large", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::size_t bytes = 0;
        for (const char* size : {"10000", "50000", "100000"}) {
            const std::string own = co_await ctx.activity<&work>("grow", size);
            const std::string childs = co_await ctx.child<&script>("child", size);
            bytes += own.size() + childs.size();
        }
        const std::string message = co_await ctx.receive(inbox);
        co_return std::to_string(bytes + message.size());
    });
    for (const char* id : {"l-1", "l-2"}) {
        start("large", id);
        client.signal(id, inbox, std::string(200'000, 'm'));
    }
    run();
    restart();
    for (const char* id : {"l-1", "l-2"}) {
        EXPECT_EQ(result(id), "520000");
        EXPECT_GT(info(id).history_bytes, 500'000);
    }
}

// --- what is said on the way

TEST_F(Behaviour, WorkflowsAndActivitiesLogAtEveryLevelAndReplayIsSilent) {
    HOLDFAST_CHECK("runtime activity_tracing_emits_all_levels");
    HOLDFAST_CHECK("runtime orchestration_tracing_emits_all_levels");
    CapturingLogger log;
    RuntimeOptions options = manual_options();
    options.logger = &log;
    activity("speaks", [](ActivityContext& ctx, const std::string&) {
        ctx.log().debug("from the activity");
        ctx.log().info("from the activity");
        ctx.log().warn("from the activity");
        ctx.log().error("from the activity");
        return std::string();
    });
    code("speaks", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        ctx.log().debug("from the workflow");
        ctx.log().info("from the workflow");
        ctx.log().warn("from the workflow");
        ctx.log().error("from the workflow");
        co_await ctx.activity<&work>("speaks", "");
        co_await ctx.receive(inbox);
        ctx.log().info("after the replay");
        co_return "";
    });
    restart(behaviour_registry(), options);
    run_script("speaks", "s");
    restart(behaviour_registry(), options);  // The first lines are run again, and not said again.
    tell("s", inbox, std::string("go on"));
    EXPECT_EQ(status("s"), Status::completed);
    for (const std::string who : {"workflow", "activity"}) {
        for (const std::string level : {"debug", "info", "warn", "error"}) {
            EXPECT_EQ(log.count(fmt::format("level={} event=\"from the {}", level, who)), 1U)
                << level << " from the " << who;
        }
    }
    EXPECT_EQ(log.count("after the replay"), 1U);
}

// --- one thing more than the rest

TEST_F(Behaviour, RetriesAndTimeoutsBeginAnewInTheNextExecution) {
    HOLDFAST_CHECK("runtime retry_timeout_with_continue_as_new");
    activity("step", [](ActivityContext&, const std::string&) -> std::string {
        throw Failure("Busy", "not yet");
    });
    code("tries", [](Context& ctx, std::string self, std::string said) -> Task<std::string> {
        const RetryPolicy policy{.attempts = 2, .first = 1s};
        auto tried = co_await ctx.activity<&work>("step", "").retry(policy).timeout(30s).outcome();
        said += tried.failure().type + " ";
        if (ctx.execution() == 1) {
            co_return again(self, said);
        }
        co_return said;
    });
    run_script("tries", "t");
    for (int execution = 1; execution <= 2; ++execution) {
        ASSERT_EQ(info("t").execution, static_cast<ExecutionId>(execution));
        EXPECT_THAT(events<ActivityScheduled>("t"), SizeIs(1));
        EXPECT_EQ(seen.of("step"), 2 * execution - 1);
        advance(1s);
    }
    EXPECT_EQ(result("t"), "Busy Busy ");
    EXPECT_EQ(client.stats().activities, 0);
    EXPECT_EQ(client.stats().messages, 0) << "no timer of the first execution is left";
}

}  // namespace
}  // namespace holdfast::flow::tests

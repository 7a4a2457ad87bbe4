// Whole programs, one for each thing that a workflow can do.
#include <future>
#include <thread>

#include "behaviour/test/behaviour_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

// --- with types of their own

struct Order {
    std::string item;
    int count = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Order, item, count)
struct Price {
    std::int64_t cents = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Price, cents)

inline constexpr Channel<Order> orders{"orders"};
inline constexpr Signal<Price> offers{"offers"};

Price price_of(Order order) {
    seen.count("price");
    return Price{.cents = order.count * 100};
}

}  // namespace
}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::price_of, "test.price_of");

namespace holdfast::flow::tests {
namespace {

Workflow<Price> typed_order(Context& ctx, Order order) {
    Price price = co_await ctx.activity<&price_of>(order);
    co_return price;
}
// A typed workflow that calls an activity it knows by name only.
Workflow<Price> typed_by_name(Context& ctx, Order order) {
    const Payload input{R"([{"item":")" + order.item + R"(","count":2}])"};
    Payload answer = co_await ctx.activity("test.price_of", input);
    co_return Codec<Price>::decode(answer.json);
}
Workflow<Price> typed_events(Context& ctx) {
    Order order = co_await ctx.receive(orders);
    Price offer = co_await ctx.await_signal(offers);
    co_return Price{.cents = order.count * offer.cents};
}

}  // namespace
}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::typed_order, "test.typed_order");
HOLDFAST_NAME(holdfast::flow::tests::typed_by_name, "test.typed_by_name");
HOLDFAST_NAME(holdfast::flow::tests::typed_events, "test.typed_events");

namespace holdfast::flow::tests {
namespace {

class TypedSamples : public Behaviour {
protected:
    TypedSamples() {
        Registry registry = behaviour_registry();
        registry.activity<&price_of>()
            .workflow<&typed_order>()
            .workflow<&typed_by_name>()
            .workflow<&typed_events>();
        restart(registry);
    }
    template <auto W>
    std::int64_t cents(std::string_view id) {
        return client.result<W>(id, 0ms)->cents;
    }
};

TEST_F(TypedSamples, TypesAreCheckedByTheCompilerAndCarriedAsJson) {
    HOLDFAST_CHECK("runtime sample_typed_activity_and_orchestration_fs");
    HOLDFAST_CHECK("runtime register_versioned_typed");
    const Order order{.item = "tea", .count = 3};
    client.start<&typed_order>("o", order);
    run();
    EXPECT_EQ(cents<&typed_order>("o"), 300);
    EXPECT_EQ(events<ActivityScheduled>("o")[0].input.json, R"([{"count":3,"item":"tea"}])");
}

TEST_F(TypedSamples, TypesAndPlainPayloadsMix) {
    HOLDFAST_CHECK("runtime sample_mixed_string_and_typed_typed_orch_fs");
    HOLDFAST_CHECK("runtime sample_mixed_string_and_typed_string_orch_fs");
    const Order order{.item = "tea", .count = 3};
    client.start<&typed_by_name>("typed", order);
    // The other way round: started by its name, with JSON written by hand.
    client.start_by_name({}, "test.typed_order", "plain", Payload{R"([{"item":"tea","count":4}])"});
    run();
    EXPECT_EQ(cents<&typed_by_name>("typed"), 200);
    EXPECT_EQ(info("plain").output, R"({"cents":400})");
}

TEST_F(TypedSamples, MessagesAndSignalsHaveTypes) {
    HOLDFAST_CHECK("runtime sample_typed_event_fs");
    HOLDFAST_CHECK("runtime raise_event_typed_round_trip");
    HOLDFAST_CHECK("runtime enqueue_event_typed_round_trip");
    client.start<&typed_events>("e");
    const Order order{.item = "\"tea\"\n", .count = 3};
    tell("e", orders, order);
    const Price offer{.cents = 7};
    client.signal("e", offers, offer);
    run();
    EXPECT_EQ(cents<&typed_events>("e"), 21);
    EXPECT_EQ(Codec<Order>::decode(events<MessageReceived>("e")[0].data.json).item, "\"tea\"\n");
}

// --- control flow

using Samples = Behaviour;

TEST_F(Samples, BranchesAndLoopsAreTheLanguagesOwn) {
    HOLDFAST_CHECK("runtime sample_basic_control_flow_fs");
    HOLDFAST_CHECK("runtime sample_loop_fs");
    activity("flag", [](ActivityContext&, const std::string& arg) {
        return std::string(arg == "3" ? "yes" : "no");
    });
    code("loops", [](Context& ctx, std::string, std::string limit) -> Task<std::string> {
        std::string said;
        for (int i = 1; i <= std::stoi(limit); ++i) {
            std::string flag = co_await ctx.activity<&work>("flag", std::to_string(i));
            if (flag == "yes") {
                std::string next = co_await ctx.activity<&work>("say", "!");
                said += next;
            } else {
                said += ".";
            }
        }
        co_return said;
    });
    run_script("loops", "l", "5");
    EXPECT_EQ(result("l"), "..!..");
    EXPECT_EQ(seen.of("flag"), 5);
    EXPECT_EQ(seen.of("say"), 1);
}

TEST_F(Samples, GreetingsFanOutAndComeBackInOrder) {
    HOLDFAST_CHECK("runtime dtf_legacy_gabbar_greetings_fs");
    HOLDFAST_CHECK("runtime single_orchestration_with_join_test");
    code("greets", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto [one, two, heard, nothing] = co_await all(ctx.activity<&greet>("Gabbar"),
                                                       ctx.activity<&greet>("Samba"),
                                                       ctx.receive(inbox),
                                                       ctx.sleep(1s));
        (void)nothing;
        co_return one + ", " + two + ", " + heard;
    });
    run_script("greets", "g");
    tell("g", inbox, std::string("hello yourself"));
    EXPECT_EQ(status("g"), Status::running) << "the timer is part of it";
    advance(1s);
    EXPECT_EQ(result("g"), "hello Gabbar, hello Samba, hello yourself");
}

TEST_F(Samples, FailuresAreCaughtWhereTheyMatter) {
    HOLDFAST_CHECK("runtime sample_error_handling_fs");
    HOLDFAST_CHECK("runtime sample_nested_function_error_handling_fs");
    HOLDFAST_CHECK("runtime sample_error_recovery_fs");
    activity("fragile", [](ActivityContext&, const std::string& arg) -> std::string {
        throw Failure("Broken", arg);
    });
    code("recovers", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const auto inner = [](Context& c, std::string arg) -> Task<std::string> {
            std::string text = co_await c.activity<&work>("fragile", arg);
            co_return "never " + text;
        };
        const auto middle = [inner](Context& c, std::string arg) {
            return inner(c, arg + " deep");  // What leaves one coroutine enters the next.
        };
        std::string caught;
        try {
            co_await middle(ctx, "down");
        } catch (const ActivityFailed& failure) {
            caught = failure.what();
        }
        std::string instead = co_await ctx.activity<&work>("fallback", "recovered");
        co_return instead + " from " + caught;
    });
    run_script("recovers", "r");
    EXPECT_EQ(result("r"), "recovered from down deep");
}

TEST_F(Samples, ARaceAgainstATimerOrASignal) {
    HOLDFAST_CHECK("runtime sample_timeout_with_timer_race_fs");
    HOLDFAST_CHECK("runtime sample_select2_activity_vs_external_fs");
    HOLDFAST_CHECK("runtime race_external_vs_timer_ordering_fs");
    HOLDFAST_CHECK("runtime race_event_vs_timer_event_wins_fs");
    HOLDFAST_CHECK("runtime wait_external_completes_fs");
    code("races", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto never = ctx.activity<&work>("slow", "").tag("nobody");
        auto first = co_await any(std::move(never), ctx.await_signal(bell), ctx.sleep(10s));
        if (first.index() == 1) {
            co_return "rung " + std::get<1>(first);
        }
        co_return first.index() == 0 ? "done" : "timed out";
    });
    for (const char* id : {"rung", "late", "both"}) {
        run_script("races", id);
    }
    client.signal("rung", bell, std::string("ding"));
    run();
    EXPECT_EQ(result("rung"), "rung ding");
    place.db.advance_clock(10s);
    client.signal("both", bell, std::string("just in time"));  // The timer is older, and so first.
    run();
    EXPECT_EQ(result("late"), "timed out");
    EXPECT_EQ(result("both"), "timed out");
    EXPECT_EQ(client.stats().activities, 0) << "the losers are called back";
}

TEST_F(Samples, TimeAndIdsNeedNoRoundTripAndStayTheSame) {
    HOLDFAST_CHECK("runtime sample_system_activities_fs");
    HOLDFAST_CHECK("runtime syscalls_work_in_single_thread_mode");
    HOLDFAST_CHECK("runtime cancellation_with_pending_syscall");
    code("asks", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const std::string id = ctx.uuid();
        const Moment began = ctx.now();
        ctx.kv().set("id", id);
        co_await ctx.receive(inbox);
        const bool later = ctx.now() - began >= 1h;
        co_return id + (later ? " later" : " at once");
    });
    run_script("asks", "a");
    run_script("asks", "cancelled");
    const std::string id = client.kv<std::string>("a", "id").value();
    place.db.advance_clock(1h);
    restart();
    tell("a", inbox, std::string("go on"));
    EXPECT_EQ(result("a"), id + " later");
    EXPECT_NE(client.kv<std::string>("cancelled", "id"), id) << "each instance has its own";
    // A call of the context is over when it returns, so there is never one to cancel.
    client.cancel("cancelled", "enough");
    run();
    EXPECT_EQ(status("cancelled"), Status::cancelled);
    EXPECT_THAT(events<OperationCancelled>("cancelled"), SizeIs(1)) << "the wait for a message";
}

// --- other workflows

TEST_F(Samples, ChildrenAreCalledLikeFunctions) {
    HOLDFAST_CHECK("runtime sample_sub_orchestration_basic_fs");
    HOLDFAST_CHECK("runtime sample_sub_orchestration_chained_fs");
    code("leaf", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
        std::string text = co_await ctx.activity<&work>("step", arg + ".leaf");
        co_return text;
    });
    code("middle", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
        std::string text = co_await ctx.child<&script>("leaf", arg + ".middle");
        co_return text;
    });
    code("root", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
        std::string text = co_await ctx.child<&script>("middle", arg);
        co_return "root of " + text;
    });
    run_script("root", "r", "x");
    EXPECT_EQ(result("r"), "root of x.middle.leaf");
    EXPECT_THAT(client.tree("r"), SizeIs(3));
}

TEST_F(Samples, ADetachedWorkflowLivesOnByItself) {
    HOLDFAST_CHECK("runtime sample_detached_orchestration_scheduling_fs");
    HOLDFAST_CHECK("runtime sample_detached_then_activity_fs");
    code("chained", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
        co_await ctx.receive(inbox);
        co_return "chained " + arg;
    });
    code("starter", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        ctx.detach<&script>("d-1", "chained", "A");
        ctx.detach<&script>("d-2", "chained", "B");
        std::string text = co_await ctx.activity<&work>("step", "scheduled");
        co_return text;
    });
    run_script("starter", "s");
    EXPECT_EQ(result("s"), "scheduled");
    for (const char* id : {"d-1", "d-2"}) {
        EXPECT_EQ(status(id), Status::running) << id;
        EXPECT_FALSE(info(id).parent) << id;
    }
    client.remove("s");
    tell("d-1", inbox, std::string("end"));
    EXPECT_EQ(result("d-1"), "chained A");
    EXPECT_EQ(status("d-2"), Status::running);
}

// --- for ever

TEST_F(Samples, AnEternalWorkflowBeginsAnew) {
    HOLDFAST_CHECK("runtime sample_continue_as_new_fs");
    HOLDFAST_CHECK("runtime continue_as_new_chain_5_iterations");
    HOLDFAST_CHECK("runtime continue_as_new_chain_with_activities");
    code("counts", [](Context& ctx, std::string self, std::string n) -> Task<std::string> {
        std::string next = co_await ctx.activity<&work>("step", std::to_string(std::stoi(n) + 1));
        if (next == "5") {
            co_return "final " + next;
        }
        co_return again(self, next);
    });
    run_script("counts", "c", "0");
    EXPECT_EQ(result("c"), "final 5");
    const auto executions = client.executions("c");
    ASSERT_EQ(executions.size(), 5U);
    for (std::size_t i = 0; i + 1 < executions.size(); ++i) {
        EXPECT_EQ(executions[i].status, Status::continued) << i;
        EXPECT_EQ(executions[i].last_event, 4U) << "each history is short: " << i;
    }
    EXPECT_EQ(seen.of("step"), 5);
}

TEST_F(Samples, AnEternalWorkflowPrunesWhatItLeavesBehind) {
    HOLDFAST_CHECK("runtime sample_self_pruning_eternal_orchestration");
    HOLDFAST_CHECK("runtime prune_during_active_continue_as_new");
    activity("prune", [this](ActivityContext& ctx, const std::string&) {
        return std::to_string(client.prune(ctx.instance(), {.keep_last = 1}).executions);
    });
    code("eternal", [](Context& ctx, std::string self, std::string n) -> Task<std::string> {
        std::string pruned = co_await ctx.activity<&work>("prune", "");
        if (n == "4") {
            co_return "pruned " + pruned;
        }
        co_return again(self, std::to_string(std::stoi(n) + 1));
    });
    run_script("eternal", "e", "1");
    EXPECT_EQ(result("e"), "pruned 1") << "what each one finds is the one before";
    const auto executions = client.executions("e");
    ASSERT_EQ(executions.size(), 1U);
    EXPECT_EQ(executions[0].execution, 4U);
}

TEST_F(Samples, AConfigurationIsReloadedWhileTheWorkflowRuns) {
    HOLDFAST_CHECK("runtime sample_config_hot_reload_persistent_events_fs");
    code("service", [](Context& ctx, std::string self, std::string config) -> Task<std::string> {
        co_await ctx.sleep(1s);
        while (std::optional<std::string> newer = ctx.try_receive(inbox)) {
            config = *newer;  // The last one counts.
        }
        ctx.status(config);
        if (config == "stop") {
            co_return "stopped";
        }
        co_return again(self, config);
    });
    run_script("service", "s", "v1");
    advance(1s);
    EXPECT_EQ(info("s").custom_status->json, R"("v1")");
    tell("s", inbox, std::string("v2"));
    tell("s", inbox, std::string("v3"));
    EXPECT_EQ(info("s").custom_status->json, R"("v1")") << "it looks when it wants to";
    advance(1s);
    EXPECT_EQ(info("s").custom_status->json, R"("v3")");
    tell("s", inbox, std::string("stop"));
    advance(1s);
    EXPECT_EQ(result("s"), "stopped");
}

// --- keys

TEST_F(Samples, ARequestIsAnsweredThroughAKey) {
    HOLDFAST_CHECK("runtime sample_kv_request_response");
    HOLDFAST_CHECK("runtime sample_kv_read_modify_write_counter");
    code("server", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        for (;;) {
            std::string request = co_await ctx.receive(inbox);
            const std::int64_t served = ctx.kv().get<std::int64_t>("served").value_or(0);
            ctx.kv().set("served", served + 1);
            if (request == "stop") {
                co_return std::to_string(served);
            }
            std::string answer = co_await ctx.activity<&work>("compute", request + " done");
            ctx.kv().set("response " + request, answer);
        }
    });
    run_script("server", "s");
    for (const char* request : {"a", "b"}) {
        EXPECT_EQ(client.kv<std::string>("s", std::string("response ") + request), std::nullopt);
        tell("s", inbox, std::string(request));
        EXPECT_EQ(client.kv<std::string>("s", std::string("response ") + request),
                  std::string(request) + " done");
        restart();
    }
    EXPECT_EQ(client.kv<std::int64_t>("s", "served"), 2);
    tell("s", inbox, std::string("stop"));
    EXPECT_EQ(result("s"), "2");
}

// --- on one thread

TEST_F(Samples, AWholeRuntimeRunsOnItsCallersThread) {
    HOLDFAST_CHECK("runtime single_thread_basic_orchestration");
    HOLDFAST_CHECK("runtime single_thread_sequential_activities");
    HOLDFAST_CHECK("runtime single_thread_timer_handling");
    HOLDFAST_CHECK("runtime single_thread_continue_as_new");
    HOLDFAST_CHECK("runtime single_thread_concurrent_orchestrations");
    HOLDFAST_CHECK("runtime single_thread_single_concurrency");
    RuntimeOptions options = manual_options();
    options.workflow_threads = 1;
    options.activity_threads = 1;
    restart(behaviour_registry(), options);
    const std::thread::id here = std::this_thread::get_id();
    activity("where", [here](ActivityContext&, const std::string& arg) {
        return std::this_thread::get_id() == here ? arg : "elsewhere";
    });
    code("steps", [](Context& ctx, std::string self, std::string arg) -> Task<std::string> {
        std::string one = co_await ctx.activity<&work>("where", arg);
        std::string two = co_await ctx.activity<&work>("where", one);
        co_await ctx.sleep(1s);
        if (ctx.execution() == 1) {
            co_return again(self, two);
        }
        co_return two;
    });
    for (const char* id : {"a", "b", "c"}) {
        start("steps", id, id);
    }
    run();
    advance(1s);
    advance(1s);
    for (const char* id : {"a", "b", "c"}) {
        EXPECT_EQ(result(id), id);
    }
    EXPECT_EQ(seen.of("where"), 3 * 2 * 2);
}

// "For ever" must not become "at once", which is what comes of adding it to now.
TEST_F(Samples, ForEverIsNotOver) {
    code("waits", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        constexpr milliseconds ever = milliseconds::max();
        auto first = co_await any(ctx.sleep(ever),
                                  ctx.sleep_until(Moment::max()),
                                  ctx.activity<&work>("render", "").tag("gpu").timeout(ever),
                                  ctx.activity<&work>("render", "").tag("gpu").start_within(ever),
                                  ctx.receive(inbox));
        co_return std::to_string(first.index());
    });
    run_script("waits", "w");
    advance(24h * 365);
    EXPECT_EQ(status("w"), Status::running);
    auto outcome = std::async(std::launch::async,
                              [&] { return client.result<&script>("w", milliseconds::max()); });
    tell("w", inbox, std::string("enough"));
    EXPECT_EQ(*outcome.get(), "4");
    client.start_with<&script>({.delay = milliseconds::max()}, "never", "waits", "");
    run();
    EXPECT_EQ(status("never"), Status::pending);
}

}  // namespace
}  // namespace holdfast::flow::tests

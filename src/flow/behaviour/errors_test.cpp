// What goes wrong: in activities, in the code of a workflow, and in what is sent to it.
#include <array>

#include "behaviour/test/behaviour_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {
namespace {

// An order is paid and shipped, and paid back if it cannot be shipped.
Task<std::string> order(Context& ctx, std::string, std::string) {
    const std::string paid = co_await ctx.activity<&work>("debit", "7");
    std::string failed;
    try {
        co_await ctx.activity<&work>("ship", paid);
    } catch (const ActivityFailed& failure) {
        failed = failure.type();
    }
    if (!failed.empty()) {
        const std::string back = co_await ctx.activity<&work>("credit", paid);
        co_return "paid back " + back + ": " + failed;
    }
    co_return "shipped";
}

// In a file and in memory.
class ErrorStores : public testing::TestWithParam<std::string> {
protected:
    ErrorStores() {
        seen.reset();
        scripts = {};
        scripts.codes["order"] = &order;
        if (GetParam() == "file") {
            file.emplace(test::Backend::sqlite);
            store.emplace(**file);
        } else {
            store.emplace("sqlite::memory:");
        }
    }
    static Work refuses(const std::string& type) {
        return [type](ActivityContext&, const std::string&) -> std::string {
            throw permanent(type, "no");
        };
    }
    Expected<std::string> ordered() {
        Runtime runtime(*store, behaviour_registry(), manual_options());
        Client client(*store);
        client.start<&script>("o", "order", "");
        runtime.run_until_idle();
        return client.result<&script>("o", 0ms);
    }
    std::optional<test::Database> file;
    std::optional<Store> store;
};

TEST_P(ErrorStores, AnOrderThatGoesWellIsShipped) {
    HOLDFAST_CHECK("runtime error_handling_success_path_inmem");
    HOLDFAST_CHECK("runtime error_handling_success_path_fs");
    EXPECT_EQ(*ordered(), "shipped");
    EXPECT_EQ(seen.of("credit"), 0);
}

TEST_P(ErrorStores, WhatCannotBeShippedIsPaidBack) {
    HOLDFAST_CHECK("runtime error_handling_compensation_on_ship_failure_fs");
    scripts.works["ship"] = refuses("NoTruck");
    EXPECT_EQ(*ordered(), "paid back 7: NoTruck");
    EXPECT_EQ(seen.of("credit"), 1);
}

TEST_P(ErrorStores, WhatWasNotPaidIsNotShipped) {
    HOLDFAST_CHECK("runtime error_handling_early_debit_failure_inmem");
    HOLDFAST_CHECK("runtime error_handling_early_debit_failure_fs");
    scripts.works["debit"] = refuses("NoMoney");
    const auto outcome = ordered();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.failure().type, "NoMoney");
    EXPECT_EQ(seen.of("ship") + seen.of("credit"), 0);
}

INSTANTIATE_TEST_SUITE_P(Both,
                         ErrorStores,
                         testing::Values("file", "memory"),
                         [](const auto& where) { return where.param; });

using ErrorBehaviour = Behaviour;

TEST_F(ErrorBehaviour, AFailureEndsTheWorkflowThatLetsItOut) {
    HOLDFAST_CHECK("runtime orchestration_immediate_fail_fs");
    HOLDFAST_CHECK("runtime orchestration_propagates_activity_failure_fs");
    HOLDFAST_CHECK("runtime sample_basic_error_handling_fs");
    HOLDFAST_CHECK("runtime execution_status_failed");
    code("at once", [](Context&, std::string, std::string) -> Task<std::string> {
        throw permanent("Sad", "no stock");
        co_return "";
    });
    code("from below", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string text = co_await ctx.activity<&work>("breaks", "");
        co_return text;
    });
    activity("breaks", [](ActivityContext&, const std::string&) -> std::string {
        throw std::runtime_error("out of paper");
    });
    run_script("at once", "a");
    run_script("from below", "b");
    EXPECT_EQ(result("a"), "Sad: no stock");
    EXPECT_EQ(failure("b").message, "out of paper");
    EXPECT_EQ(failure("b").kind, FailureKind::application);
    EXPECT_EQ(client.executions("b")[0].status, Status::failed);
}

// A workflow without its code waits for a process that has it, and an activity likewise: a
// deployment may take as long as it likes.
TEST_F(ErrorBehaviour, AnActivityThatNoWorkerHasWaitsHoweverLong) {
    HOLDFAST_CHECK("runtime unknown_activity_fails_fs");
    HOLDFAST_CHECK("runtime unknown_activity_fails_with_poison");
    HOLDFAST_CHECK("runtime backoff_calculation");
    code("asks", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const Payload input{"[]"};
        const Payload answer = co_await ctx.activity("test.nobody", input);
        co_return answer.json;
    });
    RuntimeOptions options = manual_options();
    options.unregistered_first = 1min;
    options.unregistered_max = 1h;
    restart(behaviour_registry(), options);
    run_script("asks", "a");
    // Each pause is twice the one before, up to the longest.
    constexpr std::array<int, 12> minutes{1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60};
    for (std::size_t i = 0; i < minutes.size(); ++i) {
        const auto tries = [&] {
            return place.db.number("SELECT unserved_tries FROM flow_activities");
        };
        EXPECT_EQ(tries(), i + 1);
        advance(std::chrono::minutes{minutes[i]} - 30s);
        EXPECT_EQ(tries(), i + 1) << "too early";
        advance(30s);
    }
    EXPECT_EQ(status("a"), Status::running);
    EXPECT_EQ(place.db.number("SELECT attempts FROM flow_activities"), 0);
    EXPECT_EQ(info("a").unserved_activity, "test.nobody");
    EXPECT_EQ(client.stats().unserved_activities, 1);
}

TEST_F(ErrorBehaviour, WhatComesAfterTheEndChangesNothing) {
    HOLDFAST_CHECK("runtime event_after_completion_is_ignored_fs");
    code("ends", [](Context&, std::string, std::string) -> Task<std::string> { co_return "done"; });
    run_script("ends", "e");
    const auto before = client.history("e");
    EXPECT_EQ(client.signal("e", bell, std::string("late")), Delivery::ended);
    EXPECT_EQ(client.signal("e", inbox, std::string("late")), Delivery::ended);
    EXPECT_EQ(client.cancel("e", "late"), Delivery::ended);
    run();
    EXPECT_EQ(client.history("e"), before);
    EXPECT_EQ(result("e"), "done");
}

// A name that no database takes is found where the code says it, not when the turn is committed
// together with other workflows' turns.
TEST_F(ErrorBehaviour, NamesThatCannotBeStoredAreTheCodesFailure) {
    code("names", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string said;
        const auto attempt = [&](auto&& what) {
            try {
                what();
            } catch (const Failure& failure) {
                said += failure.type() + " ";
            }
        };
        attempt([&] { ctx.detach<&script>("", "names", ""); });
        attempt([&] { ctx.detach<&script>(std::string(257, 'x'), "names", ""); });
        attempt([&] { ctx.kv().set("\xff", "value"); });
        attempt([&] { ctx.attribute(std::string("a\0b", 3), std::string("value")); });
        attempt([&] { (void)ctx.patched("\xfe"); });
        try {
            co_await ctx.activity<&work>("tagged", "").tag("\xff");
        } catch (const Failure& failure) {
            said += failure.type() + " ";
        }
        const Payload nothing("[]");
        try {
            co_await ctx.activity("", nothing);
        } catch (const Failure& failure) {
            said += failure.type();
        }
        co_return said;
    });
    run_script("names", "n");
    EXPECT_EQ(result("n"),
              "InvalidOperation InvalidOperation InvalidOperation InvalidOperation "
              "InvalidOperation InvalidOperation InvalidOperation");
    EXPECT_EQ(kinds("n"), (std::vector<std::string>{"workflow_started", "workflow_completed"}));
}

TEST_F(ErrorBehaviour, AChildsIdThatGrowsTooLongIsNamed) {
    code("leaf", [](Context&, std::string, std::string) -> Task<std::string> { co_return ""; });
    code("family", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string text = co_await ctx.child<&script>("leaf", "");
        co_return text;
    });
    const std::string parent(255, 'p');
    run_script("family", parent);
    EXPECT_EQ(failure(parent).type, "LimitExceeded");
    EXPECT_THAT(failure(parent).message, HasSubstr(".id()"));
}

TEST_F(ErrorBehaviour, WhatIsNoJsonIsRefusedAtTheDoor) {
    code("bytes", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const Payload nonsense("{nonsense");
        const Payload reply = co_await ctx.activity("test.work", nonsense);
        co_return reply.json;
    });
    run_script("bytes", "b");
    EXPECT_THAT(failure("b").message, HasSubstr("not JSON"));
    EXPECT_EQ(test::code_of([&] { client.start_by_name({}, "test.script", "c", Payload{"["}); }),
              Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { client.send("b", ChannelMessage{"inbox", Payload{""}}); }),
              Code::invalid_argument);
}

TEST_F(ErrorBehaviour, AHistoryThatGrowsTooLongEndsItsInstance) {
    HOLDFAST_CHECK("runtime history_cap_exceeded_fs");
    RuntimeOptions options = manual_options();
    options.limits.events_max = 50;
    options.limits.events_soft = 40;
    restart(behaviour_registry(), options);
    code("endless", [](Context& ctx, std::string self, std::string how) -> Task<std::string> {
        for (;;) {
            co_await ctx.activity<&work>("step", "");
            if (how == "careful" && ctx.suggest_continue_as_new()) {
                if (ctx.execution() == 3) {
                    co_return "three times";
                }
                co_return again(self, how);
            }
        }
    });
    run_script("endless", "careless");
    EXPECT_EQ(status("careless"), Status::failed);
    EXPECT_EQ(failure("careless").type, "HistoryTooLong");
    EXPECT_EQ(failure("careless").kind, FailureKind::infrastructure);
    run_script("endless", "careful", "careful");
    EXPECT_EQ(result("careful"), "three times");
}

// --- what does not fit the history

class Mismatches : public Behaviour {
protected:
    Mismatches() {
        code("waits", [](Context& ctx, std::string, std::string) -> Task<std::string> {
            const std::string text = co_await ctx.receive(inbox);  // Event 2.
            std::string done = co_await ctx.activity<&work>("step", text).tag("nobody");
            co_return done;
        });
    }
    void send(const std::string& id, ExecutionId execution, MessageBody body) {
        client.provider().send(
            {.instance = id, .message = {.execution = execution, .body = std::move(body)}});
        run();
    }
};

TEST_F(Mismatches, OtherCodeUnderARunningInstanceIsFound) {
    HOLDFAST_CHECK("runtime code_swap_triggers_nondeterminism");
    run_script("waits", "w");
    tell("w", inbox, std::string("x"));
    runtime.reset();
    code("waits", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string text = co_await ctx.receive(inbox);
        co_await ctx.sleep(1s);
        co_return text;
    });
    restart();
    tell("w", inbox, std::string("y"));
    EXPECT_EQ(info("w").blocked.value().kind, BlockKind::nondeterminism);
    EXPECT_THAT(info("w").blocked->reason, HasSubstr("activity_scheduled 'test.work'"));
}

TEST_F(Mismatches, AnAnswerToWhatWasNotAskedIsFound) {
    HOLDFAST_CHECK("runtime completion_kind_mismatch_triggers_nondeterminism");
    HOLDFAST_CHECK("runtime unexpected_completion_id_triggers_nondeterminism");
    HOLDFAST_CHECK("runtime unexpected_timer_completion_triggers_nondeterminism");
    const std::map<std::string, MessageBody> answers{
        {"other kind", TimerMessage{2, 0}},
        {"no such event", ActivityAnswer{99, Payload{"1"}}},
        {"no such timer", TimerMessage{99, 0}}};
    for (const auto& [id, answer] : answers) {
        run_script("waits", id);
        send(id, 1, answer);
        EXPECT_EQ(status(id), Status::running) << id;
        EXPECT_EQ(info(id).blocked.value().kind, BlockKind::nondeterminism) << id;
    }
}

// Answers of other executions are not nondeterminism, and code need not await what it asked for
// before its execution continues.
TEST_F(Mismatches, AnswersOfOtherExecutionsArePassedOver) {
    HOLDFAST_CHECK("runtime continue_as_new_with_unconsumed_completion_triggers_nondeterminism");
    HOLDFAST_CHECK("runtime execution_id_filtering_prevents_cross_execution_completions");
    // clang-format off: the mark stands in one line.
    HOLDFAST_CHECK("runtime execution_id_filtering_without_continue_as_new_triggers_nondeterminism");
    // clang-format on
    HOLDFAST_CHECK("runtime activity_completion_after_continue_as_new_is_discarded");
    HOLDFAST_CHECK("runtime activity_completes_after_continue_as_new");
    code("rounds", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        auto step = ctx.start(ctx.activity<&work>("step", round).tag("nobody"));
        const std::string text = co_await ctx.receive(inbox);
        if (round == "1") {
            co_return again(self, "2");
        }
        const std::string answer = co_await step;
        co_return text + answer;
    });
    run_script("rounds", "r", "1");
    send("r", 9, ActivityAnswer{2, Payload{"\"of the future\""}});
    EXPECT_EQ(status("r"), Status::running);
    send("r", 1, ActivityAnswer{2, Payload{"\"unread\""}});
    tell("r", inbox, std::string("a"));
    ASSERT_EQ(info("r").execution, 2U);
    send("r", 1, ActivityAnswer{2, Payload{"\"of the past\""}});
    tell("r", inbox, std::string("b"));
    EXPECT_EQ(status("r"), Status::running);
    send("r", 2, ActivityAnswer{2, Payload{"\"mine\""}});
    EXPECT_EQ(result("r"), "bmine");
}

TEST_F(Mismatches, WhatComesTwiceIsTakenOnce) {
    HOLDFAST_CHECK("runtime duplicate_external_events_are_handled_gracefully");
    HOLDFAST_CHECK("runtime external_duplicate_workitems_dedup");
    HOLDFAST_CHECK("runtime timer_duplicate_workitems_dedup");
    HOLDFAST_CHECK("runtime activity_duplicate_completion_workitems_dedup");
    code("mixed", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const std::string rung = co_await ctx.await_signal(bell);                           // 2
        co_await ctx.sleep(1h);                                                             // 4
        const std::string done = co_await ctx.activity<&work>("step", rung).tag("nobody");  // 6
        co_await ctx.receive(inbox);
        co_return rung + done;
    });
    run_script("mixed", "m");
    for (int i = 0; i < 2; ++i) {
        client.signal("m", bell, std::string("ding"));
    }
    run();
    EXPECT_THAT(events<SignalReceived>("m"), SizeIs(2)) << "both are on record, one was awaited";
    const auto asked = [&](std::string_view kind) {
        for (const Event& event : client.history("m")) {
            if (kind_name(event.body) == kind) {
                return event.id;
            }
        }
        return EventId{0};
    };
    const EventId timer = asked("timer_created");
    for (int i = 0; i < 2; ++i) {
        client.provider().send({.instance = "m", .message = {1, TimerMessage{timer, 1}}});
    }
    run();
    EXPECT_THAT(events<TimerFired>("m"), SizeIs(1));
    const EventId step = asked("activity_scheduled");
    for (const char* answer : {"\"one\"", "\"two\""}) {
        client.provider().send(
            {.instance = "m", .message = {1, ActivityAnswer{step, Payload{answer}}}});
    }
    run();
    send("m", 1, ActivityAnswer{step, FailureInfo{.message = "a late failure"}});
    EXPECT_THAT(events<ActivityCompleted>("m"), SizeIs(1));
    tell("m", inbox, std::string("end"));
    EXPECT_EQ(result("m"), "dingone");
}

}  // namespace
}  // namespace holdfast::flow::tests

// Messages wait in their channels until the code takes them; signals reach only a waiting workflow.
#include "behaviour/test/behaviour_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

inline constexpr Channel<std::string> left{"left"};
inline constexpr Channel<std::string> right{"right"};
inline constexpr Signal<std::string> same_name{"inbox"};  // As the channel.

class QueueBehaviour : public StoredBehaviour {
protected:
    template <class To>
    void post(const To& to, std::initializer_list<const char*> texts) {
        for (const char* text : texts) {
            client.signal("q", to, std::string(text));
        }
        run();
    }
};

TEST_P(QueueBehaviour, AWaitThatLostARaceTakesNothing) {
    HOLDFAST_CHECK("runtime persistent_event_survives_select_cancellation_late_extra_discarded");
    HOLDFAST_CHECK("runtime persistent_multiple_cancelled_subscriptions_only_active_receives");
    code("races", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        for (int i = 0; i < 3; ++i) {
            auto first = co_await any(ctx.receive(inbox), ctx.sleep(1min));
            if (first.index() == 0) {
                co_return "too early";
            }
        }
        std::string text = co_await ctx.receive(inbox);
        co_return text;
    });
    run_script("races", "q");
    for (int i = 0; i < 3; ++i) {
        advance(1min);
    }
    EXPECT_THAT(events<OperationCancelled>("q"), SizeIs(3));
    post(inbox, {"for the fourth", "one too many"});
    EXPECT_EQ(result("q"), "for the fourth");
    EXPECT_EQ(client.stats().messages, 0) << "what nobody wanted went with the end";
}

TEST_P(QueueBehaviour, ChannelsAndSignalsOfOneNameAreTwoThings) {
    HOLDFAST_CHECK("runtime persistent_and_positional_are_independent");
    HOLDFAST_CHECK("runtime select_then_join_persistent_and_positional");
    code("both", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto first = co_await any(ctx.receive(inbox), ctx.await_signal(same_name));
        std::string won =
            first.index() == 0 ? "channel " + std::get<0>(first) : "signal " + std::get<1>(first);
        auto [message, signal] = co_await all(ctx.receive(inbox), ctx.await_signal(same_name));
        co_return won + ", " + message + ", " + signal;
    });
    run_script("both", "q");
    post(same_name, {"s1"});
    EXPECT_EQ(status("q"), Status::running);
    post(same_name, {"s2"});
    EXPECT_EQ(status("q"), Status::running) << "a signal is no message";
    post(inbox, {"m1"});
    EXPECT_EQ(result("q"), "signal s1, m1, s2");
}

TEST_P(QueueBehaviour, AnOpenWaitEndsWithItsWorkflow) {
    HOLDFAST_CHECK("runtime persistent_outstanding_subscription_cancelled_on_completion");
    code("leaves", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto open = ctx.start(ctx.receive(inbox));
        co_await ctx.sleep(0s);
        co_return "left";
    });
    run_script("leaves", "q");
    EXPECT_EQ(result("q"), "left");
    const auto cancelled = events<OperationCancelled>("q");
    ASSERT_EQ(cancelled.size(), 1U);
    EXPECT_EQ(cancelled[0].operation, Dropped::message);
    EXPECT_TRUE(is_terminal(client.history("q").back().body)) << "said before the end, not after";
}

TEST_P(QueueBehaviour, EachChannelHasItsOwnOrder) {
    HOLDFAST_CHECK("runtime multi_queue_isolation_and_independent_fifo");
    HOLDFAST_CHECK("runtime multi_queue_staggered_delivery");
    code("two", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string said;
        for (int i = 0; i < 2; ++i) {
            std::string next = co_await ctx.receive(right);
            said += next;
        }
        for (int i = 0; i < 3; ++i) {
            std::string next = co_await ctx.receive(left);
            said += next;
        }
        std::string next = co_await ctx.receive(right);
        said += next;
        co_return said;
    });
    run_script("two", "q");
    post(left, {"a", "b"});
    EXPECT_EQ(status("q"), Status::running) << "nobody reads that one yet";
    restart();
    post(right, {"1", "2", "3"});
    EXPECT_EQ(status("q"), Status::running);
    post(left, {"c"});
    EXPECT_EQ(result("q"), "12abc3");
}

// A message may be early: it waits for its instance.
TEST_P(QueueBehaviour, MessagesBeforeTheStartAreKept) {
    HOLDFAST_CHECK("runtime events_enqueued_before_start_orchestration_are_dropped");
    EXPECT_EQ(client.signal("q", inbox, std::string("early")), Delivery::early);
    run();
    code("reads", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string first = co_await ctx.receive(inbox);
        std::string second = co_await ctx.receive(inbox);
        co_return first + second;
    });
    start("reads", "q");
    post(inbox, {" and late"});
    EXPECT_EQ(result("q"), "early and late");
}

TEST_P(QueueBehaviour, MessagesSignalsAndActivitiesTakeTurns) {
    HOLDFAST_CHECK("runtime complex_multi_turn_persistent_and_positional_with_activities");
    HOLDFAST_CHECK("runtime copilot_chat_scenario");
    // A chat: messages are answered one by one, also over executions; a bell ends it.
    code("chat", [](Context& ctx, std::string self, std::string count) -> Task<std::string> {
        auto end = ctx.start(ctx.await_signal(bell));
        for (int i = 0; i < 2; ++i) {
            auto next = co_await any(ctx.receive(inbox), end.ref());
            if (next.index() == 1) {
                co_return count + " answered, " + std::get<1>(next);
            }
            std::string reply = co_await ctx.activity<&work>("reply", "re: " + std::get<0>(next));
            ctx.status(reply);
            count = std::to_string(std::stoi(count) + 1);
        }
        co_return again(self, count);
    });
    run_script("chat", "q", "0");
    post(inbox, {"one"});
    EXPECT_EQ(info("q").custom_status->json, R"("re: one")");
    EXPECT_EQ(client.wait_for_status("q", 0, 0ms).status_version, 1);
    post(inbox, {"two", "three", "four", "five"});
    restart();
    EXPECT_EQ(info("q").custom_status->json, R"("re: five")");
    EXPECT_EQ(info("q").status_version, 5);
    EXPECT_EQ(info("q").execution, 3U);
    post(bell, {"bye"});
    EXPECT_EQ(result("q"), "5 answered, bye");
    EXPECT_EQ(seen.of("reply"), 5);
}

INSTANTIATE_TEST_SUITE_P(Every, QueueBehaviour, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

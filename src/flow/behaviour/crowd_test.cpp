// Messages that come in crowds, and messages that are not what the code expects. A turn takes a
// portion of a crowd and goes on in the next; every turn here is also replayed from scratch.
#include "behaviour/test/behaviour_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

constexpr Channel<std::int64_t> numbers{"numbers"};

// Reads `count` numbers, which must come in order, and tells how far it is.
Task<std::string> read_numbers(Context& ctx, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t number = co_await ctx.receive(numbers);
        if (number != i) {
            co_return "got " + std::to_string(number) + " after " + std::to_string(i - 1);
        }
        ctx.status(number);
    }
    co_return "read " + std::to_string(count);
}

class Crowds : public StoredBehaviour {
protected:
    void send(const std::string& id, std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i) {
            client.signal(id, numbers, i);
        }
    }
};

TEST_P(Crowds, MoreMessagesThanATurnMayReadAreReadInSeveral) {
    code("reads", [](Context& ctx, std::string, std::string count) -> Task<std::string> {
        std::string text = co_await read_numbers(ctx, std::stoll(count));
        co_return text;
    });
    run_script("reads", "w", "1300");
    send("w", 0, 1300);
    run();
    EXPECT_EQ(result("w"), "read 1300");
    EXPECT_EQ(client.stats().messages, 0);
}

// They are in the history already, and then the code reads them all.
TEST_P(Crowds, MessagesThatPiledUpAreReadInSeveralTurns) {
    code("sleeps", [](Context& ctx, std::string, std::string count) -> Task<std::string> {
        co_await ctx.sleep(1h);
        std::string text = co_await read_numbers(ctx, std::stoll(count));
        co_return text;
    });
    run_script("sleeps", "w", "1300");
    send("w", 0, 1200);
    run();
    advance(1h);
    EXPECT_EQ(status("w"), Status::running);
    EXPECT_EQ(info("w").custom_status.value().json, "1199");
    restart();  // From the history, with its portions.
    send("w", 1200, 1300);
    run();
    EXPECT_EQ(result("w"), "read 1300");
    EXPECT_GE(events<TurnContinued>("w").size(), 3U);
    EXPECT_EQ(check_replay("w", &detail::run_program<&script>, client.history("w")), std::nullopt);
}

TEST_P(Crowds, AMessageNeverOvertakesOneThatWaits) {
    code("sleeps", [](Context& ctx, std::string, std::string count) -> Task<std::string> {
        co_await ctx.sleep(1h);
        std::string text = co_await read_numbers(ctx, std::stoll(count));
        co_return text;
    });
    run_script("sleeps", "w", "1500");
    send("w", 0, 1200);
    run();
    place.db.advance_clock(1h);
    send("w", 1200, 1500);  // In the mail together with the timer.
    run();
    EXPECT_EQ(result("w"), "read 1500");
}

TEST_P(Crowds, WhatIsThereCanBeReadWithoutWaiting) {
    code("drains", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        co_await ctx.sleep(1h);
        std::int64_t read = 0;
        while (ctx.try_receive(numbers)) {
            ++read;
        }
        co_return std::to_string(read);
    });
    run_script("drains", "w");
    send("w", 0, 1100);
    run();
    advance(1h);
    EXPECT_EQ(result("w"), "1100");
}

TEST_P(Crowds, WhatWasNotReadGoesAlongToTheNextExecution) {
    code("renews", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        if (round == "1") {
            co_await ctx.sleep(1h);
            co_return again(self, "2");
        }
        std::string text = co_await read_numbers(ctx, 1100);
        co_return text;
    });
    run_script("renews", "w", "1");
    send("w", 0, 1100);
    run();
    advance(1h);
    EXPECT_EQ(result("w"), "read 1100");
}

// Answers of activities are messages too, and each makes the code ask for more.
TEST_P(Crowds, ACrowdOfAnswersDoesNotKill) {
    code("fans", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::vector<Task<std::string>> all_of;
        all_of.reserve(400);
        for (int i = 0; i < 400; ++i) {
            all_of.push_back([](Context& inner, int number) -> Task<std::string> {
                const std::string text = std::to_string(number);
                const std::string one = co_await inner.activity<&work>("one", text);
                inner.status(one);
                inner.kv().set("last", one);
                std::string two = co_await inner.activity<&work>("two", one);
                co_return two;
            }(ctx, i));
        }
        const std::vector<std::string> texts = co_await all(std::move(all_of));
        co_return std::to_string(texts.size());
    });
    run_script("fans", "w");
    EXPECT_EQ(result("w"), "400");
    EXPECT_EQ(seen.of("two"), 400);
}

TEST_P(Crowds, AMalformedMessageIsAFailureThatTheCodeMayHandle) {
    code("careful", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string complaint;
        std::int64_t number = 0;
        while (number == 0) {
            try {
                number = co_await ctx.receive(numbers);
            } catch (const DecodeError& error) {
                complaint = error.what();
            }
        }
        co_return complaint + " then " + std::to_string(number);
    });
    run_script("careful", "w");
    client.send("w", ChannelMessage{"numbers", Payload{R"("seven")"}});
    run();
    EXPECT_EQ(status("w"), Status::running);
    send("w", 7, 8);
    run();
    EXPECT_THAT(result("w"), HasSubstr("a message of channel 'numbers' is not a long"));
    EXPECT_THAT(result("w"), HasSubstr("found a string"));
    EXPECT_THAT(result("w"), HasSubstr(" then 7"));
}

// Whichever way it is read, the failure names where it came from, as what it was read, and why not.
TEST_P(Crowds, AMalformedMessageIsNamedByEveryWayToReadIt) {
    code("reads", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        co_await ctx.sleep(1h);
        std::string text;
        try {
            (void)ctx.try_receive(numbers);
        } catch (const DecodeError& error) {
            text = error.info().message;
        }
        auto outcome = co_await ctx.receive(numbers).outcome();
        text += outcome ? " and a number" : " and " + outcome.failure().message;
        try {
            (void)co_await any(ctx.await_signal(bell), ctx.sleep(1h));
        } catch (const DecodeError& error) {
            text += " and " + error.info().message;
        }
        co_return text;
    });
    run_script("reads", "w");
    client.send("w", ChannelMessage{"numbers", Payload{R"("seven")"}});
    client.send("w", ChannelMessage{"numbers", Payload{"null"}});
    run();
    advance(1h);
    EXPECT_EQ(status("w"), Status::running) << "it goes on";
    client.send("w", SignalMessage{"bell", Payload{"7"}});
    run();
    EXPECT_THAT(result("w"), HasSubstr("a message of channel 'numbers' is not a long"));
    EXPECT_THAT(result("w"), HasSubstr(" and a message of channel 'numbers' is not a long"));
    EXPECT_THAT(result("w"), HasSubstr(" and a message of signal 'bell' is not a std::string: "));
}

TEST_P(Crowds, AMalformedMessageThatIsNotHandledIsNamedInTheEnd) {
    code("careless", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const std::int64_t number = co_await ctx.receive(numbers).timeout(1h);
        co_return std::to_string(number);
    });
    run_script("careless", "w");
    client.send("w", ChannelMessage{"numbers", Payload{R"({"a":1})"}});
    run();
    EXPECT_EQ(status("w"), Status::failed);
    EXPECT_EQ(failure("w").type, "DecodeError");
    EXPECT_THAT(failure("w").message, HasSubstr("channel 'numbers' is not a long"));
}

INSTANTIATE_TEST_SUITE_P(Every, Crowds, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

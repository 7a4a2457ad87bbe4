// Taking a workflow back to an earlier point: what is done again, what is kept, and what is not
// lost.
#include "runtime/test/runtime_fixture.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/execution.hpp>

namespace holdfast::flow::tests {

// Fails as often as it is told to.
inline std::int64_t strict(std::int64_t failures) {
    seen.count("strict");
    if (seen.of("strict") <= failures) {
        throw Failure("Strict", "too strict");
    }
    return failures;
}

// Events: 1 started, 2 kv, 3 activity, 4 its answer, 5 kv, 6 status, 7 attribute, 8 message
// awaited.
Workflow<std::string> diary(Context& ctx);
Workflow<std::string> guardian(Context& ctx, std::string child_id);
Workflow<std::string> dreamer(Context& ctx);
Workflow<std::string> traveller(Context& ctx, std::string how);

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::strict, "test.strict");
HOLDFAST_NAME(holdfast::flow::tests::diary, "test.diary");
HOLDFAST_NAME(holdfast::flow::tests::guardian, "test.guardian");
HOLDFAST_NAME(holdfast::flow::tests::dreamer, "test.dreamer");
HOLDFAST_NAME(holdfast::flow::tests::traveller, "test.traveller");

namespace holdfast::flow::tests {

Workflow<std::string> diary(Context& ctx) {
    ctx.kv().set("before", std::string("point"));
    const std::string lucky = std::to_string(ctx.random());
    const std::string text = co_await ctx.activity<&greet>(lucky);
    ctx.kv().set("after", text);
    ctx.status(text);
    ctx.attribute("mood", std::string("good"));
    const std::string first = co_await ctx.receive(inbox);
    const std::string second = co_await ctx.receive(inbox);
    co_return first + second;
}

// 2 is the child, 3 the message awaited.
Workflow<std::string> guardian(Context& ctx, std::string child_id) {
    auto child = ctx.start(ctx.child<&listener>(std::int64_t{1}).id(child_id));
    const std::string order = co_await ctx.receive(inbox);
    if (order == "adopt") {
        auto second = ctx.start(ctx.child<&listener>(std::int64_t{1}).id(child_id + "-2"));
        co_await ctx.receive(inbox);
    }
    std::string answer = co_await child.ref();
    co_return answer;
}

// 2 is the timer, 3 the activity.
Workflow<std::string> dreamer(Context& ctx) {
    auto dream = ctx.start(ctx.sleep(1h));
    std::string text = co_await ctx.activity<&greet>("dreamer");
    co_await dream.ref();
    co_return text;
}

// Books a flight, whose first try fails and is made good by the code itself, then a hotel, and
// fails in the way that was asked for.
Workflow<std::string> traveller(Context& ctx, std::string how) {
    for (bool booked = false; !booked;) {
        auto flight = co_await ctx.activity<&refuse>(std::int64_t{1}).outcome();
        booked = static_cast<bool>(flight);
    }
    std::string hotel = co_await ctx.activity<&greet>("hotel");
    if (how == "code") {
        throw Failure("Broken", "a mistake in the code");
    }
    if (how == "timeout") {
        co_await ctx.activity<&hold>("slow").tag("nobody").timeout(5s);
    }
    auto car = co_await ctx.activity<&strict>(std::int64_t{1}).outcome();
    if (!car) {
        co_await ctx.activity<&greet>("undo hotel");
        throw Failure("NoCar", "the trip is off: " + car.failure().text());
    }
    co_return hotel;
}

namespace {

class Reset : public testing::TestWithParam<test::Backend> {
protected:
    StoreFixture place{GetParam()};
    Store& store = *place.store;
    Client client{store};
    std::optional<Runtime> runtime{std::in_place, store, registry(), manual_options()};

    static Registry registry() {
        Registry registry = test_registry();
        registry.workflow<&diary>().workflow<&guardian>().workflow<&dreamer>();
        registry.workflow<&traveller>().activity<&strict>();
        return registry;
    }
    void advance(std::chrono::microseconds by) {
        place.db.advance_clock(by);
        runtime->run_until_idle();
    }
    ExecutionId reset_to(std::string_view id, EventId event) {
        const ExecutionId execution = client.reset(id, {.to = ResetTo::event, .event = event});
        runtime->run_until_idle();
        return execution;
    }
    Status status(std::string_view id) { return client.info(id)->status; }
};

TEST_P(Reset, WhatFailedLastIsTriedAgainAndTheOldExecutionIsKept) {
    client.start<&retrier>("one", 1, 1);
    runtime->run_until_idle();
    ASSERT_EQ(status("one"), Status::failed);

    EXPECT_EQ(client.reset("one"), 2U);
    EXPECT_EQ(status("one"), Status::running);
    EXPECT_FALSE(client.info("one")->completed);
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&retrier>("one", 1s), 2);
    EXPECT_EQ(seen.of("refuse"), 2);

    const auto executions = client.executions("one");
    ASSERT_EQ(executions.size(), 2U);
    EXPECT_EQ(executions[0].status, Status::reset);
    EXPECT_NE(executions[0].output.find("Refused"), std::string::npos) << "how it had ended";
    EXPECT_EQ(executions[1].status, Status::completed);
    EXPECT_EQ(kind_name(client.history("one", 1).back().body), "workflow_failed");
}

// The failure that the end speaks of, and not an older one that was made good: the flight is not
// booked again, and neither is the hotel.
TEST_P(Reset, GoesToTheCauseOfTheEnd) {
    client.start<&traveller>("trip", "wrapped");
    runtime->run_until_idle();
    ASSERT_EQ(status("trip"), Status::failed);
    ASSERT_EQ(seen.of("refuse"), 2);
    const ResetPlan plan = client.plan("trip");
    ASSERT_TRUE(plan.cause);
    EXPECT_EQ(std::get<ActivityFailedEvent>(plan.cause->body).failure.message, "too strict");
    ASSERT_EQ(plan.reset.activities.size(), 1U);
    EXPECT_EQ(plan.reset.activities[0].name, "test.strict");
    EXPECT_EQ(plan.last_kept + 1, plan.cause->id);
    EXPECT_EQ(status("trip"), Status::failed) << "a plan does nothing";

    client.reset("trip");
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&traveller>("trip", 1s), "hello hotel");
    EXPECT_EQ(seen.of("refuse"), 2) << "the airline was called again";
    EXPECT_EQ(seen.of("greet hotel"), 1);
    EXPECT_EQ(seen.of("strict"), 2);
}

TEST_P(Reset, KeepsEverythingIfTheCodeItselfWasTheCause) {
    client.start<&traveller>("trip", "code");
    runtime->run_until_idle();
    ASSERT_EQ(status("trip"), Status::failed);
    const ResetPlan plan = client.plan("trip");
    EXPECT_FALSE(plan.cause);
    EXPECT_TRUE(plan.reset.activities.empty());
    client.reset("trip");
    runtime->run_until_idle();
    EXPECT_EQ(seen.of("refuse"), 2);
    EXPECT_EQ(seen.of("greet hotel"), 1);
    EXPECT_EQ(Client::failure_of(*client.info("trip")).type, "Broken") << "the code is the same";
}

TEST_P(Reset, GivesWhatTimedOutItsWholeTimeAgain) {
    client.start<&traveller>("trip", "timeout");
    runtime->run_until_idle();
    advance(6s);
    ASSERT_EQ(status("trip"), Status::failed);
    client.reset("trip");
    runtime->run_until_idle();
    EXPECT_EQ(status("trip"), Status::running);
    advance(4s);
    EXPECT_EQ(status("trip"), Status::running);
    advance(2s);
    EXPECT_EQ(status("trip"), Status::failed);
    EXPECT_EQ(seen.of("refuse"), 2);
}

TEST_P(Reset, OfWhatHasNotFailedNeedsAPoint) {
    client.start<&hello>("good", "Ann");
    client.start<&sleeper>("asleep", 60);
    runtime->run_until_idle();
    for (const char* id : {"good", "asleep"}) {
        EXPECT_EQ(test::code_of([&] { client.reset(id); }), Code::condition_failed) << id;
    }
}

TEST_P(Reset, StateAndRandomNumbersAreThoseOfThePoint) {
    client.start<&diary>("one");
    runtime->run_until_idle();
    const std::vector<Event> before = client.history("one");
    ASSERT_EQ(before.size(), 8U);
    ASSERT_TRUE(client.kv<std::string>("one", "after"));

    // The activity has been asked for and has no answer: it runs again, with the same number.
    ASSERT_EQ(client.reset("one", {.to = ResetTo::event, .event = 3}), 2U);
    EXPECT_EQ(client.kv<std::string>("one", "before"), "point");
    EXPECT_EQ(client.kv<std::string>("one", "after"), std::nullopt);
    EXPECT_EQ(client.info("one")->custom_status, std::nullopt);
    EXPECT_TRUE(client.list({.attributes = {{"mood", Payload{"\"good\""}}}}).instances.empty());

    runtime->run_until_idle();
    EXPECT_EQ(status("one"), Status::running) << client.info("one")->output;
    const std::vector<Event> after = client.history("one");
    ASSERT_EQ(after.size(), before.size());
    EXPECT_EQ(after[2].body, before[2].body) << "the random number is its input";
    EXPECT_EQ(client.list({.attributes = {{"mood", Payload{"\"good\""}}}}).instances.size(), 1U);
    EXPECT_EQ(check_replay("one", &detail::run_program<&diary>, after, {}, 2), std::nullopt);
}

TEST_P(Reset, MessagesThatCameLaterAreDeliveredAgainAndInOrder) {
    client.start<&diary>("one");
    client.signal("one", inbox, std::string("a"));
    runtime->run_until_idle();
    client.signal("one", inbox, std::string("b"));
    runtime->run_until_idle();
    ASSERT_EQ(*client.result<&diary>("one", 1s), "ab");
    EXPECT_EQ(reset_to("one", 1), 2U);
    EXPECT_EQ(*client.result<&diary>("one", 1s), "ab");
    EXPECT_EQ(reset_to("one", 1), 3U) << "and once more";
    EXPECT_EQ(*client.result<&diary>("one", 1s), "ab");
}

TEST_P(Reset, MailThatNobodyHasReadStaysBehindWhatWasRead) {
    client.start<&diary>("one");
    runtime->run_until_idle();
    client.signal("one", inbox, std::string("a"));
    runtime->run_until_idle();
    client.signal("one", inbox, std::string("b"));  // Not read yet.
    client.reset("one", {.to = ResetTo::start});
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&diary>("one", 1s), "ab");
}

TEST_P(Reset, TimersAreSetAgainForTheMomentTheyHad) {
    client.start<&dreamer>("one");
    runtime->run_until_idle();
    advance(30min);
    reset_to("one", 3);
    EXPECT_EQ(seen.of("greet dreamer"), 2);
    advance(29min);
    EXPECT_EQ(status("one"), Status::running);
    advance(2min);
    EXPECT_EQ(*client.result<&dreamer>("one", 1s), "hello dreamer");
}

TEST_P(Reset, AnActivityOfTheOldExecutionIsCutOff) {
    seen.meanwhile = [&](ActivityContext& ctx) {
        if (ctx.execution() == 1) {  // While it runs, its workflow is reset.
            client.reset(ctx.instance(), {.to = ResetTo::start});
        }
    };
    client.start<&racer>("one");
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&racer>("one", 1s), "slow");
    EXPECT_EQ(seen.of("hold slow"), 2);
    EXPECT_EQ(client.info("one")->execution, 2U);
    EXPECT_EQ(client.stats().activities, 0);
}

TEST_P(Reset, AChildThatRunsAnswersTheNewExecution) {
    client.start<&guardian>("one", std::string("kid"));
    runtime->run_until_idle();
    client.signal("one", inbox, std::string("wait"));
    runtime->run_until_idle();
    reset_to("one", 3);
    reset_to("one", 3);
    client.signal("kid", inbox, std::string("done"));
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&guardian>("one", 1s), "done");
    EXPECT_EQ(client.info("one")->execution, 3U);
}

TEST_P(Reset, AnAnswerOfAChildThatCameLaterIsKept) {
    client.start<&guardian>("one", std::string("kid"));
    runtime->run_until_idle();
    client.signal("kid", inbox, std::string("done"));
    runtime->run_until_idle();
    client.signal("one", inbox, std::string("wait"));
    runtime->run_until_idle();
    ASSERT_EQ(*client.result<&guardian>("one", 1s), "done");
    reset_to("one", 3);
    EXPECT_EQ(*client.result<&guardian>("one", 1s), "done");
}

TEST_P(Reset, AChildThatWasStartedLaterIsCancelled) {
    client.start<&guardian>("one", std::string("kid"));
    client.signal("one", inbox, std::string("adopt"));
    runtime->run_until_idle();
    ASSERT_EQ(status("kid-2"), Status::running);
    client.reset("one", {.to = ResetTo::event, .event = 3});
    place.db.advance_clock(1ms);
    runtime->run_until_idle();
    EXPECT_EQ(status("kid"), Status::running);
    EXPECT_EQ(status("kid-2"), Status::cancelled);
}

TEST_P(Reset, ACancelledOneGoesOnAsIfNobodyHadAsked) {
    client.start<&sleeper>("one", 60);
    runtime->run_until_idle();
    client.cancel("one", "by mistake");
    runtime->run_until_idle();
    ASSERT_EQ(status("one"), Status::cancelled);
    client.reset("one");
    runtime->run_until_idle();
    EXPECT_EQ(status("one"), Status::running);
    advance(61s);
    EXPECT_EQ(*client.result<&sleeper>("one", 1s), "awake");
}

TEST_P(Reset, AnUpdateThatCameLaterIsAppliedAgain) {
    client.start<&teller>("one");
    runtime->run_until_idle();
    client.send("one", UpdateMessage{"request-1", "raise_to", Payload{"[3]"}});
    client.signal("one", inbox, std::string("level"));
    runtime->run_until_idle();
    ASSERT_EQ(*client.result<&teller>("one", 1s), "level 3");
    client.reset("one", {.to = ResetTo::start});
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&teller>("one", 1s), "level 3");
    EXPECT_EQ(client.history("one", 2).size(), client.history("one", 1).size());
}

TEST_P(Reset, APointThatIsNoneIsRefused) {
    EXPECT_EQ(test::code_of([&] { client.reset("ghost"); }), Code::not_found);
    client.start_with<&sleeper>({.delay = 1h}, "later", 1);
    EXPECT_EQ(test::code_of([&] { client.reset("later"); }), Code::condition_failed);
    client.start<&hello>("one", "Ann");
    runtime->run_until_idle();
    for (const EventId event : {EventId{0}, EventId{4}, EventId{99}}) {
        EXPECT_EQ(
            test::code_of([&] { client.reset("one", {.to = ResetTo::event, .event = event}); }),
            Code::invalid_argument)
            << event;
    }
    EXPECT_EQ(client.info("one")->execution, 1U);
    EXPECT_EQ(status("one"), Status::completed);
}

// Between the read and the write the workflow took a turn: a reset that has not seen that turn must
// not discard it.
TEST_P(Reset, WhatHasGoneOnSinceIsNotReset) {
    client.start<&listener>("one", 2);
    runtime->run_until_idle();
    const InstanceInfo info = *client.info("one");
    const ResetInstance stale{
        .instance = "one",
        .execution = info.execution,
        .last_event = info.last_event,
        .next = {.execution = 2, .version = "1.0.0", .events = {client.history("one").front()}}};
    client.signal("one", inbox, std::string("a"));
    runtime->run_until_idle();
    EXPECT_FALSE(store.provider().reset(stale));
    EXPECT_EQ(client.info("one")->execution, 1U);
}

INSTANTIATE_TEST_SUITE_P(Every, Reset, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

#include <holdfast/flow_testing/run.hpp>

#include <algorithm>

#include "test/loan_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::flow::runs {

using namespace std::chrono_literals;
using tests::Loan;

inline constexpr Signal<int> bell{"bell"};
inline constexpr Channel<int> numbers{"numbers"};

Workflow<int> rings(Context& ctx) {
    const int rung = co_await ctx.await_signal(bell);
    co_return rung;
}
Workflow<int> sums(Context& ctx, int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i) {
        const int number = co_await ctx.receive(numbers);
        sum = sum * 10 + number;
    }
    co_return sum;
}

}  // namespace holdfast::flow::runs

HOLDFAST_NAME(holdfast::flow::runs::sums, "runs.sums");

namespace holdfast::flow::runs {

Workflow<std::string> asks_a_child(Context& ctx, int count) {
    const int sum = co_await ctx.child<&sums>(count);
    co_return std::to_string(sum);
}
Workflow<Unit> never_ends(Context& ctx, int round) {
    co_await ctx.sleep(1h);
    co_return again(round + 1);
}
Workflow<std::string> cleans_up(Context& ctx) {
    bool cancelled = false;
    try {
        co_await ctx.sleep(24h * 365);
    } catch (const Cancelled&) {
        cancelled = true;
    }
    if (cancelled) {
        const Shield shield = ctx.shield();
        co_await ctx.activity<&tests::nudge>("bob");
    }
    co_return cancelled ? "stopped" : "done";
}
Workflow<Unit> waits_for_much(Context& ctx) {
    auto offer = ctx.start(ctx.activity<&tests::quote>("slow"));
    co_await any(ctx.receive(numbers), ctx.await_signal(bell));
    co_await offer;
    co_return Unit{};
}

Workflow<std::string> rounds(Context& ctx, int round) {
    if (round == 20) {
        co_return "nobody stopped it";
    }
    {
        const Shield shield = ctx.shield();  // What must not be left half done.
        co_await ctx.sleep(1h);
    }
    co_return again(round + 1);
}
Workflow<std::string> tidies_up_later(Context& ctx, int round) {
    if (round == 1) {
        const Shield shield = ctx.shield();
        co_await ctx.sleep(1h);
        co_return again(round + 1);
    }
    bool stopped = false;
    try {
        co_await ctx.sleep(24h);
    } catch (const Cancelled&) {
        stopped = true;
    }
    if (stopped) {
        const Shield shield = ctx.shield();
        co_await ctx.activity<&tests::nudge>("bob");
    }
    co_return stopped ? "tidied up" : "slept";
}

Workflow<int> insists(Context& ctx) {
    const int offer = co_await ctx.activity<&tests::quote>("bank").retry(
        {.attempts = 4, .first = 1h, .ceiling = 2h, .per_try = 2h});
    co_return offer;
}

int double_length(const std::string& bank) {
    return 2 * static_cast<int>(bank.size());
}

}  // namespace holdfast::flow::runs

HOLDFAST_NAME(holdfast::flow::runs::rings, "runs.rings");
HOLDFAST_NAME(holdfast::flow::runs::insists, "runs.insists");
HOLDFAST_NAME(holdfast::flow::runs::asks_a_child, "runs.asks_a_child");
HOLDFAST_NAME(holdfast::flow::runs::rounds, "runs.rounds");
HOLDFAST_NAME(holdfast::flow::runs::tidies_up_later, "runs.tidies_up_later");
HOLDFAST_NAME(holdfast::flow::runs::never_ends, "runs.never_ends");
HOLDFAST_NAME(holdfast::flow::runs::cleans_up, "runs.cleans_up");
HOLDFAST_NAME(holdfast::flow::runs::waits_for_much, "runs.waits_for_much");

namespace holdfast::flow::runs {
namespace {

using flow::test::run;
using flow::test::Unexpected;
using flow::test::World;
using testing::HasSubstr;
using tests::decisions;
using tests::nudge;
using tests::quote;
using tests::review;
using tests::tender;

const Loan loan{.id = "loan-7", .officer = "ann"};

// What is thrown as Unexpected by `f`.
template <class F>
std::string complaint(F&& f) {
    try {
        std::forward<F>(f)();
    } catch (const Unexpected& error) {
        return error.what();
    }
    return "nothing was unexpected";
}

TEST(Run, ASignalDecides) {
    EXPECT_EQ(
        run<&review>(loan).on<&nudge>([](const std::string&) {}).signal(decisions, "yes").result(),
        "yes");
}

// The test does not say how long to wait: the clock goes to whatever is due next.
TEST(Run, TheClockMovesByItselfUntilTheEnd) {
    std::vector<std::string> nudged;
    auto story =
        run<&review>(loan).on<&nudge>([&](const std::string& who) { nudged.push_back(who); });
    EXPECT_EQ(story.result(), "expired");
    EXPECT_EQ(nudged, (std::vector<std::string>{"ann", "ann"}));
    EXPECT_EQ(story.world().now(), flow::test::first_moment + 72h) << "and not one moment later";
}

TEST(Run, WhatIsToldHappensAtItsMoment) {
    int reminders = 0;
    auto story = run<&review>(loan)
                     .on<&nudge>([&](const std::string&) { ++reminders; })
                     .after(20h)
                     .after(10h)
                     .signal(decisions, "granted");
    EXPECT_EQ(story.result(), "granted");
    EXPECT_EQ(reminders, 1) << "30 hours are one reminder";
    EXPECT_EQ(story.world().now(), flow::test::first_moment + 30h);
    EXPECT_EQ(story.result(), "granted") << "asked again, nothing happens twice";
    EXPECT_EQ(reminders, 1);
}

TEST(Run, MessagesComeInTheOrderInWhichTheyAreTold) {
    EXPECT_EQ(
        run<&sums>(3).signal(numbers, 1).signal(numbers, 2).after(1h).signal(numbers, 3).result(),
        123);
}

// The code runs up to its first wait before it hears of anything.
TEST(Run, ASignalFindsWhoWaitsForIt) {
    EXPECT_EQ(run<&rings>().signal(bell, 7).result(), 7);
    EXPECT_EQ(run<&rings>().after(1h).signal(bell, 8).result(), 8);
    auto deaf = run<&rings>();
    EXPECT_EQ(complaint([&] { (void)deaf.result(); }),
              "'run' has not ended: 'run' waits for the signal 'bell' (event 2)");
}

TEST(Run, AStubIsALambdaAFunctionOrTheActivityItself) {
    EXPECT_EQ(run<&tender>("x").on<&quote>([](const std::string&) { return 5; }).result(), 5);
    EXPECT_EQ(run<&tender>("x").on<&quote>(&double_length).result(), 8);
    EXPECT_EQ(run<&tender>("x").on<&quote>().result(), 4);
    EXPECT_EQ(
        run<&tender>("x")
            .on<&quote>([](ActivityContext& ctx, const std::string&) { return ctx.attempt(); })
            .result(),
        1);
    auto counted = run<&tender>("x").on<&quote>();
    (void)counted.result();
    EXPECT_EQ(counted.world().calls<&quote>(), 3);
}

TEST(Run, AFailureIsThrownOrGivenAsTheTestLikes) {
    const auto closed = [](const std::string&) -> int { throw permanent("Closed", "on sundays"); };
    EXPECT_THROW(run<&tender>("x").on<&quote>(closed).result(), Failure);
    const auto outcome = run<&tender>("x").on<&quote>(closed).outcome();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.failure().type, "Closed");
}

TEST(Run, CancellationLetsTheWorkflowCleanUp) {
    std::vector<std::string> told;
    EXPECT_EQ(run<&cleans_up>()
                  .on<&nudge>([&](const std::string& who) { told.push_back(who); })
                  .after(1h)
                  .cancel("enough")
                  .result(),
              "stopped");
    EXPECT_EQ(told, std::vector<std::string>{"bob"});
    const auto outcome = run<&review>(loan).cancel("enough").outcome();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.failure().kind, FailureKind::cancelled);
}

// Once lost with the execution that was shielded from it: such a loop could not be cancelled.
TEST(Run, ARequestToStopOutlivesTheExecutionItReached) {
    auto loop = run<&rounds>(1).after(58min).cancel("enough");
    const auto outcome = loop.outcome();
    ASSERT_FALSE(outcome) << *outcome;
    EXPECT_EQ(outcome.failure().kind, FailureKind::cancelled);
    EXPECT_EQ(outcome.failure().message, "enough");
    EXPECT_EQ(loop.world().client().executions(flow::test::run_id).size(), 2U);
    EXPECT_EQ(loop.world().now(), flow::test::first_moment + 63min) << "five minutes, not more";

    auto tidy = run<&tidies_up_later>(1).on<&nudge>().after(58min).cancel("enough");
    EXPECT_EQ(tidy.result(), "tidied up");
    EXPECT_EQ(tidy.world().now(), flow::test::first_moment + 1h) << "at its first chance";
}

TEST(Run, AnythingAWorldCanDoIsAStep) {
    int seen = -1;
    auto story = run<&review>(loan)
                     .on<&nudge>()
                     .after(50h)
                     .then([&](World& world) {
                         seen = world.query(flow::test::run_id, tests::reminders_so_far);
                         world.crash();
                     })
                     .signal(decisions, "late");
    EXPECT_EQ(story.result(), "late");
    EXPECT_EQ(seen, 2);
}

TEST(Run, ChildrenRunIfTheirCodeIsThere) {
    const auto send = [](World& world) {
        world.run();
        world.signal("run::1.2", numbers, 4);
    };
    EXPECT_EQ(run<&asks_a_child>(1).with<&sums>().then(send).result(), "4");
    auto lonely = run<&asks_a_child>(1);
    EXPECT_THAT(complaint([&] { (void)lonely.result(); }),
                HasSubstr("does not know the workflow 'runs.sums'"));
}

// --- stuck

TEST(Run, AWorkflowThatIsStuckSaysWhatItWaitsFor) {
    auto short_of_one = run<&sums>(2).signal(numbers, 1);
    EXPECT_EQ(complaint([&] { (void)short_of_one.outcome(); }),
              "'run' has not ended: 'run' waits for a message on 'numbers' (event 4)");
    EXPECT_EQ(std::move(short_of_one).signal(numbers, 2).result(), 12) << "it can go on";
}

TEST(Run, EverythingThatIsOpenIsNamed) {
    auto stuck = run<&waits_for_much>().then([](World& world) { world.hold<&quote>(); });
    EXPECT_EQ(complaint([&] { (void)stuck.outcome(); }),
              "'run' has not ended: 'run' waits for the activity 'test.quote' (event 2) and a "
              "message on 'numbers' (event 3) and the signal 'bell' (event 4)");
}

TEST(Run, AStuckChildIsNamedWithWhatItWaitsFor) {
    auto stuck = run<&asks_a_child>(1).with<&sums>();
    EXPECT_EQ(complaint([&] { (void)stuck.outcome(); }),
              "'run' has not ended: 'run' waits for the child 'run::1.2' (event 2), 'run::1.2' "
              "waits for a message on 'numbers' (event 2)");
}

TEST(Run, ASuspendedWorkflowIsStuck) {
    auto stuck = run<&review>(loan).then([](World& world) {
        world.run();
        world.client().suspend(flow::test::run_id, "a pause");
    });
    EXPECT_THAT(complaint([&] { (void)stuck.outcome(); }), HasSubstr("'run' is suspended"));
}

TEST(Run, AnActivityWithoutAStubIsNamed) {
    EXPECT_THAT(complaint([] { (void)run<&tender>("x").result(); }),
                HasSubstr("no stub for it; give it one"));
}

TEST(Run, AMessageAfterTheEndIsAMistakeOfTheTest) {
    auto late = run<&review>(loan).on<&nudge>().after(100h).signal(decisions, "too late");
    EXPECT_EQ(complaint([&] { (void)late.outcome(); }),
              "the workflow has ended before 'decision' was sent");
}

TEST(Run, AttemptsOfAnActivityFollowItsPolicy) {
    std::vector<std::string> seen;
    auto tries = run<&insists>().on<&quote>([&](ActivityContext& ctx, const std::string&) {
        const int note = ctx.last_heartbeat<int>().value_or(0);
        ctx.heartbeat(ctx.attempt());
        seen.push_back(ctx.idempotency_key() + " " + std::to_string(ctx.attempt()) + " " +
                       std::to_string(note));
        if (ctx.attempt() < 3) {
            throw Failure("Busy", "later");
        }
        return 7;
    });
    EXPECT_EQ(tries.result(), 7);
    EXPECT_THAT(seen, testing::ElementsAre("run/1/2 1 0", "run/1/2 2 1", "run/1/2 3 2"));
    EXPECT_EQ(tries.world().now(), flow::test::first_moment + 3h) << "an hour, and two";
    const std::string history = tries.world().history(flow::test::run_id);
    EXPECT_EQ(std::ranges::count(history, '\n'), 4);
}

// A worker that does not answer has its time, and then another attempt begins.
TEST(Run, AnAttemptThatDoesNotEndIsFollowedByAnother) {
    World world;
    int answers = 0;
    world.stub<&quote>([&](const std::string&) { return ++answers; }).hold<&quote>();
    world.start<&insists>("slow");
    world.advance(2h);
    EXPECT_EQ(world.calls<&quote>(), 0);
    world.release<&quote>();
    world.advance(1h);
    EXPECT_EQ(*world.result<&insists>("slow"), 1);
    EXPECT_THAT(world.history("slow"), HasSubstr("no answer within 7200000 ms"));
}

// The number of moves is bounded, and not the time: who sleeps for years may well end.
TEST(Run, AWorkflowThatNeverEndsIsGivenUp) {
    World world{{.clock_moves_max = 50}};
    world.start<&never_ends>("e", 0);
    EXPECT_EQ(complaint([&] { world.run_to_end("e"); }),
              "the clock was moved 50 times, to 2030-01-03T02:00:00Z, and 'e' has not ended: 'e' "
              "waits for the timer of event 2");
}

}  // namespace
}  // namespace holdfast::flow::runs

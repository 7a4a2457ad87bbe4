// Ends that the code has no part in: poison, code that does not follow its history, a turn that
// does not fit. What is under way for the workflow is called back, as by any other end.
#include "behaviour/test/behaviour_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

// A child that sleeps, an activity that no worker here takes, and mail.
Task<std::string> family(Context& ctx, std::string, std::string) {
    auto child = ctx.start(ctx.child<&sleeper>(3'600).id("child"));
    auto far_away = ctx.start(ctx.activity<&work>("far", "").tag("elsewhere"));
    for (;;) {
        const std::string message = co_await ctx.receive(inbox);
        if (message == "crowd") {
            std::vector<Op<std::int64_t>> many;
            many.reserve(1'000);
            for (std::int64_t i = 0; i < 1'000; ++i) {
                many.push_back(ctx.child<&chain>(1));
            }
            (void)co_await all(std::move(many));
        }
    }
}

class ForcedEnd : public StoredBehaviour {
protected:
    ForcedEnd() {
        code("family", &family);
        run_script("family", "p");
    }
    void expect_called_back(FailureKind why) {
        ASSERT_EQ(status("p"), Status::failed);
        EXPECT_EQ(failure("p").kind, why);
        EXPECT_EQ(status("child"), Status::cancelled);
        EXPECT_EQ(place.db.number("SELECT count(*) FROM flow_activities"), 0);
        EXPECT_EQ(place.db.number("SELECT count(*) FROM flow_messages"), 0);
    }
    static Registry failing() {
        Registry registry = behaviour_registry();
        registry.on_nondeterminism(NondeterminismPolicy::fail);
        return registry;
    }
    // Mail for it, and one process after another that dies of it, until none tries any more.
    void poison(const Registry& registry) {
        runtime.reset();  // A process that has it in memory could go on.
        client.signal("p", inbox, std::string("hello"));
        for (int life = 0; life < 2; ++life) {
            EXPECT_FALSE(client.provider().claim_instances({.count = 100}).empty());
            place.db.advance_clock(1min);
        }
        RuntimeOptions options = manual_options();
        options.max_attempts = 2;
        restart(registry, options);
        run();
    }
};

TEST_P(ForcedEnd, CodeThatLeavesItsHistoryEarlyIsToldWhatTheRestOfItAskedFor) {
    code("family", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string text = co_await ctx.activity<&work>("something else", "");
        co_return text;
    });
    restart(failing());
    tell("p", inbox, std::string("hello"));
    expect_called_back(FailureKind::nondeterminism);
    EXPECT_THAT(kinds("p"),
                ElementsAre("workflow_started",
                            "child_scheduled",
                            "activity_scheduled",
                            "message_awaited",
                            "message_received",
                            "operation_cancelled",
                            "operation_cancelled",
                            "workflow_failed"));
}

// The code that is kept says what it said before; the same code from the beginning does not.
TEST_P(ForcedEnd, CodeThatWouldNotRepeatItself) {
    static int lives = 0;
    code("moody", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const std::string life = std::to_string(++lives);
        auto child = ctx.start(ctx.child<&sleeper>(3'600).id("moody child"));
        (void)co_await ctx.receive(inbox);
        std::string text = co_await ctx.activity<&work>("w", life);
        co_return text;
    });
    restart(failing());
    run_script("moody", "m");
    tell("m", inbox, std::string("hello"));
    ASSERT_EQ(status("m"), Status::failed);
    EXPECT_EQ(failure("m").kind, FailureKind::nondeterminism);
    EXPECT_EQ(status("moody child"), Status::cancelled);
}

TEST_P(ForcedEnd, PoisonWhoseHistoryCanBeRead) {
    poison(test_registry());  // No worker has its code.
    expect_called_back(FailureKind::poison);
}

// Any open instance may be failed, and its code is not asked: also one that is suspended.
TEST_P(ForcedEnd, AFailureThatAnOperatorAskedFor) {
    client.suspend("p", "wait");
    run();
    client.fail("p", "the order is void");
    run();
    expect_called_back(FailureKind::application);
    EXPECT_EQ(failure("p").type, "FailedByOperator");
    EXPECT_EQ(failure("p").message, "the order is void");
    EXPECT_THAT(kinds("p"),
                ElementsAre("workflow_started",
                            "child_scheduled",
                            "activity_scheduled",
                            "message_awaited",
                            "workflow_suspended",
                            "cancel_requested",
                            "operation_cancelled",
                            "operation_cancelled",
                            "workflow_failed"));
    EXPECT_EQ(check_replay("p", &detail::run_program<&script>, client.history("p")), std::nullopt);
    EXPECT_EQ(client.fail("p", "again"), Delivery::ended);
}

TEST_P(ForcedEnd, AFailedChildIsAFailureThatItsParentMayHandle) {
    code("parent", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto slept = co_await ctx.child<&sleeper>(3'600).id("c").outcome();
        std::string text = slept ? "slept" : slept.failure().message;
        co_return text;
    });
    run_script("parent", "q");
    client.fail("c", "wake up");
    run();
    EXPECT_EQ(status("c"), Status::failed);
    EXPECT_THAT(result("q"), HasSubstr("wake up"));
}

TEST_P(ForcedEnd, PoisonWhoseHistoryCannotBeRead) {
    place.db.execute(
        "UPDATE flow_history SET events = '{\"type\":\"of the future\"}' WHERE instance_id = 'p'");
    poison(behaviour_registry());
    ASSERT_EQ(status("p"), Status::failed);
    EXPECT_EQ(failure("p").kind, FailureKind::poison);
    EXPECT_EQ(status("child"), Status::cancelled);
    EXPECT_EQ(place.db.number("SELECT count(*) FROM flow_activities"), 0);
}

INSTANTIATE_TEST_SUITE_P(Every, ForcedEnd, test::every_backend(), test::backend_name);

// Aurora DSQL takes 3,000 rows in a transaction, and each child is several.
class ForcedEndOnDsql : public ForcedEnd {};

TEST_P(ForcedEndOnDsql, ATurnThatDoesNotFit) {
    tell("p", inbox, std::string("crowd"));
    expect_called_back(FailureKind::application);
    EXPECT_EQ(failure("p").type, "LimitExceeded");
}

INSTANTIATE_TEST_SUITE_P(Every,
                         ForcedEndOnDsql,
                         testing::Values(test::Backend::dsql),
                         test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

// A runtime whose database fails at the worst moments: that does not count as an answer of
// an activity, loses nothing, and ends no process.
#include <latch>
#include <set>

#include <gtest/gtest.h>

#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/flow_testing/faulty_provider.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::flow::tests {
namespace {

using namespace std::chrono_literals;
using flow::test::Call;
using flow::test::FaultyProvider;

constexpr sql::Statement insert_line{"test.insert_line", "INSERT INTO ledger (entry) VALUES ($1)"};

// What happens inside `linger`, and how often the activities ran.
struct Scene {
    std::function<void(ActivityContext&)> meanwhile;
    std::atomic<int> posts = 0;
    std::atomic<int> lingers = 0;
};
Scene scene;

// Writes together with its answer.
std::string post(sql::Tx& tx, const std::string& entry) {
    ++scene.posts;
    tx.exec(insert_line, entry);
    return "posted " + entry;
}
std::string linger(ActivityContext& ctx, std::string text) {
    ++scene.lingers;
    if (scene.meanwhile) {
        scene.meanwhile(ctx);
    }
    return text;
}

}  // namespace
}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::post, "test.post");
HOLDFAST_NAME(holdfast::flow::tests::linger, "test.linger");

namespace holdfast::flow::tests {
namespace {

Workflow<std::string> posts(Context& ctx, std::string entry) {
    std::string said = co_await ctx.activity<&post>(entry);
    co_return said;
}
Workflow<std::string> lingers(Context& ctx, std::string text) {
    std::string said = co_await ctx.activity<&linger>(text);
    co_return said;
}
Workflow<std::string> insists_on(Context& ctx, std::string text) {
    std::string said = co_await ctx.activity<&linger>(text).retry({.attempts = 9, .first = 0ms});
    co_return said;
}
Workflow<std::string> naps(Context& ctx) {
    co_await ctx.sleep(300ms);
    co_return "awake";
}

}  // namespace
}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::posts, "test.posts");
HOLDFAST_NAME(holdfast::flow::tests::lingers, "test.lingers");
HOLDFAST_NAME(holdfast::flow::tests::insists_on, "test.insists_on");
HOLDFAST_NAME(holdfast::flow::tests::naps, "test.naps");

namespace holdfast::flow::tests {
namespace {

class RuntimeFaults : public testing::TestWithParam<holdfast::test::Backend> {
protected:
    RuntimeFaults() {
        scene.meanwhile = nullptr;
        scene.posts = 0;
        scene.lingers = 0;
        db.execute("CREATE TABLE ledger (entry TEXT NOT NULL) {strict}");
        registry.activity<&post>()
            .activity<&linger>()
            .workflow<&posts>()
            .workflow<&lingers>()
            .workflow<&insists_on>()
            .workflow<&naps>();
    }
    static RuntimeOptions manual() {
        RuntimeOptions options;
        options.manual = true;
        return options;
    }
    // Until everything has come to rest; what was given back is taken up when its pause is over.
    void work(Runtime& runtime) {
        for (int i = 0; i < 5; ++i) {
            runtime.run_until_idle();
            db.advance_clock(1min);
        }
    }
    void expect_posted_once() {
        Runtime runtime(store, registry, manual());
        client.start<&posts>("p", "rent");
        work(runtime);
        EXPECT_EQ(*client.result<&posts>("p", 0ms), "posted rent");
        EXPECT_EQ(db.number("SELECT COUNT(*) FROM ledger"), 1);
        EXPECT_EQ(faults.waiting(), 0) << "or nothing was tested";
    }

    holdfast::test::Database db{GetParam(), schema_part()};
    SqlProvider provider{db};
    FaultyProvider faults{provider, [this](milliseconds by) { db.advance_clock(by); }};
    Store store{*db, faults};
    Client client{store};
    Registry registry;
};

// --- attempts

TEST_P(RuntimeFaults, AnAttemptThatFailedIsFollowedByTheNextWhateverBecomesOfTheReply) {
    for (const bool applied : {true, false}) {
        std::vector<int> numbers;
        std::set<std::string> keys;
        scene.meanwhile = [&](ActivityContext& ctx) {
            numbers.push_back(ctx.attempt());
            keys.insert(ctx.idempotency_key());
            if (numbers.size() == 1) {
                throw Failure("Busy", "later");
            }
        };
        applied ? faults.lose_reply(Call::end_activities) : faults.fail(Call::end_activities);
        const std::string id = applied ? "applied" : "not applied";
        Runtime runtime(store, registry, manual());
        client.start<&insists_on>(id, "text");
        work(runtime);
        EXPECT_EQ(*client.result<&insists_on>(id, 0ms), "text");
        EXPECT_EQ(numbers, (std::vector{1, 2})) << id;
        EXPECT_EQ(keys.size(), 1U);
        EXPECT_EQ(faults.waiting(), 0) << "or nothing was tested";
    }
}

// --- activities that write in the database

TEST_P(RuntimeFaults, ATransactionThatFailsIsNoAnswerOfItsActivity) {
    faults.fail(Call::end_activity_in_transaction);
    faults.fail(Call::end_activity_in_transaction, 2);
    expect_posted_once();
}

TEST_P(RuntimeFaults, ATransactionWhoseReplyIsLostIsNotRepeated) {
    faults.lose_reply(Call::end_activity_in_transaction);
    expect_posted_once();
    EXPECT_EQ(scene.posts, 1);
}

TEST_P(RuntimeFaults, WhatCannotBeGivenBackEitherIsTakenUpWhenItsLeaseIsOver) {
    faults.fail(Call::end_activity_in_transaction);
    faults.fail(Call::abandon_activity);
    expect_posted_once();
}

TEST_P(RuntimeFaults, ALeaseThatRunsOutDuringATransactionLeavesNothingBehind) {
    faults.expire_leases(Call::end_activity_in_transaction);
    expect_posted_once();
    EXPECT_EQ(scene.posts, 1) << "the first was refused before it wrote";
}

// A statement of the activity's own that fails is its failure, not the database's trouble.
TEST_P(RuntimeFaults, AStatementThatIsWrongIsTheActivitysFailure) {
    db.execute("DROP TABLE ledger");
    Runtime runtime(store, registry, manual());
    client.start<&posts>("p", "rent");
    work(runtime);
    const auto outcome = client.result<&posts>("p", 0ms);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.failure().kind, FailureKind::application);
    EXPECT_NE(outcome.failure().message.find("ledger"), std::string::npos)
        << outcome.failure().message;
}

// --- activities whose answers do not arrive

TEST_P(RuntimeFaults, AnAnswerThatCannotBeSentIsGivenAgain) {
    HOLDFAST_CHECK("runtime worker_abandon_on_ack_failure_enables_retry");
    // The workflow's memory is elsewhere, so that the answer travels by itself.
    RuntimeOptions only_activities = manual();
    only_activities.workflow_threads = 0;
    RuntimeOptions only_workflows = manual();
    only_workflows.activity_threads = 0;
    Runtime worker(store, registry, only_activities);
    Runtime dispatcher(store, registry, only_workflows);
    client.start<&lingers>("l", "done");
    dispatcher.run_until_idle();
    faults.fail(Call::end_activities);
    worker.run_until_idle();
    EXPECT_EQ(scene.lingers, 1);
    dispatcher.run_until_idle();
    EXPECT_EQ(client.info("l")->status, Status::running);
    db.advance_clock(1min);  // Its lease is over: it runs at least once, here twice.
    worker.run_until_idle();
    dispatcher.run_until_idle();
    EXPECT_EQ(*client.result<&lingers>("l", 0ms), "done");
    EXPECT_EQ(scene.lingers, 2);
    EXPECT_EQ(faults.waiting(), 0);
}

TEST_P(RuntimeFaults, AnAnswerWhoseReplyIsLostIsGivenOnce) {
    RuntimeOptions only_activities = manual();
    only_activities.workflow_threads = 0;
    RuntimeOptions only_workflows = manual();
    only_workflows.activity_threads = 0;
    Runtime worker(store, registry, only_activities);
    Runtime dispatcher(store, registry, only_workflows);
    client.start<&lingers>("l", "done");
    dispatcher.run_until_idle();
    faults.lose_reply(Call::end_activities);
    worker.run_until_idle();
    db.advance_clock(1min);
    dispatcher.run_until_idle();
    EXPECT_EQ(*client.result<&lingers>("l", 0ms), "done");
    EXPECT_EQ(scene.lingers, 1);
}

// --- dispatchers that cannot read

TEST_P(RuntimeFaults, AStoreThatCannotBeReadIsReadLater) {
    HOLDFAST_CHECK("runtime fetch_orchestration_item_fault_injection");
    RuntimeOptions options;
    options.poll_max = 10ms;
    faults.fail(Call::claim_instances);
    faults.fail(Call::claim_activities);
    faults.fail(Call::until_next_work);
    faults.fail(Call::peek_instance);
    const Runtime runtime(store, registry, options);
    client.start<&lingers>("l", "done");
    EXPECT_EQ(client.wait("l", 60s).status, Status::completed);
}

// The turn never began: whatever the database does, that is not the workflow's attempt.
TEST_P(RuntimeFaults, AClaimWhoseTurnCannotBeReadDoesNotCount) {
    RuntimeOptions options = manual();
    options.max_attempts = 2;
    options.activity_threads = 0;
    {
        Runtime first(store, registry, options);
        client.start<&lingers>("l", "done");
        first.run_until_idle();
    }
    RuntimeOptions worker = manual();
    worker.workflow_threads = 0;
    Runtime(store, registry, worker).run_until_idle();  // Its answer is in the mail.
    Runtime next(store, registry, options);
    for (int i = 0; i < 6; ++i) {
        // Once it cannot be given back either.
        faults.fail(i == 3 ? Call::abandon_instance : Call::load_history);
        next.run_until_idle();
        db.advance_clock(1min);
    }
    EXPECT_EQ(faults.waiting(), 0) << "or nothing was tested";
    EXPECT_EQ(client.info("l")->status, Status::running);
    next.run_until_idle();
    EXPECT_EQ(*client.result<&lingers>("l", 0ms), "done");
}

TEST_P(RuntimeFaults, ATurnThatTheDatabaseDoesNotCommitDoesNotCount) {
    std::atomic<bool> down = true;
    std::atomic<int> refused = 0;
    for (int nth = 1; nth <= 500; ++nth) {
        faults.before(Call::commit_turns, nth, [&] {
            if (down) {
                ++refused;
                refused.notify_all();
                throw Error(Code::unavailable, holdfast::Outcome::not_applied, "made to fail");
            }
        });
    }
    client.start<&lingers>("l", "done");
    RuntimeOptions options;
    options.max_attempts = 2;
    for (int life = 0; life < 5; ++life) {
        Runtime runtime(store, registry, options);
        refused.wait(refused);
        runtime.drain(1ms);
        EXPECT_EQ(db.number("SELECT max(attempts) FROM flow_messages"), 0) << life;
    }
    down = false;
    Runtime next(store, registry, manual());
    next.run_until_idle();
    EXPECT_EQ(*client.result<&lingers>("l", 0ms), "done");
}

// --- commits that are refused

// Turns of several workflows share a commit. What is wrong with one of them is not the others'.
TEST_P(RuntimeFaults, WhatIsWrongWithOneTurnDoesNotKeepOthersBack) {
    Runtime runtime(store, registry, manual());
    client.start<&lingers>("one", "done");
    client.start<&lingers>("two", "done");
    faults.before(Call::commit_turns, 1, [] {
        throw Error(Code::internal, holdfast::Outcome::not_applied, "made to fail by a test");
    });
    runtime.run_until_idle();
    EXPECT_EQ(faults.waiting(), 0) << "or nothing was tested";
    EXPECT_EQ(client.info("one")->status, Status::completed);
    EXPECT_EQ(client.info("two")->status, Status::completed);
}

// --- draining

// An activity that does not listen is fenced off at the end of a drain, and given back. If that
// fails too, its lease runs out instead; the process goes on.
TEST_P(RuntimeFaults, ADrainThatCannotGiveBackAnActivityEndsAllTheSame) {
    std::latch holding{1};
    std::latch released{1};
    std::latch left{1};
    scene.meanwhile = [&](ActivityContext&) {
        holding.count_down();
        released.wait();
        left.count_down();
    };
    RuntimeOptions options;
    options.activity_threads = 1;
    options.cancel_grace = 1ms;
    {
        Runtime runtime(store, registry, options);
        client.start<&lingers>("l", "at last");
        holding.wait();
        faults.fail(Call::abandon_activity);
        const DrainReport report = runtime.drain(1ms);
        EXPECT_EQ(report.activities_stuck, 1);
        EXPECT_EQ(report.activities_abandoned, 1);
        EXPECT_EQ(faults.waiting(), 0) << "or nothing was tested";
    }
    released.count_down();
    left.wait();
    scene.meanwhile = nullptr;
    EXPECT_EQ(client.info("l")->status, Status::running) << "nobody listens to it any more";
    db.advance_clock(1min);
    Runtime next(store, registry, manual());
    next.run_until_idle();
    EXPECT_EQ(*client.result<&lingers>("l", 0ms), "at last");
    EXPECT_EQ(scene.lingers, 2);
}

// Its thread outlives the runtime, and perhaps the store.
TEST_P(RuntimeFaults, AnActivityThatADrainLeftBehindDoesNotReachTheStore) {
    std::latch holding{1};
    std::latch released{1};
    std::latch left{1};
    scene.meanwhile = [&](ActivityContext& ctx) {
        holding.count_down();
        released.wait();
        ctx.heartbeat(std::int64_t{1});
        left.count_down();
    };
    RuntimeOptions options;
    options.activity_threads = 1;
    options.cancel_grace = 1ms;
    {
        Runtime runtime(store, registry, options);
        client.start<&lingers>("l", "at last");
        holding.wait();
        EXPECT_EQ(runtime.drain(1ms).activities_stuck, 1);
    }
    std::atomic<bool> reached = false;
    faults.before(Call::heartbeat, 1, [&] { reached = true; });
    released.count_down();
    left.wait();
    scene.meanwhile = nullptr;
    EXPECT_FALSE(reached);
}

TEST_P(RuntimeFaults, ADrainGivesBackWhatItsActivityDidNotFinish) {
    std::latch holding{1};
    std::latch released{1};
    std::latch left{1};
    scene.meanwhile = [&](ActivityContext&) {
        holding.count_down();
        released.wait();
        left.count_down();
    };
    RuntimeOptions options;
    options.activity_threads = 1;
    options.cancel_grace = 1ms;
    {
        Runtime runtime(store, registry, options);
        client.start<&lingers>("l", "at last");
        holding.wait();
        EXPECT_EQ(runtime.drain(1ms).activities_abandoned, 1);
    }
    released.count_down();
    left.wait();
    scene.meanwhile = nullptr;
    Runtime next(store, registry, manual());  // At once: the lease was given up.
    next.run_until_idle();
    EXPECT_EQ(*client.result<&lingers>("l", 0ms), "at last");
}

// A look for activities is under way when its runtime drains, and brings some when no thread is
// left to run them: one that waited, and perhaps the very one that the drain has just given back.
TEST_P(RuntimeFaults, ADrainGivesBackWhatALookUnderWayBrings) {
    std::latch looking{1};
    std::latch go_on{1};
    std::latch holding{1};
    std::latch released{1};
    std::latch left{1};
    scene.meanwhile = [&](ActivityContext& ctx) {
        const std::stop_callback on_stop(ctx.stop_token(), [&] { go_on.count_down(); });
        holding.count_down();
        released.wait();
        left.count_down();
    };
    RuntimeOptions only_workflows = manual();
    only_workflows.activity_threads = 0;
    Runtime dispatcher(store, registry, only_workflows);
    RuntimeOptions only_activities;
    only_activities.workflow_threads = 0;
    only_activities.activity_threads = 1;
    only_activities.cancel_grace = 1ms;
    only_activities.poll_max = 10ms;
    {
        Runtime worker(store, registry, only_activities);
        client.start<&lingers>("running", "first");
        dispatcher.run_until_idle();
        holding.wait();
        faults.before(Call::claim_activities, 1, [&] {
            looking.count_down();
            go_on.wait();
        });
        looking.wait();
        client.start<&lingers>("waiting", "second");
        dispatcher.run_until_idle();
        EXPECT_EQ(worker.drain(1ms).activities_abandoned, 2) << "each is counted once";
    }
    released.count_down();
    left.wait();
    scene.meanwhile = nullptr;
    Runtime next(store, registry, manual());  // At once: no lease is left.
    next.run_until_idle();
    EXPECT_EQ(client.info("waiting")->status, Status::completed);
    EXPECT_EQ(client.info("running")->status, Status::completed);
}

// The instance is claimed, its turn cannot be committed, and it cannot be given back either.
TEST_P(RuntimeFaults, ADrainThatCannotGiveBackAnInstanceEndsAllTheSame) {
    client.start<&lingers>("l", "done");
    {
        Runtime runtime(store, registry, manual());
        faults.fail(Call::commit_turns);
        faults.fail(Call::abandon_instance);
        EXPECT_NO_THROW((void)runtime.drain(1ms));
    }
    db.advance_clock(1min);
    Runtime next(store, registry, manual());
    work(next);
    EXPECT_EQ(*client.result<&lingers>("l", 0ms), "done");
}

// --- without faults

// A provider that wraps another, here to inject faults, must not change what happens.
TEST_P(RuntimeFaults, AProviderAroundAProviderChangesNothing) {
    HOLDFAST_CHECK("runtime instrumented_provider_semantic_equivalence");
    HOLDFAST_CHECK("runtime instrumented_provider_management_passthrough");
    HOLDFAST_CHECK("runtime instrumented_provider_error_paths");
    Store direct{*db, provider};
    const auto history_through = [&](Store& where, const std::string& id) {
        Runtime runtime(where, registry, manual());
        Client caller(where);
        caller.start<&lingers>(id, "done");
        runtime.run_until_idle();
        std::vector<Event> events = caller.history(id);
        for (Event& event : events) {
            event.time_ms = 0;
        }
        return events;
    };
    EXPECT_EQ(history_through(store, "wrapped"), history_through(direct, "bare"));
    EXPECT_EQ(faults.info("bare")->output, provider.info("bare")->output);
    EXPECT_EQ(faults.list({}).instances.size(), 2U);
    EXPECT_EQ(faults.executions("bare").size(), provider.executions("bare").size());
    EXPECT_EQ(faults.tree("bare"), provider.tree("bare"));
    EXPECT_EQ(faults.stats().completed, 2);
    EXPECT_EQ(faults.prune("bare", {}).executions, 0);
    for (Provider* each : {static_cast<Provider*>(&faults), static_cast<Provider*>(&provider)}) {
        EXPECT_EQ(holdfast::test::code_of([&] { each->delete_tree("nobody", false); }),
                  Code::not_found);
        EXPECT_FALSE(each->info("nobody"));
    }
    EXPECT_EQ(faults.delete_tree("bare", false).instances, 1);
    EXPECT_FALSE(provider.info("bare"));
}

// --- an idle runtime

TEST_P(RuntimeFaults, AnIdleRuntimeWaitsInsteadOfAsking) {
    HOLDFAST_CHECK("runtime long_poll_tests.long_poll_waits_for_timeout");
    RuntimeOptions options;
    options.poll_max = 1h;
    const Runtime runtime(store, registry, options);
    client.start<&naps>("n");
    EXPECT_EQ(client.wait("n", 60s).status, Status::completed)
        << "a timer wakes it, though nobody does";
    EXPECT_LE(faults.calls(Call::claim_instances), 20) << "in 300 ms";
}

INSTANTIATE_TEST_SUITE_P(Every,
                         RuntimeFaults,
                         holdfast::test::every_backend(),
                         holdfast::test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests

#include <holdfast/flow_testing/world.hpp>

#include <cstdlib>
#include <fstream>

#include "test/loan_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/sql/schema.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::flow::tests {

namespace {

using flow::test::Unexpected;
using flow::test::World;

constexpr std::array<sql::MigrationFile, 1> schema_files{
    {{"0001_entries", "CREATE TABLE test_entries (note TEXT NOT NULL) {strict};"}}};
constexpr sql::SchemaPart schema{.name = "test_entries", .files = schema_files};
constexpr sql::Statement insert_entry{"test.insert_entry",
                                      "INSERT INTO test_entries (note) VALUES ($1)"};
constexpr sql::Statement count_entries{"test.count_entries", "SELECT COUNT(*) FROM test_entries"};

void enter(sql::Tx& tx, std::string note) {
    tx.exec(insert_entry, note);
    if (note == "forbidden") {
        throw permanent("Forbidden", "nobody may say that");
    }
}

}  // namespace

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::enter, "test.enter");

namespace holdfast::flow::tests {

namespace {

Workflow<std::string> keep(Context& ctx, std::string note) {
    auto kept = co_await ctx.activity<&enter>(note).outcome();
    co_return kept ? "kept" : kept.failure().type;
}

Workflow<int> parent(Context& ctx, std::string prefix) {
    int best = co_await ctx.child<&tender>(prefix);
    co_return best;
}

// Not deterministic: what it does depends on how often its code has run.
int runs = 0;
Workflow<Unit> forgetful(Context& ctx, std::string officer) {
    ++runs;
    co_await ctx.activity<&nudge>(officer);
    co_await ctx.activity<&nudge>(officer + std::to_string(runs));
    co_return Unit{};
}

Workflow<int> patient(Context& ctx, int days) {
    ctx.on(set_patience, [&days](int more) { return days += more; });
    for (int i = 0; i < days; ++i) {
        co_await ctx.sleep(24h);
    }
    co_return days;
}

class Environment {
public:
    Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~Environment() { unsetenv(name_); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

private:
    const char* name_;
};

}  // namespace

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::keep, "test.keep");
HOLDFAST_NAME(holdfast::flow::tests::parent, "test.parent");
HOLDFAST_NAME(holdfast::flow::tests::forgetful, "test.forgetful");
HOLDFAST_NAME(holdfast::flow::tests::patient, "test.patient");

namespace holdfast::flow::tests {

namespace {

const Loan loan{.id = "loan-7", .officer = "ann"};

TEST(World, ThreeDaysPassInAnInstant) {
    World world;
    std::vector<Moment> nudged;
    world.stub<&nudge>([&](std::string) { nudged.push_back(world.now()); });
    world.start<&review>("loan-7", loan);
    world.advance(71h);
    EXPECT_EQ(world.status("loan-7"), Status::running);
    world.advance(1h);
    EXPECT_EQ(*world.result<&review>("loan-7"), "expired");
    EXPECT_EQ(world.now(), test::first_moment + 72h);
    // Each at the very moment it was due, though the clock was moved in one go.
    EXPECT_EQ(nudged, (std::vector<Moment>{test::first_moment + 24h, test::first_moment + 48h}));
}

TEST(World, ASignalIsSeenAndAQueryAnswered) {
    World world;
    world.stub<&nudge>([](std::string) {});
    world.start<&review>("loan-7", loan);
    world.advance(30h);
    EXPECT_EQ(world.query("loan-7", reminders_so_far), 1);
    EXPECT_EQ(world.signal("loan-7", decisions, std::string("granted")), Delivery::delivered);
    EXPECT_EQ(*world.result<&review>("loan-7"), "granted");
    EXPECT_EQ(world.calls<&nudge>(), 1);
    EXPECT_EQ(world.now(), test::first_moment + 30h) << "looking moves no clock";
}

TEST(World, AnUpdateChangesTheWorkflow) {
    World world;
    world.start<&patient>("p", 1);
    EXPECT_EQ(world.update("p", set_patience, 2), 3);
    world.advance(71h);
    EXPECT_EQ(world.status("p"), Status::running);
    world.advance(1h);
    EXPECT_EQ(*world.result<&patient>("p"), 3);
    EXPECT_THROW(world.update("p", set_patience, 1), Unexpected) << "it has ended";
}

TEST(World, AnActivityThatDoesNotAnswerTimesOut) {
    World world;
    world.activity<&quote>().hold<&quote>();
    world.start<&hurry>("h", "bank");
    world.advance(119s);
    EXPECT_EQ(world.status("h"), Status::running);
    world.advance(1s);
    EXPECT_NE(world.result<&hurry>("h")->find("timeout"), std::string::npos);
    world.release<&quote>().run();
    EXPECT_EQ(world.calls<&quote>(), 0) << "nobody waits for it any more";
}

TEST(World, AFailingStubIsTheActivitysFailure) {
    World world;
    world.stub<&quote>([](std::string) -> int { throw permanent("Closed", "on sundays"); });
    world.start<&tender>("t", "x");
    const auto outcome = world.result<&tender>("t");
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.failure().type, "Closed");
}

TEST(World, AStubMayLookAtItsContext) {
    World world;
    std::vector<std::string> seen;
    world.stub<&quote>([&](ActivityContext& ctx, std::string bank) {
        seen.push_back(ctx.instance() + "/" + bank);
        return 1;
    });
    world.start<&tender>("t", "x");
    EXPECT_EQ(*world.result<&tender>("t"), 1);
    EXPECT_EQ(seen, (std::vector<std::string>{"t/xa", "t/xbb", "t/xccc"}));
}

TEST(World, AMissingStubIsNamed) {
    World world;
    world.start<&tender>("t", "x");
    try {
        world.run();
        FAIL() << "nobody can play test.quote";
    } catch (const Unexpected& error) {
        EXPECT_NE(std::string(error.what()).find("test.quote"), std::string::npos) << error.what();
    }
}

TEST(World, AWorkflowThatHasNotEndedIsUnexpected) {
    World world;
    world.start<&review>("loan-7", loan);
    EXPECT_THROW((void)world.result<&review>("loan-7"), Unexpected);
    EXPECT_THROW((void)world.status("loan-8"), Unexpected);
}

TEST(World, ChildrenRunOnceTheyAreKnown) {
    World world;
    world.activity<&quote>().workflow<&tender>();
    world.start<&parent>("p", "x");
    EXPECT_EQ(*world.result<&parent>("p"), 4);
}

TEST(World, AChildWhoseCodeIsMissingIsNamed) {
    World world;
    world.start<&parent>("p", "x");
    std::string said;
    try {
        (void)world.result<&parent>("p");
    } catch (const Unexpected& error) {
        said = error.what();
    }
    EXPECT_EQ(said,
              "'p' has not ended, and the world does not know the workflow 'test.tender'; tell it "
              "with workflow");
    world.activity<&quote>().workflow<&tender>();
    world.advance(1h);  // The worker without its code tries again after a while.
    EXPECT_EQ(*world.result<&parent>("p"), 4);
}

TEST(World, TimeDoesNotGoBack) {
    World world;
    EXPECT_EQ(holdfast::test::code_of([&] { world.advance(-1ms); }), Code::invalid_argument);
    world.advance(0ms);
    EXPECT_EQ(world.now(), flow::test::first_moment);
}

// Both or neither: the row and the answer.
TEST(World, ATransactionalActivityWritesOnlyIfItSucceeds) {
    World world;
    sql::schema_apply(world.database(), schema, {});
    world.activity<&enter>();
    world.start<&keep>("a", "hello");
    world.start<&keep>("b", "forbidden");
    EXPECT_EQ(*world.result<&keep>("a"), "kept");
    EXPECT_EQ(*world.result<&keep>("b"), "Forbidden");
    const auto count = world.database().transact("count", {.read_only = true}, [](sql::Tx& tx) {
        return tx.query(count_entries)[0].get<std::int64_t>(0);
    });
    EXPECT_EQ(count, 1);
}

// What a process forgets it finds in the histories.
TEST(World, ACrashBetweenTurnsChangesNothing) {
    World world;
    world.activity<&nudge>();
    world.start<&review>("loan-7", loan);
    for (int day = 0; day < 3; ++day) {
        world.crash();
        world.advance(24h);
    }
    EXPECT_EQ(*world.result<&review>("loan-7"), "expired");
    EXPECT_EQ(world.calls<&nudge>(), 2);
}

TEST(World, CodeThatIsNotDeterministicFailsAtOnce) {
    runs = 0;
    World world;
    world.activity<&nudge>();
    world.start<&forgetful>("f", "ann");
    const auto outcome = world.result<&forgetful>("f");
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.failure().kind, FailureKind::nondeterminism);
}

std::string told() {
    World world;
    world.activity<&nudge>();
    world.start<&review>("loan-7", loan);
    world.advance(50h);
    world.signal("loan-7", decisions, "granted");
    world.run();
    return world.history("loan-7");
}

TEST(World, TheSameScenarioGivesTheSameHistory) {
    const std::string first = told();
    EXPECT_EQ(first, told());
    EXPECT_NE(first.find("workflow_completed"), std::string::npos) << first;
}

TEST(World, AGoldenHistoryIsWrittenAndThenHeldUp) {
    const holdfast::test::TempDir folder;
    const std::filesystem::path file = folder / "review.jsonl";
    World world;
    world.activity<&nudge>();
    world.start<&review>("loan-7", loan);
    EXPECT_THROW(world.expect_history("loan-7", file), Unexpected) << "there is no file yet";
    world.advance(72h);
    {
        const Environment write("HOLDFAST_GOLDEN", "write");
        world.expect_history("loan-7", file);
    }
    world.expect_history("loan-7", file);
    test::check_history<&review>(file);
    EXPECT_THROW(test::check_history<&tender>(file), Unexpected) << "another code";

    World other;
    other.start<&review>("loan-7", loan);
    other.signal("loan-7", decisions, std::string("granted"));
    other.run();
    try {
        other.expect_history("loan-7", file);
        FAIL() << "the two differ";
    } catch (const Unexpected& error) {
        EXPECT_NE(std::string(error.what()).find("line "), std::string::npos) << error.what();
    }
}

}  // namespace

}  // namespace holdfast::flow::tests

#include <holdfast/flow_testing/faulty_provider.hpp>

#include "test/loan_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow_testing/world.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::flow::tests {

namespace {

using flow::test::Call;
using flow::test::World;

// A tender under a fault must end as if nothing had happened.
class Faults : public testing::Test {
protected:
    void expect_no_harm() {
        world.activity<&quote>();
        world.start<&tender>("t", "");
        world.run();
        world.advance(24h);  // Whatever was left is taken up when its lease has run out.
        EXPECT_EQ(*world.result<&tender>("t"), 3);
        EXPECT_EQ(world.faults().waiting(), 0) << "or nothing was tested";
    }
    World world;
};

TEST_F(Faults, ACommitThatFailsIsMadeUpFor) {
    world.faults().fail(Call::commit_turns);
    expect_no_harm();
}

TEST_F(Faults, ACommitWhoseReplyIsLostIsNotDoneTwice) {
    world.faults().lose_reply(Call::commit_turns);
    expect_no_harm();
    EXPECT_EQ(world.calls<&quote>(), 3);
}

TEST_F(Faults, ALeaseThatRunsOutBeforeTheCommitIsMadeUpFor) {
    world.faults().expire_leases(Call::commit_turns, 2);
    expect_no_harm();
}

TEST_F(Faults, ACallThatTakesLongIsLateByTheDatabasesClock) {
    const Moment before = world.now();
    world.faults().delay(Call::claim_activities, 90s);
    world.faults().delay(Call::commit_turns, 2s, 2);
    expect_no_harm();
    EXPECT_EQ(world.now(), before + 24h + 92s);
}

TEST_F(Faults, TheSecondCommitAlsoMayFail) {
    world.faults().fail(Call::commit_turns, 2);
    world.faults().lose_reply(Call::commit_turns, 3);
    expect_no_harm();
}

TEST_F(Faults, CandidatesInAnyOrderGiveTheSameResult) {
    world.faults().reorder(42);
    expect_no_harm();
}

TEST_F(Faults, AFaultReachesWhoeverCalls) {
    world.faults().fail(Call::start);
    EXPECT_EQ(holdfast::test::code_of([&] { world.start<&tender>("t", ""); }), Code::unavailable);
    world.start<&tender>("t", "");
    world.faults().lose_reply(Call::start);
    EXPECT_EQ(holdfast::test::outcome_of([&] { world.start<&tender>("u", ""); }),
              holdfast::Outcome::unknown);
    EXPECT_EQ(world.status("u"), Status::pending) << "it was started all the same";
    EXPECT_EQ(world.faults().calls(Call::start), 3);
}

TEST_F(Faults, AMessageThatComesTwiceIsTwoMessages) {
    world.start<&review>("loan-7", Loan{.id = "loan-7", .officer = "ann"});
    world.faults().deliver_twice();
    world.signal("loan-7", decisions, std::string("granted"));
    EXPECT_EQ(*world.result<&review>("loan-7"), "granted");
    const std::string history = world.history("loan-7");
    const std::size_t first = history.find("message_received");
    EXPECT_NE(history.find("message_received", first + 1), std::string::npos) << history;
}

TEST_F(Faults, SomethingMayHappenJustBeforeACall) {
    int seen = 0;
    world.faults().before(Call::info, 2, [&] { seen = world.faults().calls(Call::info); });
    for (int i = 0; i < 3; ++i) {
        (void)world.faults().info("nobody");
    }
    EXPECT_EQ(seen, 2);
    EXPECT_EQ(holdfast::test::code_of([&] { world.faults().fail(Call::info, 0); }),
              Code::invalid_argument);
}

TEST(FaultyProvider, WithoutAClockNothingIsLateAndNoLeaseRunsOut) {
    World world;
    Provider& inner = world.faults();
    flow::test::FaultyProvider bare{inner};
    EXPECT_EQ(holdfast::test::code_of([&] { bare.expire_leases(Call::commit_turns); }),
              Code::invalid_argument);
    EXPECT_EQ(holdfast::test::code_of([&] { bare.delay(Call::commit_turns, 1s); }),
              Code::invalid_argument);
}

TEST(FaultyProvider, EveryCallHasItsName) {
    EXPECT_EQ(flow::test::to_string(Call::claim_instances), "claim_instances");
    EXPECT_EQ(flow::test::to_string(Call::sweep_sessions), "sweep_sessions");
    EXPECT_EQ(flow::test::to_string(Call::until_next_work), "until_next_work");
}

}  // namespace

}  // namespace holdfast::flow::tests

// The database fails while a start and its first turn are being committed.
#include "test/loan_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/flow_testing/faulty_provider.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::flow::tests {

namespace {

using flow::test::Call;
using flow::test::FaultyProvider;

class FirstTurnFaults : public testing::Test {
protected:
    FirstTurnFaults() {
        Registry registry;
        registry.activity<&quote>().workflow<&tender>();
        runtime.emplace(store, registry);
    }
    holdfast::Outcome outcome_of_start(const std::string& id) {
        try {
            client.start<&tender>(id, "");
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::unavailable);
            return error.outcome();
        }
        ADD_FAILURE() << "the start has not failed";
        return holdfast::Outcome::not_applied;
    }

    holdfast::test::Database db{holdfast::test::Backend::sqlite};
    SqlProvider sql_provider{db};
    FaultyProvider provider{sql_provider};
    Store store{db, provider};
    std::optional<Runtime> runtime;
    Client client{store};
};

TEST_F(FirstTurnFaults, WhoStartsHearsThatItFailedAndMayTryAgain) {
    provider.fail(Call::commit_turns);
    EXPECT_EQ(outcome_of_start("t"), holdfast::Outcome::not_applied);
    EXPECT_FALSE(client.info("t"));
    client.start<&tender>("t", "");
    EXPECT_EQ(*client.result<&tender>("t", 30s), 3);
}

TEST_F(FirstTurnFaults, AStartWhoseAnswerIsLostMayHaveHappened) {
    provider.lose_reply(Call::commit_turns);
    EXPECT_EQ(outcome_of_start("t"), holdfast::Outcome::unknown);
    EXPECT_EQ(client.info("t")->status, Status::running) << "and whoever finds it goes on";
}

// The clock of the store dates the first turn; until it was read, a start takes the long way.
TEST_F(FirstTurnFaults, WithoutTheStoresClockNoTurnIsDated) {
    runtime.reset();
    provider.fail(Call::now);
    Registry registry;
    registry.activity<&quote>().workflow<&tender>();
    runtime.emplace(store, registry);
    client.start<&tender>("t", "");
    EXPECT_EQ(provider.calls(Call::start), 1);
    EXPECT_EQ(*client.result<&tender>("t", 30s), 3);
}

}  // namespace

}  // namespace holdfast::flow::tests

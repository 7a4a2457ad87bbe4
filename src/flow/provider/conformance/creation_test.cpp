// A start and its first turn in one commit.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

class ProviderCreation : public ProviderStory {
protected:
    // The first turn of an instance that does not exist yet.
    ClaimedTurn creating(const std::string& instance) {
        ClaimedInstance nobody;
        nobody.instance = instance;
        nobody.now = provider.now();
        nobody.messages.push_back(
            {.message = {.execution = 0, .body = StartMessage{"order", "1.0.0", text("in"), {}}}});
        ClaimedTurn first = turn(nobody);
        first.commit.consumed.clear();
        first.commit.leased = false;
        first.commit.creates = true;
        return first;
    }
    [[nodiscard]] std::int64_t rows(const std::string& table) const {
        return db.number("SELECT count(*) FROM " + table);
    }
};

TEST_P(ProviderCreation, AFirstTurnCanBeTheStart) {
    const ClaimedTurn first = creating("a").schedules(2, "charge").says("begun");
    EXPECT_EQ(commit(first), Committed::yes);
    EXPECT_EQ(info("a").status, Status::running);
    EXPECT_EQ(info("a").name, "order");
    EXPECT_EQ(info("a").last_event, 2U);
    EXPECT_EQ(info("a").status_version, 1);
    EXPECT_EQ(history("a"), (std::vector<EventId>{1, 2}));
    EXPECT_TRUE(idle()) << "its first turn has been taken";
    EXPECT_EQ(taken("charge").task.key.instance, "a");
    EXPECT_EQ(signal("a"), Delivery::delivered);
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

TEST_P(ProviderCreation, AnInstanceThatExistsIsNotStartedAgain) {
    start("a");
    const std::vector<TurnCommit> turns{creating("a").schedules(2, "charge").commit,
                                        creating("b").schedules(2, "ship").commit};
    EXPECT_EQ(provider.commit_turns(turns), (std::vector{Committed::lost, Committed::yes}));
    EXPECT_EQ(info("a").status, Status::pending);
    EXPECT_EQ(info("b").status, Status::running);
    EXPECT_EQ(rows("flow_activities"), 1);
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

// What came before the start belongs into the first turn, and this one has not read it.
TEST_P(ProviderCreation, AFirstTurnThatHasNotReadEarlyMailIsNoStart) {
    ASSERT_EQ(signal("a"), Delivery::early);
    ASSERT_EQ(signal("b"), Delivery::early);
    EXPECT_EQ(commit(creating("a").schedules(2, "charge")), Committed::lost);
    EXPECT_EQ(commit(creating("b").completes()), Committed::lost);
    EXPECT_FALSE(provider.info("a"));
    EXPECT_FALSE(provider.info("b"));
    EXPECT_EQ(rows("flow_activities"), 0);
    start("a");
    EXPECT_EQ(claimed("a").messages.size(), 2U);
}

TEST_P(ProviderCreation, OneThatEndsInItsFirstTurnLeavesNoMailbox) {
    EXPECT_EQ(commit(creating("a").completes("at once")), Committed::yes);
    EXPECT_EQ(info("a").status, Status::completed);
    EXPECT_EQ(info("a").output, text("at once").json);
    EXPECT_TRUE(info("a").completed);
    EXPECT_EQ(rows("flow_mailboxes"), 0);
    EXPECT_EQ(signal("a"), Delivery::ended);
}

TEST_P(ProviderCreation, TimersOfTheFirstTurnFire) {
    ClaimedTurn first = creating("a");
    first.waits_until(2, provider.now() + 10s);
    EXPECT_EQ(commit(first), Committed::yes);
    EXPECT_TRUE(idle());
    db.advance_clock(11s);
    EXPECT_EQ(claimed("a").messages.size(), 1U);
}

// Both want the same name in one commit; the one who comes by way of a parent hears of it.
TEST_P(ProviderCreation, AChildOfTheSameNameIsRefused) {
    begin("parent");
    signal("parent");
    ClaimedTurn parent = turn(claimed("parent"));
    parent.starts_child(parent.next_event(), "a");
    const std::vector<TurnCommit> turns{creating("a").commit, parent.commit};
    EXPECT_EQ(provider.commit_turns(turns), (std::vector{Committed::yes, Committed::yes}));
    EXPECT_FALSE(info("a").parent);
    const auto told = claimed("parent");
    ASSERT_EQ(told.messages.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<ChildAnswer>(told.messages[0].message.body));
}

TEST_P(ProviderCreation, AFirstTurnThatIsNoneIsRefused) {
    ClaimedTurn late = creating("a");
    late.commit.last_event = 3;
    EXPECT_EQ(commit(late), Committed::lost);
    EXPECT_EQ(commit(creating("a").continues()), Committed::lost);
    EXPECT_FALSE(provider.info("a"));
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderCreation, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

// What is more than a database takes in one transaction. Aurora DSQL takes 3,000 rows and 10 MiB.
#include "provider/test/provider_fixture.hpp"

#include <holdfast/base/random.hpp>

namespace holdfast::flow::tests {

namespace {

class ProviderLimits : public ProviderStory {
protected:
    ClaimedTurn first_turn(const std::string& instance, int activities) {
        start(instance);
        ClaimedTurn first = turn(claimed(instance));
        for (int i = 0; i < activities; ++i) {
            first.schedules(first.next_event(), "charge");
        }
        return first;
    }
    static Payload incompressible(std::size_t bytes) {
        Random random(1);
        std::string letters(bytes, ' ');
        for (char& letter : letters) {
            letter = static_cast<char>('A' + random.below(26));
        }
        return text(letters);
    }
    [[nodiscard]] Committed only_where_it_fits() const {
        return GetParam().backend == test::Backend::dsql ? Committed::too_large : Committed::yes;
    }
};

TEST_P(ProviderLimits, TurnsThatAreTooMuchTogetherAreCommittedInParts) {
    const std::vector<std::string> names{"a", "b", "c", "d"};
    std::vector<TurnCommit> turns;
    for (const std::string& name : names) {
        turns.push_back(first_turn(name, 900).commit);
    }
    EXPECT_THAT(provider.commit_turns(turns), testing::Each(Committed::yes));
    for (const std::string& name : names) {
        EXPECT_EQ(rows("flow_activities", name), 900) << name;
    }
}

TEST_P(ProviderLimits, OneThatIsTooMuchAloneIsToldSoAndHarmsNobody) {
    const ClaimedTurn large = first_turn("large", 3'001);
    const ClaimedTurn small = first_turn("small", 1);
    const std::vector<TurnCommit> turns{large.commit, small.commit};
    EXPECT_THAT(provider.commit_turns(turns),
                testing::ElementsAre(only_where_it_fits(), Committed::yes));
    EXPECT_EQ(rows("flow_activities", "small"), 1);
    if (only_where_it_fits() == Committed::too_large) {
        EXPECT_EQ(rows("flow_activities", "large"), 0);
        ClaimedTurn other = large;
        other.commit.activities.resize(1);
        EXPECT_EQ(commit(other), Committed::yes) << "the claim is still held";
    }
}

TEST_P(ProviderLimits, AnswersThatAreTooMuchTogetherAreTakenInParts) {
    constexpr int activities = 12;
    queue("a", std::vector<std::string>(activities, "charge"));
    const Payload megabyte = incompressible(1'000'000);
    std::vector<ActivityEnd> ends;
    for (const ClaimedActivity& claim : provider.claim_activities({.count = activities})) {
        ends.push_back(
            {claim.task.key, claim.token, ActivityAnswer{claim.task.key.event, megabyte}});
    }
    ASSERT_THAT(ends, testing::SizeIs(activities));
    EXPECT_THAT(provider.end_activities(ends), testing::Each(true));
    EXPECT_EQ(rows("flow_messages", "a"), activities);
    EXPECT_EQ(rows("flow_activities", "a"), 0);
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderLimits, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

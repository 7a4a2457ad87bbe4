// What an instance says of itself: its custom status, and how often it changed.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

class ProviderStatus : public ProviderStory {};

TEST_P(ProviderStatus, AStatusIsReadWithItsVersion) {
    HOLDFAST_CHECK("runtime custom_status_set");
    HOLDFAST_CHECK("runtime custom_status_default_on_new_instance");
    start("a");
    EXPECT_EQ(info("a").custom_status, std::nullopt);
    EXPECT_EQ(info("a").status_version, 0);
    EXPECT_EQ(commit(turn(claimed("a")).says("packing")), Committed::yes);
    EXPECT_EQ(info("a").custom_status, text("packing"));
    EXPECT_EQ(info("a").status_version, 1);
}

TEST_P(ProviderStatus, AClearedStatusIsAChangeToo) {
    HOLDFAST_CHECK("runtime custom_status_clear");
    begin("a", [](ClaimedTurn& first) { first.says("packing"); });
    proceed("a", [](ClaimedTurn& next) { next.says_nothing(); });
    EXPECT_EQ(info("a").custom_status, std::nullopt);
    EXPECT_EQ(info("a").status_version, 2);
}

// There is no call that waits for a newer status: a reader compares versions.
TEST_P(ProviderStatus, ATurnThatSaysNothingNewLeavesItAlone) {
    HOLDFAST_CHECK("runtime custom_status_none_preserves");
    HOLDFAST_CHECK("runtime custom_status_polling_no_change");
    begin("a", [](ClaimedTurn& first) { first.says("packing"); });
    proceed("a", [](ClaimedTurn& next) { next.schedules(2, "ship"); });
    EXPECT_EQ(info("a").custom_status, text("packing"));
    EXPECT_EQ(info("a").status_version, 1);
    finish("a");
    EXPECT_EQ(info("a").custom_status, text("packing"));
    EXPECT_EQ(info("a").status_version, 1);
}

TEST_P(ProviderStatus, EveryChangeCountsAlsoSeveralInOneTurn) {
    HOLDFAST_CHECK("runtime custom_status_version_increments");
    begin("a", [](ClaimedTurn& first) { first.says("one"); });
    proceed("a", [](ClaimedTurn& next) { next.says("two"); });
    EXPECT_EQ(info("a").status_version, 2);
    proceed("a", [](ClaimedTurn& next) { next.says("three").says_nothing().says("four"); });
    EXPECT_EQ(info("a").status_version, 5);
    EXPECT_EQ(info("a").custom_status, text("four")) << "the last word of a turn";
    renew_execution("a");
    EXPECT_EQ(info("a").custom_status, text("four")) << "it outlives the execution";
    EXPECT_EQ(info("a").status_version, 5);
}

TEST_P(ProviderStatus, WhoDoesNotExistSaysNothing) {
    HOLDFAST_CHECK("runtime custom_status_nonexistent_instance");
    EXPECT_FALSE(provider.info("nobody"));
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderStatus, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

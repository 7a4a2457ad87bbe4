// Tags: which worker takes which activity.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

using Names = std::vector<std::string>;

class ProviderTags : public ProviderStory {
protected:
    // One untagged activity, and one for each of "gpu", "eu" and "us".
    void queue_four() {
        begin("a", [](ClaimedTurn& first) {
            first.schedules(2, "plain");
            first.schedules(3, "render", {.tag = "gpu"});
            first.schedules(4, "pay", {.tag = "eu"});
            first.schedules(5, "tax", {.tag = "us"});
        });
    }
};

TEST_P(ProviderTags, AWorkerWithoutTagsTakesWhatHasNone) {
    HOLDFAST_CHECK("runtime default_only_fetches_untagged");
    queue_four();
    EXPECT_EQ(take_all({.tags = TagFilter::default_only()}), Names{"plain"});
    EXPECT_EQ(take_all({.tags = TagFilter::default_only()}), Names{});
}

TEST_P(ProviderTags, AWorkerWithTagsTakesOnlyThose) {
    HOLDFAST_CHECK("runtime tags_fetches_only_matching");
    HOLDFAST_CHECK("runtime multi_tag_filter");
    queue_four();
    EXPECT_EQ(take_all({.tags = TagFilter::only({"gpu"})}), Names{"render"});
    EXPECT_EQ(take_all({.tags = TagFilter::only({"mars"})}), Names{});
    EXPECT_EQ(take_all({.tags = TagFilter::only({"us", "eu"})}), (Names{"pay", "tax"}));
    EXPECT_EQ(take_all(), Names{"plain"});
}

TEST_P(ProviderTags, AWorkerMayTakeUntaggedOnesToo) {
    HOLDFAST_CHECK("runtime default_and_fetches_untagged_and_matching");
    queue_four();
    EXPECT_EQ(take_all({.tags = TagFilter::default_and({"gpu"})}), (Names{"plain", "render"}));
}

TEST_P(ProviderTags, AWorkerMayTakeNothingOrEverything) {
    HOLDFAST_CHECK("runtime none_filter_returns_nothing");
    HOLDFAST_CHECK("runtime any_filter_fetches_everything");
    queue_four();
    EXPECT_EQ(take_all({.tags = TagFilter::none()}), Names{});
    EXPECT_EQ(take_all({.tags = TagFilter::everything()}),
              (Names{"plain", "render", "pay", "tax"}));
}

TEST_P(ProviderTags, ATagStaysWithItsActivity) {
    HOLDFAST_CHECK("runtime tag_round_trip_preservation");
    HOLDFAST_CHECK("runtime tag_survives_abandon_and_refetch");
    HOLDFAST_CHECK("runtime tag_preserved_through_ack_orchestration_item");
    queue("a", {"render"}, {.tag = "gpu"});
    const auto first = taken("render", {.tags = TagFilter::only({"gpu"})});
    EXPECT_EQ(first.task.tag, "gpu");
    EXPECT_TRUE(abandon(first));
    EXPECT_FALSE(take()) << "it did not lose its tag on the way back";
    const auto second = taken("render", {.tags = TagFilter::everything()});
    EXPECT_EQ(second.task.tag, "gpu");
    EXPECT_EQ(second.attempt, 2);

    queue("b", {"plain"});
    EXPECT_EQ(taken("plain").task.tag, std::nullopt);
}

TEST_P(ProviderTags, RuntimesWithDifferentTagsShareOneQueue) {
    HOLDFAST_CHECK("runtime multi_runtime_tag_isolation");
    queue_four();
    const auto european = TagFilter::only({"eu"});
    const auto western = TagFilter::default_and({"eu", "us"});
    const auto graphical = TagFilter::only({"gpu"});
    EXPECT_EQ(taken("render", {.tags = graphical}).attempt, 1);
    EXPECT_FALSE(take({.tags = graphical}));
    EXPECT_EQ(taken("pay", {.tags = european}).attempt, 1);
    EXPECT_EQ(take_all({.tags = western}), (Names{"plain", "tax"})) << "eu's is taken";
    EXPECT_FALSE(take({.tags = TagFilter::everything()}));
}

TEST_P(ProviderTags, AFilterHasOneToFiveTags) {
    const auto refused = [](std::vector<std::string> tags) {
        return test::code_of([&] { (void)TagFilter::only(tags); }) == Code::invalid_argument &&
               test::code_of([&] { (void)TagFilter::default_and(tags); }) == Code::invalid_argument;
    };
    EXPECT_TRUE(refused({}));
    EXPECT_TRUE(refused({"1", "2", "3", "4", "5", "6"}));
    queue("a", {"five"}, {.tag = "5"});
    EXPECT_EQ(take_all({.tags = TagFilter::only({"1", "2", "3", "4", "5"})}), Names{"five"});
}

// A tag for each customer, and long work for many of them: the next one is seen all the same.
TEST_P(ProviderTags, ManyTagsThatAreBusyHideNoOther) {
    constexpr std::size_t customers = 70;
    begin("a", [&](ClaimedTurn& first) {
        for (std::size_t i = 0; i < customers; ++i) {
            first.schedules(
                first.next_event(), "long", {.tag = "customer-" + std::to_string(100 + i)});
        }
    });
    std::size_t busy = 0;
    for (Names some{""}; !some.empty(); busy += some.size()) {
        some = take_all({.lease = 1h, .tags = TagFilter::everything()});
    }
    EXPECT_EQ(busy, customers);
    queue("b", {"next"}, {.tag = "the last of all"});
    EXPECT_EQ(take_all({.tags = TagFilter::everything()}), Names{"next"});
}

TEST_P(ProviderTags, TagsAndSessionsBothMustFit) {
    queue("a", {"render"}, {.session = "s", .tag = "gpu"});
    const SessionClaim ann{.owner = "ann"};
    EXPECT_FALSE(take({.tags = TagFilter::only({"gpu"})}));
    EXPECT_FALSE(take({.session = ann}));
    EXPECT_TRUE(take({.tags = TagFilter::only({"gpu"}), .session = ann}));
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderTags, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

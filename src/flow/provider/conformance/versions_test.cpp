// Which dispatcher may replay what: an execution is pinned to the engine that wrote its first
// event, and histories that cannot be read are said to be so.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

constexpr Version v1{1, 0, 0};
constexpr Version v2{2, 0, 0};
constexpr Version v3{3, 0, 0};

ReplayVersions between(Version low, Version high) {
    return {.ranges = {{low, high}}};
}

class ProviderVersions : public ProviderStory {
protected:
    // Runs the first turn, pinned to an engine, and leaves a signal to be read.
    void pinned(const std::string& instance, Version engine) {
        begin(instance, [&](ClaimedTurn& first) { first.pins(engine); });
        signal(instance);
    }
    std::optional<ClaimedInstance> claim_by(const ReplayVersions& versions) {
        auto claims = provider.claim_instances({.versions = versions});
        return claims.empty() ? std::nullopt : std::optional(std::move(claims.front()));
    }
    ClaimedInstance claimed_by(const ReplayVersions& versions) {
        return found(claim_by(versions), "instance of these versions");
    }
    void damage(const std::string& instance) {
        tamper("UPDATE flow_history SET events = 'no history' WHERE instance_id = '" + instance +
               "'");
    }

    using Ids = std::vector<std::string>;
};

// --- claims by version --------------------------------------------------------------------------

TEST_P(ProviderVersions, AClaimTakesOnlyWhatItsDispatcherCanReplay) {
    HOLDFAST_CHECK("runtime fetch_with_filter_none_returns_any_item");
    HOLDFAST_CHECK("runtime fetch_with_compatible_filter_returns_item");
    HOLDFAST_CHECK("runtime fetch_with_incompatible_filter_skips_item");
    HOLDFAST_CHECK("runtime pinned_version_stored_via_ack_metadata");
    pinned("a", v2);
    EXPECT_FALSE(claim_by(between(v3, v3)));
    EXPECT_FALSE(claim_by(between(v1, v1)));
    const auto fitting = claimed_by(between(v1, v3));
    EXPECT_TRUE(provider.abandon_instance(fitting, 0ms, true));
    EXPECT_EQ(claimed("a").attempt, 1) << "without a filter, anything; and a skip is no attempt";
}

TEST_P(ProviderVersions, AClaimGoesPastWhatItCannotReplay) {
    HOLDFAST_CHECK("runtime fetch_filter_skips_incompatible_selects_compatible");
    HOLDFAST_CHECK("runtime fetch_filter_does_not_lock_skipped_instances");
    begin("a", [](ClaimedTurn& first) { first.pins(v3); });
    begin("b", [](ClaimedTurn& first) { first.pins(v1); });
    signal("a");
    db.advance_clock(1s);
    signal("b");
    EXPECT_EQ(claim_all(between(v1, v2)), Ids{"b"});
    EXPECT_EQ(claim_all(between(v3, v3)), Ids{"a"}) << "nobody holds what was skipped";
}

// Old and unreadable for this dispatcher, however many there are, must not starve what it can do.
TEST_P(ProviderVersions, ManyIncompatibleInstancesDoNotHideTheOnlyCompatibleOne) {
    for (int i = 0; i < 40; ++i) {
        start("new" + std::to_string(i));
    }
    std::vector<TurnCommit> turns;
    for (const auto& claim : provider.claim_instances({.count = 40})) {
        turns.push_back(turn(claim).pins(v3).sends(claim.instance, SignalMessage{}).commit);
    }
    ASSERT_EQ(turns.size(), 40U);
    (void)provider.commit_turns(turns);
    db.advance_clock(1s);
    start("old");
    EXPECT_EQ(claimed_by(between(v1, v1)).instance, "old");
}

TEST_P(ProviderVersions, WithoutAPinAnInstanceFitsEverybody) {
    HOLDFAST_CHECK("runtime fetch_filter_null_pinned_version_always_compatible");
    start("a");
    EXPECT_TRUE(claim_by(between(v3, v3))) << "nothing was written yet";
    begin("b");
    signal("b");
    tamper("UPDATE flow_instances SET engine = NULL WHERE instance_id = 'b'");
    EXPECT_EQ(claim_all(between(v3, v3)), Ids{"b"});
}

TEST_P(ProviderVersions, BothEndsOfARangeBelongToIt) {
    HOLDFAST_CHECK("runtime fetch_filter_boundary_versions");
    pinned("a", {1, 2, 3});
    EXPECT_FALSE(claim_by(between({1, 2, 4}, {9, 0, 0})));
    EXPECT_FALSE(claim_by(between({0, 0, 0}, {1, 2, 2})));
    EXPECT_FALSE(claim_by(between({1, 3, 0}, {1, 9, 0}))) << "compared as numbers, part by part";
    const auto low = claimed_by(between({1, 2, 3}, {9, 0, 0}));
    EXPECT_TRUE(provider.abandon_instance(low, 0ms, true));
    EXPECT_TRUE(claim_by(between({0, 0, 0}, {1, 2, 3})));
}

// A part above 999 must not spill into its neighbour.
TEST_P(ProviderVersions, LargePartsOfAVersionStayApart) {
    pinned("a", {1, 1500, 2500});
    EXPECT_FALSE(claim_by(between({2, 0, 0}, {3, 0, 0})));
    EXPECT_FALSE(claim_by(between({1, 1501, 0}, {1, 1503, 0})));
    EXPECT_TRUE(claim_by(between({1, 1500, 2500}, {1, 1500, 2500})));
}

// Any number of ranges, not only the first.
TEST_P(ProviderVersions, EveryRangeOfAFilterCounts) {
    HOLDFAST_CHECK("runtime fetch_single_range_only_uses_first_range");
    begin("a", [](ClaimedTurn& first) { first.pins(v1); });
    begin("b", [](ClaimedTurn& first) { first.pins(v2); });
    begin("c", [](ClaimedTurn& first) { first.pins(v3); });
    for (const char* id : {"a", "b", "c"}) {
        signal(id);
        db.advance_clock(1s);
    }
    EXPECT_EQ(claim_all(ReplayVersions{.ranges = {{v1, v1}, {v3, v3}}}), (Ids{"a", "c"}));
    EXPECT_EQ(claim_all(ReplayVersions{.ranges = {{v3, v3}, {v2, v2}}}), Ids{"b"});
}

TEST_P(ProviderVersions, AFilterMayHaveManyRanges) {
    pinned("a", v2);
    ReplayVersions many{.ranges = {}};
    for (int patch = 0; patch < 9; ++patch) {
        many.ranges.push_back({{0, 0, 2 * patch}, {0, 0, 2 * patch}});
    }
    EXPECT_FALSE(claim_by(many));
    many.ranges.push_back({v2, v2});
    EXPECT_TRUE(claim_by(many));
}

TEST_P(ProviderVersions, NoRangesMeanNothing) {
    HOLDFAST_CHECK("runtime filter_with_empty_supported_versions_returns_nothing");
    start("a");
    EXPECT_FALSE(claim_by({.ranges = {}}));
    EXPECT_EQ(claimed("a").attempt, 1);
}

// --- pins ---------------------------------------------------------------------------------------

TEST_P(ProviderVersions, APinStaysUntilTheRuntimeSaysOtherwise) {
    HOLDFAST_CHECK("runtime pinned_version_immutable_across_ack_cycles");
    HOLDFAST_CHECK("runtime ack_stores_pinned_version_via_metadata_update");
    HOLDFAST_CHECK("runtime provider_updates_pinned_version_when_told");
    start("a");  // The row is there before its pin.
    EXPECT_EQ(commit(turn(claimed("a")).pins(v2)), Committed::yes);
    proceed("a", [](ClaimedTurn& next) { next.schedules(2, "charge"); });
    signal("a");
    EXPECT_FALSE(claim_by(between(v3, v3)));
    const auto claim = claimed_by(between(v2, v2));

    EXPECT_EQ(commit(turn(claim).pins(v3)), Committed::yes);  // A turn that says so.
    signal("a");
    EXPECT_FALSE(claim_by(between(v2, v2)));
    EXPECT_TRUE(claim_by(between(v3, v3)));
}

TEST_P(ProviderVersions, AnExecutionDoesNotInheritThePinOfTheOneBefore) {
    HOLDFAST_CHECK("runtime continue_as_new_execution_gets_own_pinned_version");
    begin("a", [](ClaimedTurn& first) { first.pins(v3); });
    proceed("a", [](ClaimedTurn& last) { last.continues(); });
    // Event 1 of the new execution was written by this build, whatever began the one before.
    EXPECT_FALSE(claim_by(between(v3, v3)));
    EXPECT_EQ(claimed_by(between({0, 0, 0}, engine_version)).execution, 2U);
}

// --- histories that cannot be read --------------------------------------------------------------

// A claim does not read the history, so a history that is left out is never parsed, and a damaged
// one is found when it is loaded; the claim is held and has counted.
TEST_P(ProviderVersions, ADamagedHistoryIsFoundByThoseWhoMayReadIt) {
    HOLDFAST_CHECK("runtime fetch_corrupted_history_filtered_vs_unfiltered");
    HOLDFAST_CHECK("runtime fetch_filter_applied_before_history_deserialization");
    HOLDFAST_CHECK("runtime read_corrupted_history_returns_error");
    pinned("a", v2);
    damage("a");
    EXPECT_FALSE(claim_by(between(v1, v1)));
    EXPECT_EQ(claimed_by(between(v2, v2)).attempt, 1);
    const auto loaded = provider.load_history("a", 1);
    EXPECT_NE(loaded.error, "");
    EXPECT_TRUE(loaded.events.empty()) << "never a shorter history than the true one";
}

TEST_P(ProviderVersions, ADamagedEarlierExecutionIsAnErrorInWords) {
    HOLDFAST_CHECK("runtime read_with_execution_corrupted_history_returns_error");
    begin("a");
    tamper("UPDATE flow_history SET events = '{\"id\":1,\"kind\":\"from_the_future\"}'");
    renew_execution("a");
    EXPECT_NE(provider.load_history("a", 1).error, "");
    EXPECT_TRUE(provider.load_history("a", 1).events.empty());
    EXPECT_EQ(provider.load_history("a", 2).error, "");
    EXPECT_EQ(history("a", 2), std::vector<EventId>{1});
}

TEST_P(ProviderVersions, EveryTryAtADamagedHistoryCounts) {
    HOLDFAST_CHECK("runtime fetch_deserialization_error_increments_attempt_count");
    HOLDFAST_CHECK("runtime fetch_deserialization_error_eventually_reaches_poison");
    pinned("a", v2);
    damage("a");
    for (int attempt = 1; attempt <= 12; ++attempt) {  // Past the usual limit of ten.
        const auto claim = claimed("a");
        EXPECT_EQ(claim.attempt, attempt);
        EXPECT_NE(provider.load_history("a", 1).error, "");
        EXPECT_TRUE(provider.abandon_instance(claim, 0ms, false));
    }
}

TEST_P(ProviderVersions, AnInstanceWithADamagedHistoryCanBeEnded) {
    HOLDFAST_CHECK("runtime ack_appends_event_to_corrupted_history");
    pinned("a", v2);
    damage("a");
    EXPECT_EQ(commit(turn(claimed("a")).fails("the history cannot be read")), Committed::yes);
    EXPECT_EQ(info("a").status, Status::failed);
    EXPECT_EQ(info("a").last_event, 2U);
    EXPECT_EQ(provider.load_history("a", 1, 1).events.size(), 1U) << "the new event can be read";
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderVersions, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

// The keys and values of an instance. One row has both what readers see and what the value was when
// the current execution began; replay starts from the latter, because running the code again makes
// the execution's own writes once more.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

using Names = std::vector<std::string>;

class ProviderKv : public ProviderStory {
protected:
    std::optional<std::string> seed(const std::string& instance,
                                    ExecutionId execution,
                                    const std::string& key) {
        const auto kv = provider.load_history(instance, execution).kv;
        const auto found = kv.find(key);
        return found == kv.end() ? std::nullopt : std::optional(found->second.json);
    }
};

// --- reading and writing ------------------------------------------------------------------------

TEST_P(ProviderKv, WhatATurnWroteCanBeRead) {
    HOLDFAST_CHECK("runtime kv_set_and_get");
    HOLDFAST_CHECK("runtime kv_overwrite");
    HOLDFAST_CHECK("runtime kv_get_nonexistent");
    HOLDFAST_CHECK("runtime kv_get_unknown_instance");
    start("a");
    const auto claim = claimed("a");
    EXPECT_EQ(commit(turn(claim).sets("k", "one")), Committed::yes);
    EXPECT_EQ(value("a", "k"), quote("one"));
    EXPECT_GE(provider.kv_all("a").at("k").updated, claim.now);
    EXPECT_EQ(value("a", "other"), std::nullopt);
    EXPECT_EQ(value("nobody", "k"), std::nullopt);
    EXPECT_TRUE(provider.kv_all("nobody").empty());

    db.advance_clock(1h);
    proceed("a", [](ClaimedTurn& next) { next.sets("k", "two").sets("k", "three"); });
    EXPECT_EQ(value("a", "k"), quote("three")) << "the last write of a turn";
    EXPECT_GE(provider.kv_all("a").at("k").updated - claim.now, 1h);
}

TEST_P(ProviderKv, AnErasedKeyIsGone) {
    HOLDFAST_CHECK("runtime kv_clear_single");
    HOLDFAST_CHECK("runtime kv_clear_nonexistent_key");
    begin("a", [](ClaimedTurn& first) { first.sets("k", "1").sets("l", "2"); });
    proceed("a", [](ClaimedTurn& next) { next.erases("k").erases("never there"); });
    EXPECT_EQ(value("a", "k"), std::nullopt);
    EXPECT_EQ(keys("a"), Names{"l"});
}

TEST_P(ProviderKv, AClearTakesAllKeysThatWereThere) {
    HOLDFAST_CHECK("runtime kv_clear_all");
    HOLDFAST_CHECK("runtime kv_set_after_clear");
    begin("a", [](ClaimedTurn& first) { first.sets("k", "1").sets("l", "2"); });
    proceed("a", [](ClaimedTurn& next) { next.clears(); });
    EXPECT_TRUE(keys("a").empty());
    proceed("a", [](ClaimedTurn& next) { next.sets("old", "3").clears().sets("new", "4"); });
    EXPECT_EQ(keys("a"), Names{"new"}) << "in the order of the code";
    proceed("a", [](ClaimedTurn& next) { next.erases("new").sets("new", "5"); });
    EXPECT_EQ(value("a", "new"), quote("5"));
}

TEST_P(ProviderKv, KeysAndValuesAreAnyText) {
    HOLDFAST_CHECK("runtime kv_empty_value");
    HOLDFAST_CHECK("runtime kv_large_value");
    HOLDFAST_CHECK("runtime kv_special_chars_in_key");
    const std::string large(64UL * 1024, 'x');
    const Names odd{"with space", "dots.and/slashes", "%_\\'\"", "Zürich 東京", ""};
    begin("a", [&](ClaimedTurn& first) {
        first.sets("empty", "").sets("large", large);
        for (const auto& key : odd) {
            first.sets(key, "of " + key);
        }
    });
    EXPECT_EQ(value("a", "empty"), quote("")) << "empty is not absent";
    EXPECT_EQ(value("a", "large"), quote(large)) << "limits are the runtime's";
    for (const auto& key : odd) {
        EXPECT_EQ(value("a", key), quote("of " + key)) << key;
    }
    EXPECT_EQ(keys("a").size(), 2 + odd.size());
}

TEST_P(ProviderKv, InstancesDoNotSeeEachOthersKeys) {
    HOLDFAST_CHECK("runtime kv_instance_isolation");
    HOLDFAST_CHECK("runtime kv_clear_isolation");
    begin("a", [](ClaimedTurn& first) { first.sets("k", "of a"); });
    begin("b", [](ClaimedTurn& first) { first.sets("k", "of b"); });
    EXPECT_EQ(value("a", "k"), quote("of a"));
    proceed("a", [](ClaimedTurn& next) { next.clears(); });
    EXPECT_EQ(value("a", "k"), std::nullopt);
    EXPECT_EQ(value("b", "k"), quote("of b"));
}

// --- what replay starts from --------------------------------------------------------------------

TEST_P(ProviderKv, ReplayStartsFromWhatEarlierExecutionsLeft) {
    HOLDFAST_CHECK("runtime kv_snapshot_in_fetch");
    HOLDFAST_CHECK("runtime kv_snapshot_empty");
    HOLDFAST_CHECK("runtime kv_snapshot_cross_execution");
    HOLDFAST_CHECK("runtime kv_delta_snapshot_excludes_current_execution");
    HOLDFAST_CHECK("runtime kv_delta_snapshot_includes_completed_execution");
    HOLDFAST_CHECK("runtime kv_delta_merged_on_can");
    begin("a", [](ClaimedTurn& first) { first.sets("k", "1"); });
    EXPECT_TRUE(seeds("a", 1).empty()) << "its own writes are made again by replay";
    EXPECT_EQ(keys("a"), Names{"k"});

    renew_execution("a");
    EXPECT_EQ(seed("a", 2, "k"), quote("1"));
    proceed("a", [](ClaimedTurn& next) { next.sets("k", "2").sets("l", "3"); });
    EXPECT_EQ(seed("a", 2, "k"), quote("1")) << "as it was when the execution began";
    EXPECT_EQ(seeds("a", 2), Names{"k"});

    renew_execution("a");
    EXPECT_EQ(seed("a", 3, "k"), quote("2"));
    EXPECT_EQ(seeds("a", 3), (Names{"k", "l"}));
}

TEST_P(ProviderKv, TheWritesOfTheLastTurnBelongToItsExecution) {
    begin("a", [](ClaimedTurn& only) { only.sets("k", "1").continues(); });
    EXPECT_EQ(seed("a", 2, "k"), quote("1"));
}

TEST_P(ProviderKv, WhatWasErasedIsNoSeedOfTheNextExecution) {
    HOLDFAST_CHECK("runtime kv_snapshot_after_clear_single");
    HOLDFAST_CHECK("runtime kv_snapshot_after_clear_all");
    begin("a", [](ClaimedTurn& first) { first.sets("k", "1").sets("l", "2"); });
    renew_execution("a");
    proceed("a", [](ClaimedTurn& next) { next.erases("k"); });
    renew_execution("a");
    EXPECT_EQ(seeds("a", 3), Names{"l"});
    proceed("a", [](ClaimedTurn& next) { next.clears(); });
    renew_execution("a");
    EXPECT_TRUE(seeds("a", 4).empty());
    EXPECT_EQ(rows("flow_kv", "a"), 0) << "no row stays for a key that nobody has";
}

TEST_P(ProviderKv, ReadersSeeTheNewestReplayTheOldest) {
    HOLDFAST_CHECK("runtime kv_delta_client_reads_merged");
    HOLDFAST_CHECK("runtime kv_delta_tombstone_overrides_store");
    HOLDFAST_CHECK("runtime kv_delta_clear_all_tombstones_store");
    HOLDFAST_CHECK("runtime instance_stats_kv_merged");
    begin("a", [](ClaimedTurn& first) { first.sets("kept", "1").sets("gone", "2"); });
    renew_execution("a");
    proceed("a", [](ClaimedTurn& next) { next.erases("gone").sets("new", "3"); });
    EXPECT_EQ(keys("a"), (Names{"kept", "new"}));
    EXPECT_EQ(value("a", "gone"), std::nullopt);
    EXPECT_EQ(seeds("a", 2), (Names{"gone", "kept"})) << "replay erases it once more";

    proceed("a", [](ClaimedTurn& next) { next.clears(); });
    EXPECT_TRUE(keys("a").empty());
    EXPECT_EQ(value("a", "kept"), std::nullopt);
    EXPECT_EQ(seeds("a", 2), (Names{"gone", "kept"}));
}

// The values of an instance stay when it ends. Its seeds stay, too, so that an ended history can be
// replayed as it was.
TEST_P(ProviderKv, ValuesOutliveTheirInstancesEnd) {
    HOLDFAST_CHECK("runtime kv_delta_merged_on_completion");
    HOLDFAST_CHECK("runtime instance_stats_kv");
    HOLDFAST_CHECK("runtime instance_stats_kv_delta_only");
    begin("a", [](ClaimedTurn& first) { first.sets("k", "1").sets("l", "2"); });
    EXPECT_EQ(provider.kv_all("a").size(), 2U);
    proceed("a", [](ClaimedTurn& last) { last.erases("l").sets("m", "3").completes(); });
    EXPECT_EQ(keys("a"), (Names{"k", "m"}));
    EXPECT_TRUE(seeds("a", 1).empty());
    begin("b", [](ClaimedTurn& only) { only.sets("k", "1").fails(); });
    EXPECT_EQ(keys("b"), Names{"k"});
}

// --- over executions and pruning ----------------------------------------------------------------

TEST_P(ProviderKv, ALaterExecutionsValueWins) {
    HOLDFAST_CHECK("runtime kv_cross_execution_overwrite");
    HOLDFAST_CHECK("runtime kv_cross_execution_remove_readd");
    begin("a", [](ClaimedTurn& first) { first.sets("k", "1").sets("l", "1"); });
    renew_execution("a");
    proceed("a", [](ClaimedTurn& next) { next.sets("k", "2").erases("l"); });
    EXPECT_EQ(value("a", "k"), quote("2"));
    renew_execution("a");
    EXPECT_EQ(value("a", "l"), std::nullopt);
    proceed("a", [](ClaimedTurn& next) { next.sets("l", "3"); });
    EXPECT_EQ(value("a", "l"), quote("3"));
    EXPECT_EQ(seeds("a", 3), Names{"k"});
}

TEST_P(ProviderKv, PruningExecutionsTakesNoKeys) {
    HOLDFAST_CHECK("runtime kv_execution_id_tracking");
    HOLDFAST_CHECK("runtime kv_prune_preserves_overwritten");
    HOLDFAST_CHECK("runtime kv_prune_preserves_all_keys");
    HOLDFAST_CHECK("runtime kv_prune_current_execution_protected");
    HOLDFAST_CHECK("runtime kv_delta_prune_untouched_key_survives");
    begin("a", [](ClaimedTurn& first) { first.sets("rewritten", "1").sets("untouched", "1"); });
    EXPECT_EQ(provider.prune("a", {}).executions, 0);
    EXPECT_EQ(keys("a").size(), 2U);
    renew_execution("a");
    proceed("a", [](ClaimedTurn& next) { next.sets("rewritten", "2"); });
    renew_execution("a");
    EXPECT_EQ(provider.prune("a", {}).executions, 2);
    EXPECT_EQ(value("a", "rewritten"), quote("2"));
    EXPECT_EQ(value("a", "untouched"), quote("1"));
    EXPECT_EQ(seeds("a", 3), (Names{"rewritten", "untouched"}));
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderKv, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

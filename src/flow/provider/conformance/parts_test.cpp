// What has more rows than a transaction may delete goes in several, and can be taken up again.
#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

SqlProviderOptions with_rows(int rows) {
    SqlProviderOptions options = quick();
    options.rows_per_delete = rows;
    return options;
}

class ProviderParts : public ProviderStory {
protected:
    static constexpr int rows_max = 6;
    SqlProvider small{db, with_rows(rows_max)};

    // So many turns, and a row of history for each; then it waits.
    void grow(const std::string& instance, int turns) {
        begin(instance);
        for (int i = 1; i < turns; ++i) {
            proceed(instance, [](ClaimedTurn& next) {
                next.records(next.next_event(), SignalReceived{"go", text("now")});
            });
        }
    }
    // The number of rows that the largest of its transactions has deleted.
    template <class Work>
    std::int64_t commits_of(Work&& work) {
        const auto before = db->driver_stats().commits;
        work();
        return db->driver_stats().commits - before;
    }
    [[nodiscard]] std::int64_t rows_everywhere() const {
        std::int64_t all = 0;
        for (const char* table : {"flow_instances",
                                  "flow_executions",
                                  "flow_history",
                                  "flow_mailboxes",
                                  "flow_messages",
                                  "flow_activities",
                                  "flow_kv",
                                  "flow_attributes"}) {
            all += db.number(std::string("SELECT COUNT(*) FROM ") + table);
        }
        return all;
    }
    // From now on no transaction can delete more rows of history than that.
    void forbid_more_than(int rows) {
        if (GetParam().backend == test::Backend::postgres) {
            db.execute(
                "CREATE FUNCTION too_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "IF (SELECT count(*) FROM gone) > " +
                std::to_string(rows) +
                " THEN RAISE EXCEPTION 'too many rows'; END IF; RETURN NULL; END $$");
            db.execute(
                "CREATE TRIGGER too_many AFTER DELETE ON flow_history "
                "REFERENCING OLD TABLE AS gone FOR EACH STATEMENT "
                "EXECUTE FUNCTION too_many()");
        }
    }
};

TEST_P(ProviderParts, ALargeInstanceIsDeletedInSeveralTransactions) {
    grow("a", 20);
    finish("a");
    forbid_more_than(rows_max);
    DeleteCounts counts;
    EXPECT_GE(commits_of([&] { counts = small.delete_tree("a", false); }), 20 / rows_max);
    EXPECT_EQ(counts.instances, 1);
    EXPECT_EQ(counts.executions, 1);
    EXPECT_EQ(counts.events, 21);
    EXPECT_EQ(rows_everywhere(), 0);
}

TEST_P(ProviderParts, AllThatBelongsToItIsCountedAndGone) {
    begin("a", [](ClaimedTurn& first) {
        for (EventId event = 2; event < 12; ++event) {
            first.schedules(event, "charge");
        }
        first.sets("key", "value");
    });
    for (int i = 0; i < 9; ++i) {
        renew_execution("a");
    }
    for (int i = 0; i < 10; ++i) {
        signal("a");
    }
    const DeleteCounts counts = small.delete_tree("a", true);
    EXPECT_EQ(counts.instances, 1);
    EXPECT_EQ(counts.executions, 10);
    EXPECT_EQ(counts.messages, 10);
    EXPECT_EQ(rows_everywhere(), 0);
}

// The worst moment: some rows are gone, and the process is, too.
TEST_P(ProviderParts, WhatWasBegunIsFinishedByWhoeverCallsAgain) {
    grow("a", 20);
    finish("a");
    tamper("DELETE FROM flow_history WHERE instance_id = 'a' AND first_event < 10");
    EXPECT_EQ(small.delete_tree("a", false).instances, 1);
    EXPECT_EQ(rows_everywhere(), 0);
}

TEST_P(ProviderParts, OneThatRunsIsEndedBeforeItIsTakenApart) {
    grow("a", 20);
    signal("a");
    const ClaimedInstance held = claimed("a");
    EXPECT_EQ(test::code_of([&] { small.delete_tree("a", false); }), Code::condition_failed);
    EXPECT_EQ(history("a").size(), 20U);
    EXPECT_EQ(small.delete_tree("a", true).instances, 1);
    EXPECT_EQ(commit(turn(held)), Committed::lost) << "nobody may bring it back";
    EXPECT_EQ(rows_everywhere(), 0);
}

TEST_P(ProviderParts, ATreeGoesChildrenFirst) {
    begin("a", [](ClaimedTurn& first) {
        for (int i = 0; i < 8; ++i) {
            first.starts_child(first.next_event(), "a/" + std::to_string(i));
        }
    });
    EXPECT_EQ(small.delete_tree("a", true).instances, 9);
    EXPECT_EQ(rows_everywhere(), 0);
}

TEST_P(ProviderParts, ARestartReplacesALargeOne) {
    grow("a", 20);
    const Started started = small.start(
        {.instance = "a", .start = start_of("order"), .duplicate = DuplicatePolicy::restart});
    EXPECT_TRUE(started.created);
    EXPECT_EQ(info("a").status, Status::pending);
    EXPECT_TRUE(history("a").empty());
}

// Each of them is small, and all together they are too many.
TEST_P(ProviderParts, ARestartReplacesALargeFamily) {
    constexpr int children = 8;
    begin("a", [](ClaimedTurn& first) {
        for (int i = 0; i < children; ++i) {
            first.starts_child(first.next_event(), "a/" + std::to_string(i));
        }
    });
    const std::int64_t commits = commits_of([&] {
        EXPECT_TRUE(small
                        .start({.instance = "a",
                                .start = start_of("order"),
                                .duplicate = DuplicatePolicy::restart})
                        .created);
    });
    EXPECT_GT(commits, children);
    EXPECT_EQ(info("a").status, Status::pending);
    EXPECT_EQ(provider.tree("a").size(), 1U);
}

TEST_P(ProviderParts, PruningGoesInPartsToo) {
    grow("a", 20);
    for (int i = 0; i < 3; ++i) {
        renew_execution("a");
    }
    forbid_more_than(rows_max);
    const DeleteCounts counts = small.prune("a", {});
    EXPECT_EQ(counts.executions, 3);
    EXPECT_EQ(counts.events, 21 + 2 + 2);
    EXPECT_EQ(provider.executions("a").size(), 1U);
    EXPECT_EQ(rows("flow_history", "a"), 1);
}

TEST_P(ProviderParts, EverybodysOldExecutionsArePrunedTogether) {
    for (const char* id : {"a", "b"}) {
        begin(id);
        renew_execution(id);
    }
    const Moment later = provider.now() + 1min;
    EXPECT_EQ(provider.prune_ended(provider.now() - 1h, 10).executions, 0);
    EXPECT_EQ(provider.prune_ended(later, 1).executions, 1);
    EXPECT_EQ(provider.prune_ended(later, 10).executions, 1);
    EXPECT_EQ(provider.prune_ended(later, 10).executions, 0);
    EXPECT_EQ(info("a").status, Status::running);
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderParts, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

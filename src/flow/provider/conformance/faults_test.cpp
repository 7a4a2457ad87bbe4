// The way to the database breaks, or the database meets a conflict, at every moment there is. What
// the provider answers must be what has happened.
#include <thread>

#include "provider/test/provider_fixture.hpp"

#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast::flow::tests {

namespace {

using test::Fault;
using test::Side;

// One connection, by way of the proxy.
class ProviderFaults : public testing::TestWithParam<Fault> {
protected:
    ClaimedInstance started(const std::string& instance) {
        EXPECT_TRUE(
            provider.start({.instance = instance, .start = StartMessage{"order", "", {}, {}}})
                .created);
        return provider.claim_instances({.lease = 1h}).at(0);
    }
    // A turn of an instance that exists, or one that is its start.
    ClaimedTurn first_turn(const std::string& instance, bool creates) {
        if (!creates) {
            return turn(started(instance)).schedules(2, "charge");
        }
        ClaimedInstance nobody;
        nobody.instance = instance;
        nobody.messages.push_back({.message = {.body = StartMessage{"order", "", {}, {}}}});
        ClaimedTurn first = turn(nobody).schedules(2, "charge");
        first.commit.consumed.clear();
        first.commit.leased = false;
        first.commit.creates = true;
        return first;
    }
    // Wherever the connection breaks: yes means once, lost means never, and a failure means once
    // at most. How often it broke.
    int break_everywhere(bool creates);
    Committed commit(const ClaimedTurn& turn) {
        return provider.commit_turns(std::span(&turn.commit, 1)).at(0);
    }
    [[nodiscard]] std::int64_t activities_of(const std::string& instance) const {
        return direct.number("SELECT COUNT(*) FROM flow_activities WHERE instance_id = '" +
                             instance + "'");
    }

    test::Database direct{test::Backend::postgres, schema_part()};
    test::FaultProxy proxy{test::shared_postgres()};
    sql::Database through{proxy.address().url(direct.name()) + "&pool=1", direct.options()};
    SqlProvider provider{through, quick()};
};

// The worst moment of a turn: it is in the database, and its runtime does not know.
TEST_P(ProviderFaults, ACommittedTurnWhoseAnswerIsLostIsKnownToBeCommitted) {
    HOLDFAST_CHECK("runtime +commit_retried_after_lost_answer");
    const ClaimedTurn first = turn(started("a")).schedules(2, "charge");
    proxy.arm({.from = Side::server, .type = 'C', .containing = "COMMIT"}, GetParam());
    EXPECT_EQ(commit(first), Committed::yes);
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s))) << "or nothing was tested";
    EXPECT_EQ(activities_of("a"), 1);
    EXPECT_EQ(provider.load_history("a", 1).events.size(), 2U);
    EXPECT_TRUE(provider.peek_instance("a", first.commit.next_token));
}

TEST_P(ProviderFaults, ATurnWhoseCommitNeverArrivedIsTriedAgain) {
    const ClaimedTurn first = turn(started("a")).schedules(2, "charge");
    proxy.arm({.from = Side::client, .containing = "COMMIT"}, Fault::cut);
    EXPECT_EQ(commit(first), Committed::yes);
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s))) << "or nothing was tested";
    EXPECT_EQ(activities_of("a"), 1);
    EXPECT_EQ(provider.load_history("a", 1).events.size(), 2U);
}

TEST_P(ProviderFaults, AnEndedActivityWhoseAnswerIsLostHasEndedOnce) {
    ASSERT_EQ(commit(turn(started("a")).schedules(2, "charge")), Committed::yes);
    const auto held = provider.claim_activities({}).at(0);
    const ActivityEnd end{held.task.key, held.token, ActivityAnswer{2, text("result")}};
    proxy.arm({.from = Side::server, .type = 'C', .containing = "COMMIT"}, GetParam());
    EXPECT_EQ(provider.end_activities(std::span(&end, 1)), std::vector{true});
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s))) << "or nothing was tested";
    EXPECT_EQ(activities_of("a"), 0);
    EXPECT_EQ(provider.claim_instances({}).at(0).messages.size(), 1U);
}

TEST_P(ProviderFaults, AnActivityThatNobodyBeganHasFailedOnceThoughTheAnswerIsLost) {
    ASSERT_EQ(commit(turn(started("a")).schedules(2, "charge")), Committed::yes);
    const ActivityEnd end{{"a", 1, 2}, Uuid{}, ActivityAnswer{2, FailureInfo{.type = "Late"}}};
    proxy.arm({.from = Side::server, .type = 'C', .containing = "COMMIT"}, GetParam());
    EXPECT_EQ(provider.end_activities(std::span(&end, 1)), std::vector{true});
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s))) << "or nothing was tested";
    EXPECT_EQ(activities_of("a"), 0);
    EXPECT_EQ(provider.claim_instances({}).at(0).messages.size(), 1U);
}

// Its end did not arrive, and before that was found out, another worker has begun it.
TEST_P(ProviderFaults, AnActivityThatARivalBeganMeanwhileHasNotFailed) {
    ASSERT_EQ(commit(turn(started("a")).schedules(2, "charge")), Committed::yes);
    const ActivityEnd end{{"a", 1, 2}, Uuid{}, ActivityAnswer{2, FailureInfo{.type = "Late"}}};
    proxy.arm({.from = Side::client, .containing = "COMMIT"}, Fault::stall);
    std::vector<bool> ended;
    std::jthread ending([&] { ended = provider.end_activities(std::span(&end, 1)); });
    ASSERT_TRUE(proxy.wait_struck(Deadline::after(30s)));
    direct.execute(
        "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()");
    SqlProvider rival(direct, quick());
    EXPECT_EQ(rival.claim_activities({.lease = 1h}).size(), 1U);
    proxy.release();
    ending.join();
    EXPECT_EQ(ended, std::vector{false});
    EXPECT_EQ(activities_of("a"), 1);
}

TEST_P(ProviderFaults, AResetWhoseAnswerIsLostHasHappenedOnce) {
    const ClaimedTurn first = turn(started("a")).schedules(2, "charge");
    ASSERT_EQ(commit(first), Committed::yes);
    const ResetInstance reset{
        .instance = "a",
        .execution = 1,
        .last_event = 2,
        .next = {.execution = 2, .version = "1.0.0", .events = {first.commit.events.front()}}};
    proxy.arm({.from = Side::server, .type = 'C', .containing = "COMMIT"}, GetParam());
    EXPECT_TRUE(provider.reset(reset));
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s))) << "or nothing was tested";
    EXPECT_EQ(activities_of("a"), 0) << "what the execution before waited for is given up";
    EXPECT_EQ(provider.load_history("a", 2).events.size(), 1U);
    EXPECT_FALSE(provider.reset(reset)) << "somebody else's, to the same point, comes too late";
    EXPECT_EQ(direct.number("SELECT COUNT(*) FROM flow_executions"), 1);
}

TEST_P(ProviderFaults, AStartWhoseAnswerIsLostIsNotItsOwnDuplicate) {
    proxy.arm({.from = Side::server, .type = 'C', .containing = "COMMIT"}, GetParam());
    const Started started =
        provider.start({.instance = "a", .start = StartMessage{"order", "", {}, {}}});
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s))) << "or nothing was tested";
    EXPECT_TRUE(started.created);
    EXPECT_TRUE(provider.peek_instance("a", started.token));
    EXPECT_EQ(provider.claim_instances({}).at(0).messages.size(), 1U);
}

// The token was lost before, and a broken connection must not turn that into a yes.
TEST_P(ProviderFaults, ALostTurnStaysLostWhenTheConnectionBreaks) {
    const auto claim = started("a");
    direct.advance_clock(1h);
    const auto rival = provider.claim_instances({.lease = 1h});
    ASSERT_EQ(rival.size(), 1U);
    proxy.arm({.from = Side::server, .type = 'Z'}, GetParam());
    std::optional<Committed> answer;
    const auto code = test::code_of([&] { answer = commit(turn(claim).schedules(2, "charge")); });
    EXPECT_TRUE(code == Code::unavailable || answer == Committed::lost);
    EXPECT_TRUE(provider.load_history("a", 1).events.empty());
    EXPECT_EQ(commit(turn(rival[0])), Committed::yes);
}

int ProviderFaults::break_everywhere(bool creates) {
    int struck = 0;
    for (const Side side : {Side::client, Side::server}) {
        for (int nth = 1;; ++nth) {
            const std::string id = (side == Side::client ? "c" : "s") + std::to_string(nth);
            const ClaimedTurn first = first_turn(id, creates);
            proxy.arm({.from = side, .nth = nth}, GetParam());
            std::optional<Committed> answer;
            const auto code = test::code_of([&] { answer = commit(first); });
            const bool hit = proxy.wait_struck(Deadline::after(0s));
            proxy.disarm();

            const auto activities = activities_of(id);
            const auto events = provider.load_history(id, 1).events.size();
            EXPECT_EQ(events, activities == 0 ? 0U : 2U) << id << ": all of it or nothing";
            EXPECT_LE(activities, 1) << id;
            EXPECT_NE(answer, Committed::lost) << id << ": nobody has taken it";
            EXPECT_NE(answer, Committed::rejected) << id;
            if (answer == Committed::yes) {
                EXPECT_EQ(activities, 1) << id;
            } else {
                EXPECT_EQ(code, Code::unavailable) << id;
            }
            if (!hit) {
                break;
            }
            ++struck;
        }
    }
    return struck;
}

TEST_P(ProviderFaults, NoBreakAnywhereMakesATurnUntrue) {
    EXPECT_GT(break_everywhere(false), 10) << "or nothing was tested";
}

TEST_P(ProviderFaults, NoBreakAnywhereMakesAFirstTurnThatIsTheStartUntrue) {
    EXPECT_GT(break_everywhere(true), 10) << "or nothing was tested";
}

INSTANTIATE_TEST_SUITE_P(Every,
                         ProviderFaults,
                         testing::Values(Fault::cut, Fault::lose_answer),
                         [](const auto& fault) {
                             return fault.param == Fault::cut ? "cut" : "lose_answer";
                         });

// --- conflicts ----------------------------------------------------------------------------------

class ProviderConflicts : public ProviderStory {
protected:
    // From here on, the n-th row that anybody changes meets a conflict; each is counted once.
    void conflict_at(int nth) {
        tamper("ALTER SEQUENCE conflicts_by_row RESTART; UPDATE plan SET nth = " +
               std::to_string(nth));
    }
    [[nodiscard]] bool has_struck(int nth) const {
        return db.number("SELECT last_value FROM conflicts_by_row") >= nth;
    }
    void plan_conflicts() {
        db.execute(
            "CREATE SEQUENCE conflicts_by_row;"
            "CREATE TABLE plan (nth bigint NOT NULL); INSERT INTO plan VALUES (0);"
            "CREATE FUNCTION conflict_by_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF nextval('conflicts_by_row') = (SELECT nth FROM plan) THEN"
            "  RAISE EXCEPTION 'a conflict on purpose' USING ERRCODE = '40001';"
            " END IF;"
            " RETURN NULL; END $$;"
            "DO $$ DECLARE t text; BEGIN"
            " FOR t IN SELECT tablename FROM pg_tables"
            "  WHERE schemaname = current_schema() AND tablename LIKE 'flow\\_%' LOOP"
            "  EXECUTE 'CREATE TRIGGER conflict_by_row AFTER INSERT OR UPDATE OR DELETE ON '"
            "   || t || ' FOR EACH ROW EXECUTE FUNCTION conflict_by_row()';"
            " END LOOP; END $$");
    }
    // A small life: started, claimed, advanced, signalled, worked for, continued, ended, deleted.
    void live(const std::string& id) {
        ASSERT_TRUE(start(id).created);
        ClaimedTurn first =
            turn(claimed(id)).schedules(2, "charge").schedules(3, "ship").sets("k", "v");
        ASSERT_EQ(commit(first.starts_child(4, id + "/kid").says("begun")), Committed::yes);
        ASSERT_TRUE(end(taken("charge")));
        ASSERT_EQ(signal(id), Delivery::delivered);
        const auto both = provider.claim_instances({.count = 5});
        ASSERT_EQ(both.size(), 2U);
        std::vector<TurnCommit> turns;
        for (const auto& claim : both) {
            EXPECT_EQ(claim.attempt, 1);
            ClaimedTurn next = turn(claim);
            claim.instance == id ? next.cancels(3).continues() : next.completes();
            turns.push_back(next.commit);
        }
        ASSERT_EQ(provider.commit_turns(turns), (std::vector{Committed::yes, Committed::yes}));
        ASSERT_TRUE(provider.abandon_instance(claimed(id), 0ms, true));
        ASSERT_EQ(commit(turn(claimed(id)).completes()), Committed::yes);
        EXPECT_EQ(history(id, 1), (std::vector<EventId>{1, 2, 3, 4, 5}));
        EXPECT_EQ(history(id, 2), (std::vector<EventId>{1, 2}));
        EXPECT_EQ(info(id).status_version, 1);
        const DeleteCounts counts = provider.delete_tree(id, false);
        EXPECT_EQ(counts.instances, 2);
        EXPECT_EQ(counts.executions, 3);
        EXPECT_EQ(counts.events, 5 + 2 + 2);
        EXPECT_EQ(provider.stats().activities, 0);
        EXPECT_EQ(provider.stats().messages, 0);
    }
};

// The whole suite also runs with a conflict at every commit; this shows that there are any.
TEST_P(ProviderConflicts, EveryCommitIsTriedAgainAndChangesNoAnswer) {
    HOLDFAST_CHECK("runtime +conflicts_at_every_commit");
    live("a");
    EXPECT_GE(db.number("SELECT last_value FROM conflicts"), 2 * 10);
}

// And at every row that is changed on the way there.
class ProviderRowConflicts : public ProviderConflicts {};

TEST_P(ProviderRowConflicts, AConflictAtAnyRowChangesNoAnswer) {
    HOLDFAST_CHECK("runtime +conflicts_at_every_commit");
    plan_conflicts();
    for (int nth = 1;; ++nth) {
        conflict_at(nth);
        live("a" + std::to_string(nth));
        ASSERT_FALSE(HasFatalFailure()) << "with a conflict at row " << nth;
        if (!has_struck(nth)) {
            EXPECT_GT(nth, 40) << "or little was tested";
            break;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Postgres,
                         ProviderConflicts,
                         testing::Values(Setting{test::Backend::postgres, 2}),
                         setting_name);
INSTANTIATE_TEST_SUITE_P(Postgres,
                         ProviderRowConflicts,
                         testing::Values(Setting{test::Backend::postgres}),
                         setting_name);

}  // namespace

}  // namespace holdfast::flow::tests

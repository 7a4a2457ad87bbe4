// Several keys at once, and what administrators do: list, force, purge, repair. And what it costs.
#include "statements/statements.hpp"
#include "test/lock_fixture.hpp"

#include <holdfast/base/log_capture.hpp>
#include <holdfast/lock/guard.hpp>
#include <holdfast/lock/key.hpp>

namespace holdfast::lock::tests {
namespace {

using Keys = std::vector<std::string>;

class LockGroups : public LockStory {};

TEST_P(LockGroups, AllOrNone) {
    const Grant ann = take("b");
    EXPECT_TRUE(std::holds_alternative<Busy>(locks.acquire_all(Keys{"c", "a", "b"}, 10s)));
    EXPECT_FALSE(locks.is_locked("a"));
    EXPECT_FALSE(locks.is_locked("c"));
    EXPECT_TRUE(locks.release(ann.lock_id).ok);

    auto group = std::get<GroupGrant>(locks.acquire_all(Keys{"c", "a", "b"}, 10s));
    ASSERT_EQ(group.grants.size(), 3U);
    EXPECT_EQ(group.grants[0].first, "a") << "in the order of the keys";
    EXPECT_EQ(group.grants[2].first, "c");
    EXPECT_GT(group.grants[1].second.fence, ann.fence) << "each key by its own counter";
    for (const auto& [key, grant] : group.grants) {
        EXPECT_EQ(locks.find_raw(key).value().lock_id, grant.lock_id);
        EXPECT_TRUE(is_busy(locks.acquire(key, 1s)));
    }
    EXPECT_EQ(db.number("SELECT count(DISTINCT group_id) FROM holdfast_locks"), 1);
    EXPECT_EQ(locks.release_all(group), 3U);
    EXPECT_EQ(locks.release_all(group), 0U);
    EXPECT_EQ(locks.list().size(), 0U);
}

TEST_P(LockGroups, AreExtendedTogetherOrNotAtAll) {
    auto group = std::get<GroupGrant>(locks.acquire_all(Keys{"a", "b"}, 10s));
    const ServerTime first = group.grants[0].second.expires_at;
    EXPECT_TRUE(locks.extend_all(group, 60s));
    EXPECT_GT(group.grants[0].second.expires_at, first);
    EXPECT_EQ(group.grants[1].second.expires_at, locks.find("b").value().expires_at);
    EXPECT_TRUE(locks.force_release("b", group.grants[1].second.fence));
    const ServerTime before = locks.find("a").value().expires_at;
    EXPECT_FALSE(locks.extend_all(group, 600s));
    EXPECT_EQ(locks.find("a").value().expires_at, before) << "none was extended";
    EXPECT_EQ(locks.release_all(group), 1U);
}

TEST_P(LockGroups, AreChecked) {
    const auto refused = [&](const Keys& keys) {
        EXPECT_EQ(lock_code_of([&] { (void)locks.acquire_all(keys, 1s); }),
                  LockCode::invalid_argument);
    };
    refused({});
    refused({"a", "b", "a"});
    refused({"caf\xC3\xA9", "cafe\xCC\x81"});
    refused({"a", ""});
    refused(Keys(65, "k"));
}

class LockAdmin : public LockStory {};

TEST_P(LockAdmin, ListsInPagesByKey) {
    for (const std::string key : {"b/2", "a/1", "b/1", "c", "b/3"}) {
        (void)take(key, 60s);
    }
    (void)std::get<Grant>(locks.acquire("b/4", 10s, {.meta = "for people"}));
    EXPECT_EQ(locks.list({.prefix = "b/"}).back().meta, "for people");
    EXPECT_FALSE(locks.list()[0].owner.empty());
    let_the_lease_end();

    const auto page = locks.list({.prefix = "b/", .limit = 2});
    ASSERT_EQ(page.size(), 2U);
    EXPECT_EQ(page[0].key, "b/1");
    EXPECT_EQ(page[1].key, "b/2");
    EXPECT_TRUE(page[0].live);
    const auto rest = locks.list({.prefix = "b/", .limit = 2, .after = page[1].key});
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(rest[0].key, "b/3");
    const auto with_dead = locks.list({.prefix = "b/", .dead = true});
    ASSERT_EQ(with_dead.size(), 4U);
    EXPECT_FALSE(with_dead[3].live);
    EXPECT_EQ(locks.list().size(), 5U);
    EXPECT_EQ(locks.list({.prefix = "%"}).size(), 0U) << "a prefix is no pattern";
    EXPECT_EQ(lock_code_of([&] { (void)locks.list({.limit = 0}); }), LockCode::invalid_argument);
}

TEST_P(LockAdmin, AForcedReleaseNeedsTheFenceThatWasSeen) {
    const Grant ann = take("k", 60s);
    EXPECT_FALSE(locks.force_release("k", Fence{value_of(ann.fence) + 1}));
    EXPECT_TRUE(locks.is_locked("k"));
    EXPECT_EQ(db.number("SELECT fence FROM holdfast_fences"), 1) << "nothing has happened";
    EXPECT_TRUE(locks.force_release("k", ann.fence));
    EXPECT_FALSE(locks.force_release("k", ann.fence)) << "once";
    EXPECT_FALSE(locks.is_locked("k"));
    EXPECT_FALSE(locks.extend(ann.lock_id, 60s).ok);
    EXPECT_FALSE(locks.release(ann.lock_id).ok);
    EXPECT_FALSE(locks.force_release("unknown", Fence{1}));

    const Grant bob = take("k");
    EXPECT_GE(value_of(bob.fence), value_of(ann.fence) + 2) << "the counter has moved on";
    const auto accepted = [&](Fence fence) {
        return db->transact(
            "Accept", {}, [&](sql::Tx& tx) { return accept_fence(tx, locks, "r", fence); });
    };
    EXPECT_TRUE(accepted(bob.fence));
    EXPECT_FALSE(accepted(ann.fence)) << "what the old holder writes is refused";
}

// The log has the reason, and no identifier that is a secret.
TEST_P(LockAdmin, AForcedReleaseIsLogged) {
    CapturingLogger logger;
    Locks told(db, {.owner = "carl", .logger = &logger});
    const Grant ann = take("payroll/ann");
    EXPECT_FALSE(told.force_release("payroll/ann", Fence{99}));
    EXPECT_EQ(logger.count("taken from its holder"), 0U) << "nothing has happened";
    EXPECT_TRUE(told.force_release("payroll/ann", ann.fence));
    EXPECT_EQ(logger.count("taken from its holder"), 1U);
    EXPECT_EQ(logger.count("fence=" + to_string(ann.fence)), 1U);
    EXPECT_EQ(logger.count("key_hash=" + hashed_name("payroll/ann")), 1U);
    EXPECT_EQ(logger.count("by=carl"), 1U);
    EXPECT_EQ(logger.count("payroll"), 0U);
}

// The first waiter is notified, and the key is kept for it; its ticket is not left behind.
TEST_P(LockAdmin, AForcedReleaseCallsTheFirstInLine) {
    Locks patient(db, {}, unhurried);  // Bob's turn must last until we have looked.
    const Grant ann = take("k", 60s);
    const LockId bob = LockId::fresh();
    {
        const auto ticket = patient.line_up("k", bob, Deadline::after(60s));
        ASSERT_TRUE(ticket->join());
        EXPECT_TRUE(patient.force_release("k", ann.fence));
        ticket->wait(std::chrono::steady_clock::now() + 20s, {});
        EXPECT_TRUE(is_busy(patient.acquire("k", 10s))) << "it is Bob's turn";
        const auto granted = std::get<Grant>(patient.acquire("k", 60s, {.lock_id = bob}));
        ticket->arrived();
        EXPECT_GE(value_of(granted.fence), 3U);
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks_waiters"), 0);
    EXPECT_TRUE(locks.release(bob).ok);
    EXPECT_FALSE(locks.is_locked("k"));
}

TEST_P(LockAdmin, PurgingTakesWhatIsLongDeadAndNoCounter) {
    HOLDFAST_CHECK("locks B6");
    (void)take("dead/0");
    db.advance_clock(11'010ms);
    EXPECT_FALSE(locks.is_locked("dead/0"));
    EXPECT_EQ(locks.purge(), 0) << "dead for less than two seconds";
    for (int i = 1; i < 100; ++i) {
        (void)take("dead/" + std::to_string(i));
    }
    (void)take("alive", 600s);
    db.advance_clock(20s);
    EXPECT_EQ(locks.purge(30), 30) << "no more than it may";
    EXPECT_EQ(locks.purge(), 70);
    EXPECT_EQ(locks.purge(), 0);
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks"), 1);
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_fences"), 101);
    EXPECT_EQ(value_of(take("dead/7").fence), 2U);
}

TEST_P(LockAdmin, ARepairLiftsWhatARestoreHasSetBack) {
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(locks.release(take("k").lock_id).ok);
    }
    const Grant held = take("k", 60s);
    (void)take("other", 60s);
    db.tamper("UPDATE holdfast_fences SET fence = 2 WHERE fence_key = 'fence:k'");
    EXPECT_EQ(locks.repair_fences(0), 1);
    EXPECT_EQ(locks.repair_fences(0), 0);
    EXPECT_TRUE(locks.release(held.lock_id).ok);
    const Grant next = take("k", 60s);
    EXPECT_GT(next.fence, held.fence);
    EXPECT_TRUE(locks.release(next.lock_id).ok);
    EXPECT_EQ(locks.repair_fences(1'000'000), 0);
    EXPECT_GT(value_of(take("k").fence), 1'000'000U);
    EXPECT_EQ(lock_code_of([&] { (void)locks.repair_fences(-1); }), LockCode::invalid_argument);
}

// A backup may hold the lock and not its counter.
TEST_P(LockAdmin, ARepairMakesTheCounterThatIsMissing) {
    EXPECT_TRUE(locks.release(take("k").lock_id).ok);
    const Grant held = take("k", 60s);
    db.tamper("DELETE FROM holdfast_fences");
    EXPECT_EQ(locks.repair_fences(0), 1);
    EXPECT_TRUE(locks.release(held.lock_id).ok);
    EXPECT_GT(take("k").fence, held.fence);
}

// More than one transaction may change on DSQL.
TEST_P(LockAdmin, ARepairOfManyCountersIsDoneInBatches) {
    db.tamper(
        "INSERT INTO holdfast_locks (key, lock_id, expires_at_ms, acquired_at_ms, fence, user_key) "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 7000) "
        "SELECT 'k' || i, 'id' || i, 0, i, '000000000000005', 'k' || i FROM n;"
        "INSERT INTO holdfast_fences (fence_key, fence) "
        "SELECT 'fence:' || key, 1 FROM holdfast_locks WHERE acquired_at_ms % 2 = 0;");
    EXPECT_GT(db.number("SELECT count(*) FROM holdfast_fences"), 3'000) << "or nothing is tested";
    EXPECT_GT(db.number("SELECT 7000 - count(*) FROM holdfast_fences"), 3'000);
    EXPECT_EQ(locks.fences_behind(), 7'000);
    EXPECT_EQ(locks.repair_fences(10), 7'000);
    EXPECT_EQ(locks.fences_behind(), 0);
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_fences WHERE fence = 15"), 7'000)
        << "each by as much, and none twice";
}

// ---- Many
// ----------------------------------------------------------------------------------------

TEST_P(LockAdmin, AThousandLocksComeAndGo) {
    HOLDFAST_CHECK("locks B5");
    const int many = GetParam().conflict_every > 0 ? 100 : 1'000;
    std::vector<LockId> held;
    held.reserve(static_cast<std::size_t>(many));
    for (int i = 0; i < many; ++i) {
        held.push_back(take(std::to_string(i), 600s).lock_id);
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks"), many);
    for (const LockId& id : held) {
        EXPECT_TRUE(locks.release(id).ok);
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks"), 0);
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_fences"), many) << "counters remain";
}

INSTANTIATE_TEST_SUITE_P(Every, LockGroups, every_setting(), setting_name);
INSTANTIATE_TEST_SUITE_P(Every, LockAdmin, every_setting(), setting_name);

// ---- What it costs on PostgreSQL
// -----------------------------------------------------------------

class LockCost : public testing::Test {
protected:
    template <class Work>
    std::int64_t round_trips(Work work) {
        const auto before = db->driver_stats().round_trips;
        work();
        return db->driver_stats().round_trips - before;
    }
    LockDatabase db{Setting{test::Backend::postgres}};
    Locks locks{db};
};

TEST_F(LockCost, EveryCallIsOneRoundTrip) {
    std::optional<Grant> grant;
    EXPECT_EQ(round_trips([&] { grant = std::get<Grant>(locks.acquire("k", 10s)); }), 1);
    EXPECT_EQ(round_trips([&] { EXPECT_TRUE(is_busy(locks.acquire("k", 10s))); }), 1);
    EXPECT_EQ(round_trips([&] { EXPECT_TRUE(locks.extend(grant->lock_id, 10s).ok); }), 1);
    EXPECT_EQ(round_trips([&] { EXPECT_TRUE(locks.is_locked("k")); }), 1);
    EXPECT_EQ(round_trips([&] { EXPECT_TRUE(locks.find("k")); }), 1);
    EXPECT_EQ(round_trips([&] { EXPECT_TRUE(locks.find_by_id(grant->lock_id)); }), 1);
    EXPECT_EQ(round_trips([&] { EXPECT_TRUE(locks.release(grant->lock_id).ok); }), 1);
    EXPECT_EQ(round_trips([&] { EXPECT_FALSE(locks.release(grant->lock_id).ok); }), 1);
    EXPECT_EQ(round_trips([&] { (void)locks.acquire_all(Keys{"a", "b", "c"}, 10s); }), 2)
        << "the claims, and the commit";
}

// There is a cheap way for locks without waiters. A release that takes the wrong way learns it
// once.
TEST_F(LockCost, AReleaseThatCallsSomebodyIsOneRoundTripAsWell) {
    Locks patient(db, {}, unhurried);
    const LockId bob = LockId::fresh();
    const LockId carl = LockId::fresh();
    const auto stand = [&](const LockId& id) {
        auto ticket = patient.line_up("k", id, Deadline::after(60s));
        EXPECT_TRUE(ticket->join());
        return ticket;
    };
    const auto come = [&](const LockId& id, WaitTicket& ticket) {
        EXPECT_TRUE(is_granted(patient.acquire("k", 60s, {.lock_id = id})));
        ticket.arrived();
    };
    const auto release = [&](const LockId& id) { EXPECT_TRUE(patient.release(id).ok); };

    const LockId ann = std::get<Grant>(patient.acquire("k", 60s)).lock_id;
    const auto bobs = stand(bob);
    EXPECT_EQ(round_trips([&] { release(ann); }), 2) << "the first that somebody waits for";
    come(bob, *bobs);
    const auto carls = stand(carl);
    EXPECT_EQ(round_trips([&] { release(bob); }), 1);
    come(carl, *carls);
    EXPECT_EQ(round_trips([&] { release(carl); }), 1) << "nobody waits any more";
    const LockId dan = std::get<Grant>(patient.acquire("k", 60s)).lock_id;
    EXPECT_EQ(round_trips([&] { release(dan); }), 1);
}

// Those who are refused must not cost those who work: no transaction number, no log record.
TEST_F(LockCost, ARefusedAcquisitionWritesNothing) {
    const auto held = std::get<Grant>(locks.acquire("k", 60s));
    // In one transaction with the question, which would have a number if anything was written.
    static constexpr sql::Statement wrote{"test.wrote",
                                          "SELECT count(pg_current_xact_id_if_assigned())"};
    const auto writes = [&](const std::string& key, bool filter) {
        return db->transact("Refused", {}, [&](sql::Tx& tx) {
            const sql::Rows rows = tx.query(statements::take_at_once.with(locks.tables()),
                                            key,
                                            "fence:" + key,
                                            key,
                                            LockId::fresh().reveal(),
                                            60'000,
                                            1'000,
                                            filter,
                                            "owner",
                                            "",
                                            std::optional<std::string>{});
            EXPECT_EQ(rows.size(), 1U);
            return tx.query(wrote)[0].get<std::int64_t>(0);
        });
    };
    EXPECT_EQ(writes("k", true), 0);
    EXPECT_EQ(writes("k", false), 0);
    EXPECT_EQ(writes("free", true), 1) << "the control";
    for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(is_busy(locks.acquire("k", 60s)));
    }
    EXPECT_EQ(db.number("SELECT fence FROM holdfast_fences WHERE fence_key = 'fence:k'"),
              static_cast<std::int64_t>(value_of(held.fence)))
        << "no fence was burned";
}

}  // namespace
}  // namespace holdfast::lock::tests

// What every backend promises about leases, fences, ownership and what can be seen of a lock.
#include "test/lock_fixture.hpp"

#include <holdfast/base/manual_clock.hpp>

namespace holdfast::lock::tests {
namespace {

class LockContract : public LockStory {};

// ---- Fences
// --------------------------------------------------------------------------------------

TEST_P(LockContract, FencesHave15DigitsAndGrowWithEveryAcquisition) {
    HOLDFAST_CHECK("locks C25");
    HOLDFAST_CHECK("locks C26");
    HOLDFAST_CHECK("locks C27");
    HOLDFAST_CHECK("locks C43");
    HOLDFAST_CHECK("locks E7");
    HOLDFAST_CHECK("locks E8");
    HOLDFAST_CHECK("locks E12");
    std::vector<Fence> fences;
    for (int i = 0; i < 5; ++i) {
        const Grant grant = take("k");
        fences.push_back(grant.fence);
        EXPECT_TRUE(locks.release(grant.lock_id).ok);
    }
    EXPECT_EQ(to_string(fences[0]), "000000000000001");
    for (std::size_t i = 1; i < fences.size(); ++i) {
        EXPECT_EQ(to_string(fences[i]).size(), 15U);
        EXPECT_GT(value_of(fences[i]), value_of(fences[i - 1]));
        EXPECT_GT(to_string(fences[i]), to_string(fences[i - 1])) << "as text, too";
    }
    const Grant other = take("another");
    EXPECT_EQ(to_string(other.fence), "000000000000001") << "each key has a counter of its own";
    const Grant again = take("k");
    EXPECT_GT(again.fence, fences.back());
    EXPECT_NE(again.lock_id, other.lock_id);
}

TEST_P(LockContract, TheCounterSurvivesReleaseAndTime) {
    HOLDFAST_CHECK("locks C28");
    const Grant first = take("k");
    EXPECT_TRUE(locks.release(first.lock_id).ok);
    db.advance_clock(1500ms);
    EXPECT_GT(take("k").fence, first.fence);
}

TEST_P(LockContract, CleaningUpDeadRowsNeverTouchesTheCounter) {
    HOLDFAST_CHECK("locks C29");
    HOLDFAST_CHECK("locks C30");
    ManualClock ours;  // The cleanup is limited to one a second by the process's clock.
    Locks tidy(db, {.cleanup_in_is_locked = true, .clock = &ours});
    Fence last{};
    for (int cycle = 0; cycle < 3; ++cycle) {
        const auto grant = std::get<Grant>(tidy.acquire("k", 10s));
        EXPECT_GT(grant.fence, last);
        last = grant.fence;
        db.advance_clock(11'010ms);
        EXPECT_FALSE(tidy.is_locked("k"));
        EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks"), 1) << "dead, but not for long";
        db.advance_clock(1500ms);
        ours.advance(2s);
        EXPECT_FALSE(tidy.is_locked("k"));
        EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks"), 0);
        EXPECT_EQ(db.number("SELECT fence FROM holdfast_fences"), cycle + 1);
    }
    EXPECT_GT(take("k").fence, last);
}

TEST_P(LockContract, LookingChangesNothingUnlessAskedFor) {
    (void)take("k");
    db.advance_clock(1h);
    EXPECT_FALSE(locks.is_locked("k"));
    EXPECT_FALSE(locks.find("k"));
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks"), 1);
}

// ---- Contention
// ----------------------------------------------------------------------------------

TEST_P(LockContract, OneAtATimeAndTheOtherIsTold) {
    HOLDFAST_CHECK("locks C31");
    HOLDFAST_CHECK("locks C33");
    HOLDFAST_CHECK("locks U-B 2");
    const Grant ann = take("k");
    const Acquired bob = locks.acquire("k", 10s);
    ASSERT_TRUE(is_busy(bob));
    const auto hint = std::get<Busy>(bob).retry_after;
    ASSERT_TRUE(hint);
    EXPECT_GT(*hint, 5s);
    EXPECT_LE(*hint, 11s) << "the lease and its grace";
    EXPECT_TRUE(locks.is_locked("k"));
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
    EXPECT_TRUE(is_granted(locks.acquire("k", 10s)));
}

TEST_P(LockContract, ThreeAreRefusedAndOneSucceedsAfterTheLease) {
    HOLDFAST_CHECK("locks C34");
    (void)take("k");
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(is_busy(locks.acquire("k", 10s)));
    }
    let_the_lease_end();
    EXPECT_TRUE(is_granted(locks.acquire("k", 10s)));
    EXPECT_TRUE(is_busy(locks.acquire("k", 10s)));
}

TEST_P(LockContract, TheSameIdAgainTakesOverFromItself) {
    const Grant ann = take("k");
    const auto again = std::get<Grant>(locks.acquire("k", 10s, {.lock_id = ann.lock_id}));
    EXPECT_EQ(again.lock_id, ann.lock_id);
    EXPECT_GT(again.fence, ann.fence);
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks"), 1);
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
}

// An id belongs to one lock. It is a mistake that no waiting cures, whatever a database calls it.
TEST_P(LockContract, AnIdThatHoldsAnotherKeyIsRefused) {
    const Grant ann = take("k");
    const auto error =
        lock_error_of([&] { (void)locks.acquire("j", 10s, {.lock_id = ann.lock_id}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::internal) << error->what();
    EXPECT_FALSE(error->retryable());
    EXPECT_FALSE(error->indeterminate());
    EXPECT_NE(std::string_view(error->what()).find("holds another key"), std::string_view::npos)
        << error->what();
    EXPECT_FALSE(locks.is_locked("j"));
    EXPECT_EQ(value_of(take("j").fence), 1U) << "what was refused has burned nothing";
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
}

// ---- Expiry
// --------------------------------------------------------------------------------------

// The grace of one second is the holder's, too: neither side sees the lock differently.
TEST_P(LockContract, ALeaseEndsByTheDatabasesClockAndItsGrace) {
    HOLDFAST_CHECK("locks C36");
    HOLDFAST_CHECK("locks C39");
    HOLDFAST_CHECK("locks E9");
    HOLDFAST_CHECK("locks E34");
    HOLDFAST_CHECK("locks U-B 18");
    (void)take("k", 30s);
    db.advance_clock(29s);
    EXPECT_TRUE(locks.is_locked("k"));
    db.advance_clock(1050ms);
    EXPECT_TRUE(locks.is_locked("k")) << "in its grace";
    EXPECT_TRUE(is_busy(locks.acquire("k", 10s)));
    db.advance_clock(1s);
    EXPECT_FALSE(locks.is_locked("k"));
    EXPECT_TRUE(is_granted(locks.acquire("k", 10s)));
}

TEST_P(LockContract, AHolderCanExtendInTheGraceAndNotAfterIt) {
    HOLDFAST_CHECK("locks C37");
    HOLDFAST_CHECK("locks C38");
    HOLDFAST_CHECK("locks C40");
    HOLDFAST_CHECK("locks U-B 11");
    const Grant ann = take("k", 30s);
    const auto acquired_at = locks.find("k").value().acquired_at;
    ServerTime last = ann.expires_at;
    for (int i = 0; i < 4; ++i) {
        db.advance_clock(20s);
        const Extended extended = locks.extend(ann.lock_id, 30s);
        ASSERT_TRUE(extended.ok);
        EXPECT_GT(extended.expires_at, last);
        last = extended.expires_at;
    }
    EXPECT_EQ(locks.find("k").value().acquired_at, acquired_at) << "it is the same acquisition";
    EXPECT_EQ(locks.find("k").value().fence, ann.fence);
    db.advance_clock(30'050ms);
    EXPECT_TRUE(locks.extend(ann.lock_id, 30s).ok) << "late, and in time";
    db.advance_clock(32s);
    const Extended late = locks.extend(ann.lock_id, 30s);
    EXPECT_FALSE(late.ok);
    EXPECT_EQ(late.why, Missing::expired);
    EXPECT_FALSE(locks.is_locked("k")) << "an extension does not revive";
    EXPECT_EQ(locks.release(ann.lock_id).why, Missing::expired);
}

TEST_P(LockContract, AnExtensionReplacesAndAHeartbeatNeverShortens) {
    const Grant ann = take("k", 60s);
    const Extended heartbeat = locks.extend(ann.lock_id, 10s, {}, ExtendMode::at_least);
    ASSERT_TRUE(heartbeat.ok);
    EXPECT_EQ(heartbeat.expires_at, ann.expires_at);
    const Extended shorter = locks.extend(ann.lock_id, 10s);
    ASSERT_TRUE(shorter.ok);
    EXPECT_LT(shorter.expires_at, ann.expires_at);
    EXPECT_EQ(locks.find("k").value().expires_at, shorter.expires_at);
}

TEST_P(LockContract, ShortLeasesEndAndLongOnesStay) {
    HOLDFAST_CHECK("locks C41");
    ManualClock ours;  // By which not even so short a lease is over when it is granted.
    Locks brief(db, {.clock = &ours});
    EXPECT_TRUE(is_granted(brief.acquire("short", 100ms)));
    (void)take("long", 30s);
    db.advance_clock(1200ms);
    EXPECT_FALSE(locks.is_locked("short"));
    EXPECT_TRUE(locks.is_locked("long"));
}

// ---- The life of a lock
// --------------------------------------------------------------------------

TEST_P(LockContract, AGrantIsWhatIsStored) {
    HOLDFAST_CHECK("locks U-B 1");
    HOLDFAST_CHECK("locks U-B 3");
    HOLDFAST_CHECK("locks U-B 5");
    const Steady before = std::chrono::steady_clock::now();
    const Grant grant = take("k", 7s);
    EXPECT_EQ(grant.lock_id.reveal().size(), 22U);
    EXPECT_LE(grant.safe_until, std::chrono::steady_clock::now() + 7s);
    EXPECT_GT(grant.safe_until, before + 6s);
    const auto found = locks.find_raw("k");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->lock_id, grant.lock_id);
    EXPECT_EQ(found->info.fence, grant.fence);
    EXPECT_EQ(found->info.expires_at, grant.expires_at);
    EXPECT_EQ(found->info.expires_at - found->info.acquired_at, 7s);
    EXPECT_TRUE(locks.release(grant.lock_id).ok);
    EXPECT_NE(take("k").lock_id, grant.lock_id);
}

TEST_P(LockContract, TakenSeenGivenBackOnce) {
    HOLDFAST_CHECK("locks C42");
    HOLDFAST_CHECK("locks C45");
    HOLDFAST_CHECK("locks E31");
    HOLDFAST_CHECK("locks U-B 6");
    HOLDFAST_CHECK("locks U-B 16");
    HOLDFAST_CHECK("locks U-B 17");
    EXPECT_FALSE(locks.is_locked("k"));
    const Steady before = std::chrono::steady_clock::now();
    const Grant grant = take("k", 7s);
    EXPECT_EQ(grant.lock_id.reveal().size(), 22U);
    EXPECT_GT(grant.safe_until, before + 6s);
    EXPECT_TRUE(locks.is_locked("k"));
    EXPECT_TRUE(locks.release(grant.lock_id).ok);
    EXPECT_FALSE(locks.release(grant.lock_id).ok);
    EXPECT_FALSE(locks.is_locked("k"));
}

TEST_P(LockContract, TenRapidCycles) {
    HOLDFAST_CHECK("locks C47");
    HOLDFAST_CHECK("locks E4");
    HOLDFAST_CHECK("locks E35");
    Fence last{};
    for (int i = 0; i < 10; ++i) {
        const Grant grant = take("k");
        EXPECT_GT(grant.fence, last);
        last = grant.fence;
        EXPECT_TRUE(locks.is_locked("k"));
        EXPECT_TRUE(locks.release(grant.lock_id).ok);
        EXPECT_FALSE(locks.is_locked("k"));
    }
}

// No key of 512 bytes is too long for a database that we know; here one of 30 is.
TEST_P(LockContract, AKeyWhoseStorageKeyIsHashedIsALockLikeAnyOther) {
    HOLDFAST_CHECK("locks U-P 33");
    HOLDFAST_CHECK("locks U-P 34");
    HOLDFAST_CHECK("locks U-P 35");
    Locks narrow(db, {}, {.storage_key_bytes = 30});
    for (const std::string& key :
         {std::string(500, 'x'), std::string(500, 'y'), std::string("z")}) {
        const auto grant = std::get<Grant>(narrow.acquire(key, 10s));
        EXPECT_EQ(value_of(grant.fence), 1U) << "a counter of its own";
        EXPECT_TRUE(is_busy(narrow.acquire(key, 10s)));
        EXPECT_TRUE(narrow.is_locked(key));
        EXPECT_TRUE(narrow.extend(grant.lock_id, 10s).ok);
        const auto found = narrow.find_raw_by_id(grant.lock_id);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->key, key) << "what its owner calls it";
        EXPECT_TRUE(narrow.release(grant.lock_id).ok);
        EXPECT_FALSE(narrow.is_locked(key));
        EXPECT_EQ(value_of(std::get<Grant>(narrow.acquire(key, 10s)).fence), 2U);
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks WHERE length(key) = 22"), 2);
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_fences WHERE length(fence_key) <= 30"), 3);
    EXPECT_EQ(narrow.list().size(), 3U);
}

// ---- What can be seen
// ----------------------------------------------------------------------------

TEST_P(LockContract, FindShowsHashesAndNothingThatCouldBeUsed) {
    HOLDFAST_CHECK("locks C48");
    HOLDFAST_CHECK("locks C49");
    HOLDFAST_CHECK("locks E10");
    HOLDFAST_CHECK("locks E39");
    const Grant grant = take("resource:payment");
    for (const auto& found : {locks.find("resource:payment"), locks.find_by_id(grant.lock_id)}) {
        ASSERT_TRUE(found);
        EXPECT_EQ(found->key_hash.size(), 24U);
        EXPECT_EQ(found->lock_id_hash.size(), 24U);
        EXPECT_EQ(found->key_hash.find("resource"), std::string::npos);
        EXPECT_EQ(found->expires_at, grant.expires_at);
        EXPECT_EQ(found->fence, grant.fence);
        EXPECT_LT(found->acquired_at, found->expires_at);
    }
    EXPECT_EQ(locks.find("resource:payment")->key_hash, locks.find_by_id(grant.lock_id)->key_hash);
    EXPECT_TRUE(owns(locks, grant.lock_id));
    EXPECT_FALSE(owns(locks, LockId::fresh()));
}

TEST_P(LockContract, WhatHasEndedIsNotFound) {
    HOLDFAST_CHECK("locks C52");
    HOLDFAST_CHECK("locks E11");
    ManualClock ours;  // By which not even so short a lease is over when it is granted.
    Locks brief(db, {.clock = &ours});
    const auto grant = std::get<Grant>(brief.acquire("k", 100ms));
    db.advance_clock(1200ms);
    EXPECT_FALSE(locks.find("k"));
    EXPECT_FALSE(locks.find_by_id(grant.lock_id));
    EXPECT_FALSE(locks.find_raw("k"));
    EXPECT_FALSE(locks.find_raw_by_id(grant.lock_id));
}

TEST_P(LockContract, EachKeyIsFoundWithItsOwnFence) {
    HOLDFAST_CHECK("locks C56");
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(locks.release(take("b").lock_id).ok);
    }
    for (const std::string key : {"a", "b", "c"}) {
        const Grant grant = take(key);
        EXPECT_EQ(locks.find(key).value().fence, grant.fence);
        EXPECT_EQ(locks.find_raw(key).value().key, key);
    }
    EXPECT_EQ(value_of(locks.find("b").value().fence), 4U);
    EXPECT_EQ(value_of(locks.find("c").value().fence), 1U);
}

// ---- Ownership
// -----------------------------------------------------------------------------------

TEST_P(LockContract, AForeignIdDoesNothing) {
    HOLDFAST_CHECK("locks C57");
    HOLDFAST_CHECK("locks C58");
    HOLDFAST_CHECK("locks C61");
    HOLDFAST_CHECK("locks C63");
    HOLDFAST_CHECK("locks U-B 13");
    const Grant ann = take("k");
    const LockId bob = LockId::parse("abcdefghijklmnopqrstuv");
    EXPECT_FALSE(locks.release(bob).ok);
    EXPECT_FALSE(locks.extend(bob, 1h).ok);
    EXPECT_EQ(locks.find("k").value().expires_at, ann.expires_at);
    EXPECT_TRUE(locks.extend(ann.lock_id, 20s).ok);
    EXPECT_FALSE(locks.release(bob).ok);
    EXPECT_TRUE(locks.is_locked("k"));
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
}

TEST_P(LockContract, ReleasingOneLeavesTheOthers) {
    HOLDFAST_CHECK("locks C59");
    const Grant one = take("one");
    const Grant two = take("two");
    EXPECT_TRUE(locks.release(two.lock_id).ok);
    EXPECT_TRUE(locks.is_locked("one"));
    EXPECT_FALSE(locks.is_locked("two"));
    EXPECT_TRUE(locks.release(one.lock_id).ok);
}

TEST_P(LockContract, AnOldIdIsPowerlessAfterATakeover) {
    HOLDFAST_CHECK("locks C60");
    HOLDFAST_CHECK("locks U-B 8");
    const Grant ann = take("k");
    let_the_lease_end();
    const Grant bob = take("k");
    EXPECT_GT(bob.fence, ann.fence);
    EXPECT_FALSE(locks.extend(ann.lock_id, 1h).ok);
    EXPECT_FALSE(locks.release(ann.lock_id).ok);
    EXPECT_EQ(locks.find("k").value().expires_at, bob.expires_at);
    EXPECT_TRUE(locks.release(bob.lock_id).ok);
}

INSTANTIATE_TEST_SUITE_P(Every, LockContract, every_setting(), setting_name);

}  // namespace
}  // namespace holdfast::lock::tests

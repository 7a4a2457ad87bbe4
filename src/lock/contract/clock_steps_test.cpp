// In a file, the machine's wall clock dates what happens and decides nothing: locks, permits and
// turns end by the time since the machine was started.
#include <array>
#include <optional>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include <holdfast/lock/locks.hpp>
#include <holdfast/lock/semaphore.hpp>
#include <holdfast/testing/database.hpp>
#include <holdfast/testing/stepping_clock.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::lock {
namespace {

using namespace std::chrono_literals;

class LockClockSteps : public testing::Test {
protected:
    [[nodiscard]] sql::DatabaseOptions by_clock() {
        sql::DatabaseOptions options = test::quick_options();
        options.clock = &clock;
        return options;
    }
    [[nodiscard]] static bool is_held(Locks& locks) {
        return std::holds_alternative<Busy>(locks.acquire("k", 10s));
    }
    // What a time server, an operator or a bad battery does.
    static constexpr std::array<std::chrono::hours, 5> steps{2h, 0h, 1h, -3h, 24h * 365};

    test::SteppingClock clock;
    test::Database db{test::Backend::sqlite, schema_part(), by_clock()};
};

TEST_F(LockClockSteps, ALockIsHeldWhateverTheWallClockSays) {
    Locks ann(*db);
    Locks bob(*db);
    const auto grant = std::get<Grant>(ann.acquire("k", 60s));
    for (const auto step : steps) {
        clock.set_wall_ahead(step);
        EXPECT_TRUE(is_held(bob)) << step.count() << " h";
        EXPECT_TRUE(ann.extend(grant.lock_id, 60s).ok) << step.count() << " h";
        sql::Database late(db.url(), by_clock());  // A process that starts now.
        Locks cyd(late);
        EXPECT_TRUE(is_held(cyd)) << step.count() << " h";
    }
    EXPECT_TRUE(ann.release(grant.lock_id).ok);
    EXPECT_FALSE(is_held(bob));
}

TEST_F(LockClockSteps, ALockThatWasTakenWhileTheWallClockWasAheadEndsInTime) {
    Locks ann(*db);
    Locks bob(*db);
    clock.set_wall_ahead(2h);
    (void)std::get<Grant>(ann.acquire("k", 10s));
    clock.set_wall_ahead(0h);
    EXPECT_TRUE(is_held(bob));
    db.advance_clock(12s);
    EXPECT_FALSE(is_held(bob));
}

TEST_F(LockClockSteps, APermitIsHeldWhateverTheWallClockSays) {
    Locks locks(*db);
    Semaphore one(locks, "s", 1);
    Permit permit = std::get<Permit>(one.acquire(60s));
    for (const auto step : steps) {
        clock.set_wall_ahead(step);
        EXPECT_TRUE(std::holds_alternative<Busy>(one.acquire(60s))) << step.count() << " h";
        EXPECT_TRUE(one.extend(permit, 60s)) << step.count() << " h";
    }
    db.advance_clock(62s);
    EXPECT_TRUE(std::holds_alternative<Permit>(one.acquire(60s)));
}

// The holders of the last boot are gone, and nothing can come back from there.
TEST_F(LockClockSteps, WhatWasHeldBeforeARestartHasExpired) {
    std::optional<Grant> before;
    {
        Locks locks(*db);
        before = std::get<Grant>(locks.acquire("k", 24h));
        Semaphore one(locks, "s", 1);
        (void)std::get<Permit>(one.acquire(24h));
    }
    db.close();
    clock.restart("boot 2");
    db.reopen();
    Locks locks(*db);
    EXPECT_FALSE(locks.is_locked("k"));
    const auto after = std::get<Grant>(locks.acquire("k", 60s));
    EXPECT_GT(after.fence, before->fence);
    EXPECT_FALSE(locks.extend(before->lock_id, 60s).ok) << "a lost lock stays lost";
    EXPECT_FALSE(locks.release(before->lock_id).ok);
    EXPECT_TRUE(locks.is_locked("k"));
    Semaphore one(locks, "s", 1);
    EXPECT_TRUE(std::holds_alternative<Permit>(one.acquire(60s)));
}

// A machine that is started again takes long to have been up as long as before.
TEST_F(LockClockSteps, AFileThatComesBackFromAnotherMachineHasNoLiveLocks) {
    for (const char* boot : {"here", "there", "here"}) {
        db.close();
        clock.restart(boot);
        db.reopen();
        Locks locks(*db);
        EXPECT_FALSE(is_held(locks)) << boot;
        EXPECT_TRUE(is_held(locks)) << boot;
    }
}

TEST_F(LockClockSteps, ABackupThatIsRestoredOnTheSameBootHoldsWhatItHeld) {
    const test::TempDir folder;
    const std::string copy = (folder.path() / "copy.db").string();
    {
        Locks locks(*db);
        (void)std::get<Grant>(locks.acquire("k", 60s));
    }
    db.execute("VACUUM INTO '" + copy + "'");
    clock.set_wall_ahead(5h);
    sql::Database restored("sqlite:" + copy, by_clock());
    Locks locks(restored);
    EXPECT_TRUE(is_held(locks));
}

TEST_F(LockClockSteps, TimesAreShownByTheWallClock) {
    Locks locks(*db);
    const auto near_now = [&](ServerTime time, std::chrono::milliseconds ahead) {
        return std::chrono::abs(time - ahead - clock.wall_now()) < 60s;
    };
    const auto grant = std::get<Grant>(locks.acquire("k", 1h));
    EXPECT_TRUE(near_now(grant.expires_at, 1h));
    for (const auto step : steps) {
        clock.set_wall_ahead(step);
        const auto listed = locks.list();
        ASSERT_EQ(listed.size(), 1U);
        EXPECT_TRUE(listed[0].live);
        EXPECT_TRUE(near_now(listed[0].expires_at, 1h)) << step.count() << " h";
        EXPECT_TRUE(near_now(listed[0].acquired_at, 0h)) << step.count() << " h";
        EXPECT_TRUE(near_now(locks.extend(grant.lock_id, 1h).expires_at, 1h));
    }
}

}  // namespace
}  // namespace holdfast::lock

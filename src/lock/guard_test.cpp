#include <holdfast/lock/guard.hpp>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::lock {
namespace {

using namespace std::chrono_literals;

constexpr sql::Statement pay{"test.pay", "UPDATE account SET paid_by = $1"};

class GuardStory : public testing::TestWithParam<test::Backend> {
protected:
    GuardStory() {
        db.execute("CREATE TABLE account (paid_by TEXT); INSERT INTO account VALUES ('nobody')");
    }

    // False if the lock was lost, and then nothing was written.
    bool pay_under(Locks& locks, const Grant& grant, std::string_view who) {
        try {
            db->transact("Pay", {}, [&](sql::Tx& tx) {
                EXPECT_EQ(assert_held(tx, locks, "account", grant.lock_id), grant.fence);
                tx.exec(pay, who);
            });
            return true;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::condition_failed);
            return false;
        }
    }
    // False if the lock or its row is held.
    static bool takes_over(Locks& locks) {
        try {
            return std::holds_alternative<Grant>(
                locks.acquire("account", 10s, {.deadline = Deadline::after(300ms)}));
        } catch (const LockError& error) {
            EXPECT_TRUE(error.retryable()) << error.what();
            return false;
        }
    }
    std::string paid_by() { return db.look("SELECT paid_by FROM account")[0][0].value(); }

    test::Database db{GetParam(), schema_part()};
};

TEST_P(GuardStory, ATransactionCommitsOnlyWhileItsLockIsHeld) {
    Locks locks(db);
    const auto ann = std::get<Grant>(locks.acquire("account", 10s));
    EXPECT_TRUE(pay_under(locks, ann, "ann"));

    db.advance_clock(10s);  // Over, though the grace keeps others away for another second.
    EXPECT_FALSE(pay_under(locks, ann, "ann again"));
    db.advance_clock(2s);
    const auto bob = std::get<Grant>(locks.acquire("account", 10s));
    EXPECT_TRUE(pay_under(locks, bob, "bob"));
    EXPECT_FALSE(pay_under(locks, ann, "ann too late"));
    EXPECT_EQ(paid_by(), "bob");
}

// Bob comes when Ann's lease is over, in the middle of her transaction. Where writers wait for each
// other he has to come back; elsewhere he gets the lock, and her commit is refused.
TEST_P(GuardStory, ATakeoverAndAGuardedWriteAreNeverBothCommitted) {
    HOLDFAST_CHECK("locks N19");
    Locks locks(db);
    const auto ann = std::get<Grant>(locks.acquire("account", 10s));
    sql::Database elsewhere(db.url(), db.options());
    Locks others(elsewhere);
    bool taken = false;
    bool paid = true;
    int attempts = 0;
    try {
        db->transact("Pay", {}, [&](sql::Tx& tx) {
            (void)assert_held(tx, locks, "account", ann.lock_id);
            tx.exec(pay, "ann");
            if (++attempts == 1) {
                db.advance_clock(12s);
                taken = takes_over(others);
            }
        });
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::condition_failed) << error.what();
        paid = false;
    }
    EXPECT_NE(paid, taken);
    EXPECT_EQ(taken, GetParam() == test::Backend::dsql);
    EXPECT_EQ(paid_by(), paid ? "ann" : "nobody");
}

// On DSQL the write of the heartbeat makes the transaction run again. A file has one writer at a
// time: there the heartbeat comes after the transaction, which is why transactions are short.
TEST_P(GuardStory, AHeartbeatDoesNotEndAGuardedWrite) {
    HOLDFAST_CHECK("locks N19");
    Locks locks(db);
    const auto ann = std::get<Grant>(locks.acquire("account", 60s));
    sql::Database elsewhere(db.url(), db.options());
    Locks heart(elsewhere);
    int attempts = 0;
    db->transact("Pay", {}, [&](sql::Tx& tx) {
        (void)assert_held(tx, locks, "account", ann.lock_id);
        tx.exec(pay, "ann");
        if (++attempts == 1 && GetParam() != test::Backend::sqlite) {
            EXPECT_TRUE(heart.extend(ann.lock_id, 60s, {}, ExtendMode::at_least).ok);
        }
    });
    EXPECT_EQ(attempts, GetParam() == test::Backend::dsql ? 2 : 1);
    EXPECT_EQ(paid_by(), "ann");
}

TEST_P(GuardStory, AnOlderFenceIsRefusedAndTheSameAccepted) {
    Locks locks(db);
    const auto accepted = [&](std::uint64_t fence) {
        return db->transact("Accept", {}, [&](sql::Tx& tx) {
            return accept_fence(tx, locks, "file/1", Fence{fence});
        });
    };
    EXPECT_TRUE(accepted(2));
    EXPECT_TRUE(accepted(2)) << "the same holder's second write";
    EXPECT_TRUE(accepted(5));
    EXPECT_FALSE(accepted(4));
    EXPECT_TRUE(accepted(5));
}

// People with a connection of their own get the same statement as text.
TEST_P(GuardStory, TheGuardIsPublishedAsPlainSql) {
    Locks locks(db);
    const auto ann = std::get<Grant>(locks.acquire("account", 10s));
    std::string text = assert_held_sql(db->dialect(), locks.tables());
    const std::string mark{db->dialect().parameter_mark};
    const auto put = [&](const std::string& parameter, const std::string& value) {
        text.replace(text.find(parameter), parameter.size(), value);
    };
    put(mark + "1", "'account'");
    put(mark + "2", "'" + ann.lock_id.reveal() + "'");
    EXPECT_EQ(db.look(text).size(), 1U) << text;
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
    EXPECT_EQ(db.look(text).size(), 0U) << text;
}

INSTANTIATE_TEST_SUITE_P(Every, GuardStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::lock

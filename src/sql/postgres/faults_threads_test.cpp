// What needs two at a time: deadlocks, a stop token that fires, a server that goes away.
#include <atomic>
#include <future>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>
#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast::sql {

namespace {

using namespace std::chrono_literals;

constexpr Statement add{"effect.add", "INSERT INTO effects (id) VALUES ($1)"};
constexpr Statement count{"effect.count", "SELECT count(*) FROM effects"};
constexpr Statement raise{"row.raise", "UPDATE rows SET n = n + 1 WHERE id = $1"};
constexpr Statement sleep_long{"sleep", "SELECT 1 FROM pg_sleep(60)"};

class FaultsOfMany : public testing::Test {
protected:
    FaultsOfMany() {
        db.execute(
            "CREATE TABLE effects (id bigint NOT NULL);"
            "CREATE TABLE rows (id bigint PRIMARY KEY, n bigint NOT NULL);"
            "INSERT INTO rows VALUES (1, 0), (2, 0)");
    }

    // Looks from outside until the server is at it, or has stopped.
    [[nodiscard]] bool wait_for_sleepers(std::int64_t wanted) const {
        const Deadline deadline = Deadline::after(20s);
        while (sleepers() != wanted) {
            if (deadline.passed()) {
                return false;
            }
        }
        return true;
    }
    std::int64_t sleepers() const {
        return db.number(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event = 'PgSleep'");
    }

    test::Database db{test::Backend::postgres};
};

// Each has one row and wants the other's. PostgreSQL breaks the knot by failing one of them.
TEST_F(FaultsOfMany, ADeadlockIsBrokenAndBothSucceed) {
    db.execute("ALTER DATABASE " + db.name() + " SET deadlock_timeout = '20ms'");
    db.reopen();
    std::latch both_have_one(2);
    std::atomic<int> runs = 0;
    const auto raise_both = [&](int first, int second) {
        bool waited = false;
        db->transact("Raise", {}, [&](Tx& tx) {
            ++runs;
            (void)tx.count(raise, first);
            if (!std::exchange(waited, true)) {
                both_have_one.arrive_and_wait();
            }
            tx.exec(raise, second);
        });
    };
    {
        const std::jthread ann(raise_both, 1, 2);
        const std::jthread bob(raise_both, 2, 1);
    }
    EXPECT_GE(runs, 3);  // More if the loser is back before the winner has looked.
    EXPECT_EQ(db.number("SELECT sum(n) FROM rows"), 4);
}

TEST_F(FaultsOfMany, AStopTokenEndsTheStatementOnTheServerAtOnce) {
    std::stop_source source;
    std::jthread caller([&] {
        try {
            db->transact("Sleep", {.stop = source.get_token()}, [](Tx& tx) {
                tx.exec(add, 1);
                (void)tx.query(sleep_long);
            });
            ADD_FAILURE() << "it slept to the end";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::cancelled) << error.what();
            EXPECT_EQ(error.outcome(), Outcome::not_applied);
        }
    });
    EXPECT_TRUE(wait_for_sleepers(1));
    const auto begin = std::chrono::steady_clock::now();
    source.request_stop();
    caller.join();
    // 50 ms on a quiet machine; far from the 60 s of the sleep on any.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
    EXPECT_TRUE(wait_for_sleepers(0));
    EXPECT_EQ(db.number("SELECT count(*) FROM effects"), 0);
    db->run("Add", {}, add, 1);  // The late cancel request hits no other query.
}

TEST_F(FaultsOfMany, ALockThatIsHeldTooLongEndsAtTheDeadline) {
    std::promise<void> held;
    std::promise<void> enough;
    std::jthread holder([&, enough_of_it = enough.get_future()] {
        db->transact("Hold", {}, [&](Tx& tx) {
            (void)tx.count(raise, 1);
            held.set_value();
            enough_of_it.wait();
        });
    });
    held.get_future().wait();
    try {
        db->transact("Raise", {.deadline = Deadline::after(100ms)}, [](Tx& tx) {
            (void)tx.count(raise, 1);
        });
        ADD_FAILURE() << "the lock was not held";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::deadline) << error.what();
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
    }
    enough.set_value();
    holder.join();
    EXPECT_EQ(db.number("SELECT n FROM rows WHERE id = 1"), 1);
}

TEST_F(FaultsOfMany, AWaiterForAConnectionLeavesAtItsDeadlineAndAtItsStop) {
    Database small(db.url() + "&pool=1", test::quick_options());
    small.transact("Hold", {}, [&](Tx& tx) {
        (void)tx.query(count);
        EXPECT_EQ(
            test::code_of([&] { small.run("Add", {.deadline = Deadline::after(20ms)}, add, 1); }),
            Code::deadline);
        std::stop_source source;
        std::jthread impatient([&] {
            EXPECT_EQ(
                test::code_of([&] { small.run("Add", {.stop = source.get_token()}, add, 1); }),
                Code::cancelled);
        });
        const Deadline deadline = Deadline::after(20s);
        while (small.pool_stats().waiting == 0 && !deadline.passed()) {
            std::this_thread::yield();
        }
        source.request_stop();
    });
    EXPECT_EQ(db.number("SELECT count(*) FROM effects"), 0);
}

// A subscriber that may have missed something is told so.
TEST_F(FaultsOfMany, ASubscriberIsWokenAfterItsConnectionWasLost) {
    test::FaultProxy proxy(test::shared_postgres());
    Database through(proxy.address().url(db.name()), test::quick_options());
    std::mutex mutex;
    std::condition_variable heard;
    std::vector<std::string> payloads;
    const auto subscription = through.subscribe("orders", [&](std::string_view payload) {
        const std::lock_guard lock(mutex);
        payloads.emplace_back(payload);
        heard.notify_all();
    });
    const auto wait_for = [&](std::size_t n) {
        std::unique_lock lock(mutex);
        return heard.wait_for(lock, 20s, [&] { return payloads.size() >= n; });
    };
    db->transact("Notify", {}, [](Tx& tx) { tx.notify("orders", "one"); });
    ASSERT_TRUE(wait_for(1));
    proxy.cut_all();
    ASSERT_TRUE(wait_for(2));
    db->transact("Notify", {}, [](Tx& tx) { tx.notify("orders", "three"); });
    ASSERT_TRUE(wait_for(3));
    const std::lock_guard lock(mutex);
    EXPECT_EQ(payloads, (std::vector<std::string>{"one", "", "three"}));
}

TEST(ServerCrash, InTheMiddleOfATransactionIsNotAppliedAndTheHandleRecovers) {
    test::PrivatePostgres server;
    test::Database db(server.address());
    db.execute("CREATE TABLE effects (id bigint NOT NULL)");
    try {
        db->transact("Add", {}, [&](Tx& tx) {
            tx.exec(add, 1);
            (void)tx.query(count);
            server.crash();
            (void)tx.query(count);
        });
        FAIL() << "it was applied";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unavailable) << error.what();
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
    }
    EXPECT_EQ(test::code_of([&] { db->run("Add", {}, add, 1); }), Code::unavailable);
    server.start();
    const Deadline patience = Deadline::after(20s);
    while (test::code_of([&] { db->run("Add", {}, add, 2); }) == Code::unavailable &&
           !patience.passed()) {
        system_clock().sleep_until(std::chrono::steady_clock::now() + 10ms, {});
    }
    EXPECT_EQ(db.look("SELECT id FROM effects"), (std::vector<test::Database::Cells>{{"2"}}));
}

}  // namespace

}  // namespace holdfast::sql

// Many at once, on every database: nothing is lost, nothing is seen half-done.
#include <atomic>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql {

namespace {

using namespace std::chrono_literals;

constexpr int writers = 8;
constexpr int rounds = 25;

constexpr Statement add_one{"counter.add", "UPDATE counters SET n = n + 1 WHERE id = $1"};
constexpr Statement read_locked{"counter.lock",
                                "SELECT n FROM counters WHERE id = $1 {for_update}"};
constexpr Statement read_plain{"counter.read", "SELECT n FROM counters WHERE id = $1"};
constexpr Statement write_value{"counter.write", "UPDATE counters SET n = $2 WHERE id = $1"};
constexpr Statement read_both{"counter.both", "SELECT n FROM counters ORDER BY id"};
constexpr FencedStatement swap{"counter.swap",
                               "UPDATE counters SET n = $3 WHERE id = $1 AND n = $2",
                               "SELECT n FROM counters WHERE id = $1"};

// Without a queue one transaction can lose often.
DatabaseOptions persistent() {
    DatabaseOptions options = test::quick_options();
    options.retry.max_retries = 500;
    return options;
}

class Crowd : public testing::TestWithParam<test::Backend> {
protected:
    Crowd() {
        db.execute(
            "CREATE TABLE counters (id {bigint} NOT NULL, n {bigint} NOT NULL, PRIMARY KEY (id))"
            " {strict}; INSERT INTO counters VALUES (1, 0), (2, 0)");
    }

    // Every writer does its work `rounds` times; all begin together.
    void all_at_once(const std::function<void()>& work) {
        std::latch begin(writers);
        std::vector<std::jthread> threads;
        for (int i = 0; i < writers; ++i) {
            threads.emplace_back([&] {
                begin.arrive_and_wait();
                for (int round = 0; round < rounds; ++round) {
                    work();
                }
            });
        }
    }

    std::int64_t counter(int id) const {
        return db.number("SELECT n FROM counters WHERE id = " + std::to_string(id));
    }

    test::Database db{GetParam(), persistent()};
    TxOptions options{.deadline = Deadline::after(60s)};
};

TEST_P(Crowd, IncrementsInOneStatementAddUp) {
    all_at_once([&] { db->run("Add", options, add_one, 1); });
    EXPECT_EQ(counter(1), writers * rounds);
}

TEST_P(Crowd, IncrementsUnderARowLockAddUp) {
    all_at_once([&] {
        db->transact("Add", options, [](Tx& tx) {
            const auto n = tx.query(read_locked, 1)[0].get<std::int64_t>(0);
            tx.exec(write_value, 1, n + 1);
        });
    });
    EXPECT_EQ(counter(1), writers * rounds);
}

// Each believes something, writes only if it is still so, and looks again if it is not.
TEST_P(Crowd, IncrementsUnderAFenceAddUpAndEveryLossIsReported) {
    std::atomic<int> lost = 0;
    all_at_once([&] {
        for (;;) {
            const auto n = db->run("Read", options, read_plain, 1).rows[0].get<std::int64_t>(0);
            const Guard guard{.what = "counter 1", .key = {std::int64_t{1}}, .tokens = {n}};
            const auto code = test::code_of([&] {
                db->transact("Add", options, [&](Tx& tx) {
                    tx.exec(add_one, 2);
                    tx.fenced(guard, swap, n + 1);
                });
            });
            if (!code) {
                return;
            }
            EXPECT_EQ(code, Code::condition_failed);
            ++lost;
        }
    });
    EXPECT_EQ(counter(1), writers * rounds);
    EXPECT_EQ(counter(2), writers * rounds) << lost << " lost guards must have left nothing behind";
}

TEST_P(Crowd, AReaderNeverSeesHalfATransaction) {
    std::atomic<bool> done = false;
    std::jthread reader([&] {
        TxOptions looking{.deadline = Deadline::after(60s), .read_only = true};
        while (!done) {
            const Rows rows = db->run("Read", looking, read_both).rows;
            ASSERT_EQ(rows[0].get<int>(0), rows[1].get<int>(0));
        }
    });
    all_at_once([&] {
        db->transact("Add", options, [](Tx& tx) {
            tx.exec(add_one, 1);
            tx.exec(add_one, 2);
        });
    });
    done = true;
    reader.join();
    EXPECT_EQ(counter(1), writers * rounds);
}

// Some fail, by an exception of their own, in the middle of their neighbours' work.
TEST_P(Crowd, ThoseWhoFailTakeNothingFromThoseWhoDoNot) {
    std::atomic<int> turn = 0;
    std::atomic<int> kept = 0;
    all_at_once([&] {
        const bool fails = ++turn % 3 == 0;
        try {
            db->transact("Add", options, [&](Tx& tx) {
                tx.exec(add_one, 1);
                if (fails) {
                    throw std::runtime_error("on purpose");
                }
                tx.exec(add_one, 2);
            });
            ++kept;
        } catch (const std::runtime_error&) {
            EXPECT_TRUE(fails);
        }
    });
    EXPECT_EQ(counter(1), kept);
    EXPECT_EQ(counter(2), kept);
}

INSTANTIATE_TEST_SUITE_P(Every, Crowd, test::every_backend(), test::backend_name);

}  // namespace

}  // namespace holdfast::sql

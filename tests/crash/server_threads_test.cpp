// The server dies under its clients, again and again, and comes back with its disk.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/crash.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast {

namespace {

using namespace std::chrono_literals;

constexpr int crashes = 3;
constexpr int writers = 4;
constexpr std::size_t acknowledged_between = 100;

constexpr sql::Statement add{"effect.add", "INSERT INTO effects (id) VALUES ($1)"};
constexpr sql::Statement count{"effect.count", "SELECT count(*) FROM effects"};

// What became of each id, as its writer was told.
class Reports {
public:
    void acknowledged(std::int64_t id) {
        const std::lock_guard lock(mutex_);
        acknowledged_.push_back(id);
        grown_.notify_all();
    }
    void refused(std::int64_t id) {
        const std::lock_guard lock(mutex_);
        refused_.push_back(id);
    }
    bool wait_for_acknowledged(std::size_t more, Deadline deadline) {
        std::unique_lock lock(mutex_);
        const std::size_t wanted = acknowledged_.size() + more;
        return grown_.wait_until(
            lock, deadline.when(), [&] { return acknowledged_.size() >= wanted; });
    }
    // For a writer without a server: until the server is back, or the stop.
    void wait_for_server(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        grown_.wait(lock, stop, [&] { return up_; });
    }
    void server_is(bool up) {
        const std::lock_guard lock(mutex_);
        up_ = up;
        grown_.notify_all();
    }
    // After the last write.
    [[nodiscard]] const std::vector<std::int64_t>& acknowledged() const { return acknowledged_; }
    [[nodiscard]] const std::vector<std::int64_t>& refused() const { return refused_; }

private:
    std::mutex mutex_;
    std::condition_variable_any grown_;
    bool up_ = true;
    std::vector<std::int64_t> acknowledged_;
    std::vector<std::int64_t> refused_;  // Said to be not applied.
};

// By turns in one trip, with a question before the commit, and as a single statement.
void write_one(sql::Database& db, std::int64_t id) {
    if (id % 3 == 0) {
        db.run("Add", {}, add, id);
        return;
    }
    db.transact("Add", {}, [&](sql::Tx& tx) {
        tx.exec(add, id);
        if (id % 3 == 1) {
            (void)tx.query(count);
        }
    });
}

void write_until(const std::stop_token& stop, sql::Database& db, int writer, Reports& reports) {
    for (std::int64_t id = writer; !stop.stop_requested(); id += writers) {
        try {
            write_one(db, id);
            reports.acknowledged(id);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::unavailable) << error.what();
            if (error.outcome() == Outcome::not_applied) {
                reports.refused(id);
            }
        }
    }
}

TEST(ServerKillNine, LosesNothingAcknowledgedAndAppliesNothingRefused) {
    test::PrivatePostgres server({.fsync = true});
    test::Database db(server.address());
    db.execute("CREATE TABLE effects (id bigint NOT NULL)");
    Reports reports;
    {
        std::vector<std::jthread> threads;
        for (int writer = 0; writer < writers; ++writer) {
            threads.emplace_back([&, writer](const std::stop_token& stop) {
                write_until(stop, db, writer, reports);
            });
        }
        for (int crash = 0; crash < crashes; ++crash) {
            EXPECT_TRUE(reports.wait_for_acknowledged(acknowledged_between, Deadline::after(60s)));
            reports.server_is(false);
            server.crash();
            server.start();
            reports.server_is(true);
        }
        EXPECT_TRUE(reports.wait_for_acknowledged(acknowledged_between, Deadline::after(60s)));
    }
    std::vector<std::int64_t> found;
    for (const auto& row : db.look("SELECT id FROM effects")) {
        found.push_back(std::stoll(row.at(0).value()));
    }
    EXPECT_EQ(test::check_statements(reports.acknowledged(), found), test::Verdict{});
    EXPECT_EQ(test::check_statements(reports.refused(), found).lost.size(),
              reports.refused().size())
        << "something that was said to be not applied is there";
}

}  // namespace

}  // namespace holdfast

// Several processes, one file.
#include <future>
#include <string>

#include "sqlite/test/driver_fixture.hpp"
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <holdfast/testing/crash.hpp>

namespace holdfast::sql::sqlite {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* add = "INSERT INTO orders (id, item) VALUES ($1, 'pen')";

// A connection that is not ours, with the write lock.
class Rival {
public:
    explicit Rival(const std::string& path) {
        EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    }
    ~Rival() { let_go(); }
    Rival(const Rival&) = delete;
    Rival& operator=(const Rival&) = delete;

    void let_go() {
        sqlite3_close(db_);
        db_ = nullptr;
    }

private:
    sqlite3* db_ = nullptr;
};

class SqliteProcesses : public DriverStory {
protected:
    std::optional<DatabaseError> refusal(Driver& driver, const AttemptOptions& options) {
        const std::array<Param, 1> args{Param(1)};
        return error_of([&] { driver.run(options, Call{&sql(add), args}, 0); });
    }
};

TEST_F(SqliteProcesses, ALockThatAnotherHoldsUntilTheDeadlineIsUnavailable) {
    const auto driver = open_orders();
    const Rival rival(path());
    AttemptOptions soon = in_time();
    soon.deadline = Deadline::after(5ms);
    const auto error = refusal(*driver, soon);
    EXPECT_EQ(error->code(), Code::unavailable);
    EXPECT_EQ(error->state().text(), "55P03");
    EXPECT_EQ(error->outcome(), Outcome::not_applied);
    EXPECT_THAT(error->what(), HasSubstr("another process"));
    EXPECT_THAT(order_ids(*driver), IsEmpty()) << "readers do not mind";
}

TEST_F(SqliteProcesses, TheBusyTimeoutEndsTheWaitBeforeTheDeadline) {
    static_cast<void>(open_orders());
    const auto driver = open("?busy_timeout=5");
    const Rival rival(path());
    EXPECT_EQ(refusal(*driver, in_time())->state().text(), "55P03");
}

TEST_F(SqliteProcesses, AStopEndsTheWaitForALock) {
    const auto driver = open_orders();
    const Rival rival(path());
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&, &insert = sql(add)] {
        const std::array<Param, 1> args{Param(1)};
        driver->run(until(stop.get_token()), Call{&insert, args}, 0);
    });
    while (driver->pool_stats().in_use == 0) {
        std::this_thread::yield();
    }
    stop.request_stop();
    EXPECT_EQ(error_of([&] { waiting.get(); })->error_class(), ErrorClass::cancelled);
}

// A transaction that queues behind one that waits for the lock waits for the lock too.
TEST_F(SqliteProcesses, EverybodyInLineIsToldAboutTheLock) {
    const auto driver = open_orders();
    Rival rival(path());
    auto first = std::async(std::launch::async, [&, &insert = sql(add)] {
        const std::array<Param, 1> args{Param(1)};
        driver->run(in_time(), Call{&insert, args}, 0);
    });
    await_line(*driver, 1);  // It waits for the lock, and does not only mean to.
    AttemptOptions soon = in_time();
    soon.deadline = Deadline::after(20ms);
    EXPECT_EQ(refusal(*driver, soon)->code(), Code::unavailable);
    rival.let_go();
    EXPECT_NO_THROW(first.get());
    EXPECT_THAT(order_ids(*driver), ElementsAre(1));
}

TEST_F(SqliteProcesses, TwoThatWriteAtOnceBothGetTheirTurn) {
    run(*open_orders(), "CREATE TABLE counter (n INTEGER)");
    run(*open(), "INSERT INTO counter VALUES (0)");
    constexpr int each = 150;
    const auto count = [this](test::Witness& witness) {
        const auto driver = open("");
        for (std::int64_t n = 0; n < each; ++n) {
            driver->attempt(in_time(), [this](Session& session) {
                const auto now = ask(session, sql("SELECT n FROM counter")).rows[0].get<int>(0);
                send(session, sql("UPDATE counter SET n = $1"), now + 1);
            });
            witness.acknowledged(n);
        }
    };
    test::Victim ann(count);
    test::Victim bob(count);
    EXPECT_EQ(ann.join(Deadline::after(60s)).size(), 150U);
    EXPECT_EQ(bob.join(Deadline::after(60s)).size(), 150U);
    EXPECT_EQ(run(*open(""), "SELECT n FROM counter").rows[0].get<int>(0), 2 * each);
}

// A process that never rests must not starve one that writes now and then.
TEST_F(SqliteProcesses, ABusyProcessLeavesTurnsToOthers) {
    static_cast<void>(open_orders());
    test::Victim busy([this](test::Witness& witness) {
        const auto driver = open("");
        const Rendered& insert = sql("INSERT INTO orders (item) VALUES ('pen')");
        std::atomic<std::int64_t> count = 0;
        std::vector<std::jthread> writers;
        for (int i = 0; i < 4; ++i) {
            writers.emplace_back([&] {
                for (;;) {
                    driver->run(in_time(), Call{&insert, {}}, 0);
                    witness.acknowledged(++count);
                }
            });
        }
    });
    const auto driver = open("");
    while (order_ids(*driver).empty()) {
        std::this_thread::yield();
    }
    for (int i = 0; i < 20; ++i) {
        run(*driver, "INSERT INTO orders (item) VALUES ('ink')");
    }
    EXPECT_GT(busy.kill_after(1, Deadline::after(60s)).size(), 0U);
    EXPECT_EQ(run(*driver, "SELECT count(*) FROM orders WHERE item = 'ink'").rows[0].get<int>(0),
              20);
}

}  // namespace
}  // namespace holdfast::sql::sqlite

// The place where another kind of server plugs in, with a double in its place.
#include <holdfast/sql/source.hpp>

#include <atomic>
#include <memory>

#include "postgres/test/fake_server.hpp"
#include <gmock/gmock.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/sql/url.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>
#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast::sql {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Statement one{"test.one", "SELECT 1 AS n"};
constexpr Statement sleep_a_minute{"test.sleep", "SELECT 1 FROM pg_sleep(60)"};
constexpr Statement end_sessions{"test.end_sessions",
                                 "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                                 "WHERE datname = current_database() AND pid <> pg_backend_pid()"};

struct Calls {
    std::atomic<int> prepared = 0;
    std::atomic<int> opened = 0;
    std::atomic<int> failed = 0;
    std::atomic<int> closed = 0;
    std::atomic<bool> refuse = false;
    bool reservoir = false;
    int target = 0;
    std::function<void(int)> shed{};
    std::string host{};  // Of another server than the test's own.
    std::string port = "5432";
};

void wait_until(const std::atomic<int>& count, int reached) {
    for (int now = count; now < reached; now = count) {
        count.wait(now);
    }
}

// A server without notifications and without blocking locks, whose connections need a fresh name
// each: what a token or a permit would be.
class Double final : public ConnectionSource {
public:
    Double(const test::Database& db, Calls& calls)
        : folder_(test::shared_postgres().socket_folder), name_(db.name()), calls_(calls) {}

    [[nodiscard]] const Dialect& dialect() const noexcept override {
        return dialect_of(Product::dsql);
    }

    [[nodiscard]] ConnectParams prepare(Deadline,
                                        const std::stop_token&,
                                        pool::OpenPhases&) override {
        const int number = ++calls_.prepared;
        if (calls_.refuse) {
            throw Error(Code::unauthorized, Outcome::not_applied, "there is no permit today");
        }
        return {{"host", calls_.host.empty() ? folder_ : calls_.host},
                {"port", calls_.port},
                {"dbname", name_},
                {"user", "postgres"},
                {"application_name", "ticket-" + std::to_string(number)}};
    }
    bool opened(const ConnectParams&, const DatabaseError* failure) noexcept override {
        auto& count = failure == nullptr ? calls_.opened : calls_.failed;
        ++count;
        count.notify_all();
        return failure != nullptr && is_login_expired(*failure);
    }
    void closed() noexcept override {
        ++calls_.closed;
        calls_.closed.notify_all();
    }
    [[nodiscard]] pool::Config pool_config(int target) const override {
        return calls_.reservoir ? pool::reservoir(target) : ConnectionSource::pool_config(target);
    }
    void attach(int target, std::function<void(int)> shed) override {
        calls_.target = target;
        calls_.shed = std::move(shed);
    }
    void detach() noexcept override { calls_.shed = nullptr; }

private:
    std::string folder_;
    std::string name_;
    Calls& calls_;
};

class Source : public testing::Test {
protected:
    Source() {
        options.sources["double"] = [this](const Url&) {
            return std::make_unique<Double>(server, calls);
        };
    }

    void point_to(const RefusingServer& refusing) {
        calls.host = "127.0.0.1";
        calls.port = std::to_string(refusing.port());
    }

    test::Database server{test::Backend::postgres};
    Calls calls;
    DatabaseOptions options = test::quick_options();
};

TEST_F(Source, IsAskedOnceForEveryPhysicalConnection) {
    {
        Database db("double:cluster", options);
        for (int i = 0; i < 5; ++i) {
            (void)db.run("One", {}, one);
        }
        EXPECT_EQ(calls.prepared, 1) << "a pooled connection needs no new ticket";
        server.execute(std::string(end_sessions.text()));
        // As a transaction with a question, because a lost single statement is not replayed, and
        // the server may take a moment to hang up.
        db.transact("One", {}, [](Tx& tx) { (void)tx.query(one); });
        EXPECT_EQ(calls.prepared, 2);
        EXPECT_EQ(calls.opened, 2);
    }
    EXPECT_EQ(calls.closed, 2) << "every opening is reported closed in the end";
}

TEST_F(Source, DecidesHowConnectionsAreKeptAndMayTakeTheRightToThemBack) {
    calls.reservoir = true;
    {
        Database db("double:cluster?pool=3", options);
        EXPECT_EQ(calls.target, 3);
        EXPECT_EQ(calls.opened, 3) << "all are open before anybody asks";
        calls.refuse = true;  // And nothing opens in the place of what goes.
        calls.shed(2);
        wait_until(calls.closed, 2);
        (void)db.run("One", {}, one);
    }
    EXPECT_FALSE(calls.shed) << "nobody is told once the pool is gone";
    EXPECT_EQ(calls.closed, 3);
}

// The server ends all sessions while the pool is idle: the next transaction does not notice it.
TEST_F(Source, AReservoirRefillsThoughNobodyAsks) {
    calls.reservoir = true;
    const Database db("double:cluster?pool=3", options);
    server.execute(std::string(end_sessions.text()));
    wait_until(calls.closed, 3);
    wait_until(calls.opened, 6);
}

TEST_F(Source, PlainPostgresMayHaveAReservoirToo) {
    const char joint = server.url().find('?') == std::string::npos ? '?' : '&';
    const Database db(server.url() + joint + "pool=3&reservoir=on", options);
    EXPECT_EQ(db.pool_stats().ready, 3);
}

TEST_F(Source, DecidesTheDialect) {
    Database db("double:cluster", options);
    EXPECT_EQ(db.dialect().product, Product::dsql);
    EXPECT_FALSE(db.dialect().locks_block);
    EXPECT_EQ(db.subscribe("news", [](std::string_view) {}), nullptr);
    db.transact("Notify", {.durability = Durability::relaxed}, [](Tx& tx) {
        tx.notify("news");  // Without a listener, which is not an error.
        (void)tx.query(one);
    });
}

// There a transaction has one time, and so has the hand that moves it.
TEST_F(Source, OfAServerWithoutBlockingLocksGivesATransactionOneTime) {
    std::atomic<std::int64_t> offset_us = 0;
    options.clock_offset_us = &offset_us;
    Database db("double:cluster", options);
    db.transact("Look", {}, [&](Tx& tx) {
        const Timestamp first = tx.now();
        offset_us = 3'600'000'000;
        EXPECT_EQ(tx.now(), first);
    });
    db.transact("Look", {}, [&](Tx& tx) {
        EXPECT_GT(tx.now(), system_clock().wall_now() + std::chrono::minutes{59});
    });
}

TEST_F(Source, ThatHasNoTicketSaysWhy) {
    calls.refuse = true;
    EXPECT_EQ(test::code_of([&] { Database("double:cluster", options); }), Code::unauthorized);
    EXPECT_EQ(calls.opened + calls.failed, 0);
}

// A refused login says 08006 like a broken connection does; its hint tells them apart.
TEST_F(Source, ALoginRefusedForAReasonIsPermanentAndSaysIt) {
    RefusingServer refusing(
        {{.state = "08006",
          .message = "unable to accept connection, access denied",
          .hint = "Wrong user to action mapping. user: admin, action: DbConnect"}});
    point_to(refusing);
    try {
        const Database db("double:cluster", options);
        FAIL() << "it was let in";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unauthorized) << error.what();
        EXPECT_EQ(classify(error), ErrorClass::permanent);
        EXPECT_THAT(error.what(), HasSubstr("Wrong user to action mapping. user: admin"));
        EXPECT_THAT(error.what(), HasSubstr("check the AWS credentials"));
    }
    EXPECT_EQ(calls.prepared, 1) << "another token would be refused as well";
    EXPECT_EQ(calls.failed, 1);
}

TEST_F(Source, ALoginThatIsTooOldIsTriedOnceMoreWithAFreshOne) {
    const RefusingServer::Refusal expired{.state = "08006",
                                          .message = "unable to accept connection, access denied",
                                          .hint = "Signature expired: 20260101T000000Z is now"};
    RefusingServer refusing({expired, expired, expired});
    point_to(refusing);
    EXPECT_EQ(test::code_of([&] { Database("double:cluster", options); }), Code::unauthorized);
    EXPECT_EQ(calls.prepared, 2);
    EXPECT_EQ(calls.failed, 2);
}

TEST_F(Source, ARefusalWithoutAHintMayPass) {
    RefusingServer refusing({{.state = "08006",
                              .message = "unable to accept connection, waking up cluster",
                              .hint = ""}});
    point_to(refusing);
    try {
        const Database db("double:cluster", options);
        FAIL() << "it was let in";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::unavailable) << error.what();
        EXPECT_EQ(classify(error), ErrorClass::connection_lost);
    }
}

// The text of a message decides nothing: both quotas have the words of a refused login in it.
TEST_F(Source, AFullServerIsToldByItsSqlState) {
    const auto refusal_class = [](const char* state) {
        return classify(DatabaseError(classify_opening(SqlState{state}, "Signature expired"),
                                      SqlState{state},
                                      Outcome::not_applied,
                                      "Unable to accept connection, access denied"));
    };
    EXPECT_EQ(refusal_class("53300"), ErrorClass::connection_limit);
    EXPECT_EQ(refusal_class("53400"), ErrorClass::connection_limit);
    EXPECT_EQ(refusal_class("57P03"), ErrorClass::connection_lost);
    EXPECT_EQ(refusal_class("XX000"), ErrorClass::permanent);
    EXPECT_EQ(refusal_class("08006"), ErrorClass::permanent);
}

// That server takes no notice of a request to cancel, so none is sent: it would only cost one of
// the connections that may be opened each second.
TEST_F(Source, ThatCannotCancelIsHungUpOn) {
    test::FaultProxy proxy(test::shared_postgres());
    calls.host = proxy.address().socket_folder;
    Database db("double:cluster", options);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(test::code_of([&] {
                  db.transact("Sleep", {.deadline = Deadline::after(50ms)}, [](Tx& tx) {
                      (void)tx.query(sleep_a_minute);
                  });
              }),
              Code::deadline);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
    EXPECT_EQ(proxy.connections(), 1) << "a request to cancel comes by a connection of its own";
    (void)db.run("One", {}, one);
    EXPECT_EQ(proxy.connections(), 2) << "the connection was given up";
}

TEST_F(Source, TheNameOfADatabaseSaysNotWhoSignsIn) {
    EXPECT_EQ(Database("double://app@cluster.example?pool=1", options).name(), "cluster.example");
}

TEST_F(Source, OfAnUnknownSchemeIsRefused) {
    EXPECT_EQ(test::code_of([&] { Database("oracle:x", options); }), Code::invalid_argument);
}

}  // namespace
}  // namespace holdfast::sql

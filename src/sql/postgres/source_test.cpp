// The place where another kind of server plugs in, with a double in its place.
#include <holdfast/sql/source.hpp>

#include <atomic>
#include <memory>

#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/sql/url.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::sql {
namespace {

constexpr Statement one{"test.one", "SELECT 1 AS n"};
constexpr Statement end_sessions{"test.end_sessions",
                                 "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                                 "WHERE datname = current_database() AND pid <> pg_backend_pid()"};

struct Calls {
    std::atomic<int> prepared = 0;
    std::atomic<int> opened = 0;
    std::atomic<int> failed = 0;
    std::atomic<int> closed = 0;
    std::atomic<bool> refuse = false;
};

// A server without notifications and without blocking locks, whose connections need a fresh name
// each: what a token or a permit would be.
class Double final : public ConnectionSource {
public:
    Double(const test::Database& db, Calls& calls)
        : folder_(test::shared_postgres().socket_folder), name_(db.name()), calls_(calls) {}

    [[nodiscard]] const Dialect& dialect() const noexcept override {
        return dialect_of(Product::dsql);
    }

    [[nodiscard]] ConnectParams prepare(Deadline, const std::stop_token&) override {
        const int number = ++calls_.prepared;
        if (calls_.refuse) {
            throw Error(Code::unauthorized, Outcome::not_applied, "there is no permit today");
        }
        return {{"host", folder_},
                {"dbname", name_},
                {"user", "postgres"},
                {"application_name", "ticket-" + std::to_string(number)}};
    }
    void opened(const ConnectParams&, const DatabaseError* failure) noexcept override {
        ++(failure == nullptr ? calls_.opened : calls_.failed);
    }
    void closed() noexcept override { ++calls_.closed; }

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

TEST_F(Source, DecidesTheDialect) {
    Database db("double:cluster", options);
    EXPECT_EQ(db.dialect().product, Product::dsql);
    EXPECT_FALSE(db.dialect().locks_block);
    EXPECT_EQ(db.subscribe("news", [](std::string_view) {}), nullptr);
    db.transact("Notify", {.durability = Durability::relaxed}, [](Tx& tx) {
        tx.notify("news");  // Nobody can hear it, and that is no error.
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

TEST_F(Source, OfAnUnknownSchemeIsRefused) {
    EXPECT_EQ(test::code_of([&] { Database("oracle:x", options); }), Code::invalid_argument);
}

}  // namespace
}  // namespace holdfast::sql

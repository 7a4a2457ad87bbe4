// What lies in the log of a database when a commit has returned.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

#include "sqlite/test/driver_fixture.hpp"
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <holdfast/base/random.hpp>

namespace holdfast::sql::sqlite {
namespace {

using testing::Ge;
using testing::Le;

using Orders = std::map<std::int64_t, std::size_t>;  // Each item by its length.

constexpr const char* put =
    "INSERT INTO orders (id, item) VALUES ($1, $2) "
    "ON CONFLICT (id) DO UPDATE SET item = excluded.item";

class GatheredLogStory : public DriverStory {
protected:
    // What SQLite by itself makes of the files as they are: the log is read frame by frame, and
    // ends where a checksum is wrong.
    Orders after_a_crash() {
        const std::filesystem::path copy = folder_ / "copy.db";
        for (const char* part : {"", "-wal"}) {
            std::filesystem::copy_file(path() + part,
                                       copy.string() + part,
                                       std::filesystem::copy_options::overwrite_existing);
        }
        std::filesystem::remove(copy.string() + "-shm");
        sqlite3* db = nullptr;
        EXPECT_EQ(::sqlite3_open(copy.c_str(), &db), SQLITE_OK);
        EXPECT_EQ(texts(db, "PRAGMA integrity_check"), "ok");
        Orders orders;
        ::sqlite3_exec(
            db,
            "SELECT id, length(item) FROM orders",
            [](void* out, int, char** values, char**) {
                (*static_cast<Orders*>(out))[std::stoll(values[0])] = std::stoull(values[1]);
                return 0;
            },
            &orders,
            nullptr);
        ::sqlite3_close(db);
        return orders;
    }

    static std::string texts(sqlite3* db, const char* query) {
        std::string all;
        const auto add = [](void* out, int, char** values, char**) {
            *static_cast<std::string*>(out) += values[0];
            return 0;
        };
        EXPECT_EQ(::sqlite3_exec(db, query, add, &all, nullptr), SQLITE_OK);
        return all;
    }

    // Calls of the kernel that wrote, by this process so far.
    static std::int64_t writes() {
        std::ifstream io("/proc/self/io");
        std::string word;
        while (io >> word) {
            if (word == "syscw:") {
                std::int64_t count = 0;
                io >> count;
                return count;
            }
        }
        return 0;
    }

    // Some orders, new and old ones, of which the largest do not fit into the cache together: then
    // SQLite writes some pages to the log before the commit, and writes them anew with it.
    void change(Session& session, Random& random, Orders& orders) {
        const std::uint64_t count = 1 + random.below(40);
        const std::uint64_t bytes_max = random.below(4) == 0 ? 400'000 : 3'000;
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto id = static_cast<std::int64_t>(random.below(60));
            const std::size_t bytes = random.below(bytes_max);
            send(session, sql(put), id, std::string(bytes, 'x'));
            orders[id] = bytes;
        }
    }
};

TEST_F(GatheredLogStory, ACommitOfHundredsOfPagesIsWrittenToItsLogInAFewPieces) {
    const auto driver = open_orders();
    const std::int64_t before = writes();
    driver->attempt(in_time(), [&](Session& session) {
        for (int id = 0; id < 200; ++id) {
            send(session, sql(put), id, std::string(3'000, 'x'));
        }
    });
    const std::int64_t used = writes() - before;
    EXPECT_THAT(used, Ge(1));
    EXPECT_THAT(used, Le(20)) << "a page is no write of its own";
    EXPECT_EQ(after_a_crash().size(), 200U);
}

// The worst moment: what did not fit into the cache is on its way to the log, the transaction is
// rolled back, and another process commits to the same place.
TEST_F(GatheredLogStory, PagesOfATransactionThatWasRolledBackNeverComeDownOnThoseOfAnother) {
    const auto ours = open_orders();
    const auto theirs = open();
    const auto put_large = [this](Session& session, int first, int count) {
        for (int id = first; id < first + count; ++id) {
            send(session, sql(put), id, std::string(250'000, 'x'));
        }
    };
    const auto too_much = [&](Session& session) {
        put_large(session, 100, 20);
        throw std::runtime_error("the customer left");
    };
    EXPECT_THROW(ours->attempt(in_time(), too_much), std::runtime_error);
    theirs->attempt(in_time(), [&](Session& session) { put_large(session, 1, 12); });
    run(*ours, put, 50, "small");

    const Orders orders = after_a_crash();
    EXPECT_EQ(orders.size(), 13U);
    EXPECT_EQ(orders.count(50), 1U);
    EXPECT_EQ(orders.count(100), 0U);
}

// As many as chance makes: transactions of all sizes, by two, some rolled back.
TEST_F(GatheredLogStory, WhatIsCommittedIsInTheLogAndNothingElse) {
    for (const char* synchronous : {"full", "normal"}) {
        SCOPED_TRACE(synchronous);
        const std::string options = std::string("?create=1&synchronous=") + synchronous;
        const auto ours = open_orders(options);
        const auto theirs = open(options);  // As another process would have it.
        run(*ours, "DELETE FROM orders");
        const std::uint64_t seed = secure_seed();
        SCOPED_TRACE(seed);
        Random random{seed};
        Orders committed;
        for (int round = 0; round < 20; ++round) {
            Driver& driver = random.below(2) == 0 ? *ours : *theirs;
            Orders changed = committed;
            const bool fails = random.below(3) == 0;
            const auto body = [&](Session& session) {
                change(session, random, changed);
                if (fails) {
                    throw std::runtime_error("the customer left");
                }
            };
            if (fails) {
                EXPECT_THROW(driver.attempt(in_time(), body), std::runtime_error);
            } else {
                driver.attempt(in_time(), body);
                committed = changed;
            }
            ASSERT_EQ(after_a_crash(), committed) << "round " << round;
        }
    }
}

}  // namespace
}  // namespace holdfast::sql::sqlite

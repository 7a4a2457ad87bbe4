// Databases that hold the tables of the store, and helpers for tests of it.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/store/catalogue.hpp>
#include <holdfast/store/execution.hpp>
#include <holdfast/store/history.hpp>
#include <holdfast/store/history_tasks.hpp>
#include <holdfast/store/shard.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/crowd.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::store::tests {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

inline sql::Bytes bytes(std::string_view text) {
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
}
inline Blob blob(std::string_view text) {
    return {.data = bytes(text), .encoding = "Proto3"};
}
inline sql::Timestamp at(std::chrono::microseconds since_epoch) {
    return sql::Timestamp{since_epoch};
}

// An empty database with the tables of the store.
class MigratedDatabase : public test::Database {
public:
    explicit MigratedDatabase(test::Backend backend) : test::Database(backend, schema_part()) {}
};

// Of the statements' stories.
inline constexpr std::int32_t shard_7 = 7;

// Statements one by one: what the database itself says to each.
class StatementStory : public testing::TestWithParam<test::Backend> {
public:
    template <class... A>
    std::int64_t count(const sql::Statement& statement, const A&... args) {
        return db->run("Test", {}, statement, args...).changed;
    }
    // The same under a guard: whose row, and which tokens it must hold.
    template <class... A>
    std::int64_t count(const sql::FencedStatement& statement,
                       std::vector<sql::Owned> key,
                       std::vector<sql::Owned> tokens,
                       const A&... args) {
        const sql::Guard guard{
            .what = "the row", .key = std::move(key), .tokens = std::move(tokens)};
        return db->try_run("Test", {}, guard, statement, args...) ? 1 : 0;
    }
    template <class... A>
    sql::Rows rows(const sql::Statement& statement, const A&... args) {
        return db->run("Test", {}, statement, args...).rows;
    }
    // A locked read, in a transaction that commits.
    template <class... A>
    sql::Rows locked(const sql::Statement& statement, const A&... args) {
        return db->transact("Test", {}, [&](sql::Tx& tx) { return tx.query(statement, args...); });
    }
    template <class... A>
    std::optional<Code> code(const sql::Statement& statement, const A&... args) {
        return test::code_of([&] { (void)count(statement, args...); });
    }

    MigratedDatabase db{GetParam()};
};

using test::all_at_once;

// The error of this type that `body` throws; another, or none, is the test's failure.
template <class E, class Body>
E error_of(Body&& body) {
    try {
        std::forward<Body>(body)();
    } catch (const E& error) {
        return error;
    }
    throw std::logic_error("nothing was thrown");
}

}  // namespace holdfast::store::tests

// What is said of all statements and all transactions of the store.
#include <holdfast/store/catalogue.hpp>

#include <array>
#include <set>

#include "cluster/statements_cluster.hpp"
#include "cluster/statements_namespace.hpp"
#include "cluster/statements_nexus.hpp"
#include "execution/statements_execution.hpp"
#include "execution/statements_shard.hpp"
#include "history/statements.hpp"
#include "matching/statements.hpp"
#include "queue/statements.hpp"
#include "transaction.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/testing/catalogue_rules.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::store {
namespace {

using testing::IsEmpty;

TEST(StoreCatalogue, KeepsTheRulesOfStatements) {
    EXPECT_THAT(test::broken_rules(catalogue()), IsEmpty());
}

TEST(StoreCatalogue, EveryStatementHasANameOfItsOwn) {
    std::set<std::string_view> names;
    for (const sql::Statement* statement : catalogue().statements) {
        EXPECT_TRUE(names.insert(statement->name()).second) << statement->name();
        EXPECT_TRUE(statement->name().starts_with("store.")) << statement->name();
    }
    for (const sql::FencedStatement* statement : catalogue().fenced) {
        EXPECT_TRUE(names.insert(statement->name()).second) << statement->name();
    }
}

// All of one type, which is not that of other statements.
constexpr std::array locking_reads{
    &statements::lock_cluster,
    &statements::lock_execution,
    &statements::lock_current,
    &statements::lock_current_chasm,
    &statements::lock_branch,
    &statements::lock_task_queue,
    &statements::lock_task_queue_v2,
    &statements::lock_namespace_metadata,
    &statements::lock_endpoints_version,
    &statements::lock_endpoint,
    &statements::lock_queue_metadata,
    &statements::lock_queue,
    &statements::read_lock_shard,
    &statements::write_lock_shard,
};

template <class Read>
concept RunsAlone = requires(sql::Database& db, const Read& read, const Operation& operation) {
    run(db, operation, Call{}, read, 7);
};

TEST(StoreCatalogue, ALockOutsideATransactionDoesNotCompile) {
    HOLDFAST_CHECK("store 23");
    static_assert(RunsAlone<sql::Statement>);
    static_assert(!RunsAlone<LockingRead>);
    const std::set<const sql::Statement*> known(locking_reads.begin(), locking_reads.end());
    for (const sql::Statement* statement : catalogue().statements) {
        const bool locks = statement->text().ends_with("{for_update}") ||
                           statement->text().ends_with("{for_key_share}");
        EXPECT_EQ(known.contains(statement), locks) << statement->name();
    }
}

TEST(StoreCatalogue, EveryTransactionSaysWhyItIsRightUnderSnapshotIsolation) {
    std::set<std::string_view> names;
    for (const Operation* operation : operations()) {
        EXPECT_TRUE(names.insert(operation->name).second) << operation->name;
        EXPECT_FALSE(operation->proof.empty()) << operation->name;
    }
    EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace holdfast::store

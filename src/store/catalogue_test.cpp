// What is said of all statements and all transactions of the store.
#include <holdfast/store/catalogue.hpp>

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/testing/catalogue_rules.hpp>

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
        EXPECT_TRUE(names.insert(statement->write().name()).second) << statement->write().name();
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

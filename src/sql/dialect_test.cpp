#include <holdfast/sql/dialect.hpp>

#include <limits>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql {
namespace {

TEST(Dialect, IsFoundByItsName) {
    for (const Dialect& dialect : every_dialect()) {
        EXPECT_EQ(&dialect_named(dialect.name), &dialect);
        EXPECT_EQ(&dialect_of(dialect.product), &dialect);
    }
    EXPECT_EQ(test::code_of([] { (void)dialect_named("oracle"); }), Code::invalid_argument);
}

TEST(Dialect, OnlyAFileIsEmbedded) {
    EXPECT_TRUE(dialect_named("sqlite").embedded);
    EXPECT_FALSE(dialect_named("postgres").embedded);
    EXPECT_FALSE(dialect_named("dsql").embedded);
}

// The service refuses keys of more than 1 KiB and values of more than 1 MiB.
TEST(Dialect, StatesTheLimitsOfKeysAndValues) {
    EXPECT_EQ(dialect_named("dsql").key_bytes_max, 1000U);
    EXPECT_EQ(dialect_named("dsql").value_bytes_max, 1'048'576U);
    for (const char* const name : {"sqlite", "postgres"}) {
        EXPECT_EQ(dialect_named(name).key_bytes_max, 1700U);
        EXPECT_EQ(dialect_named(name).value_bytes_max, std::numeric_limits<std::size_t>::max());
    }
}

}  // namespace
}  // namespace holdfast::sql

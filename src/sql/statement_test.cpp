#include <holdfast/sql/statement.hpp>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql {
namespace {

Rendered rendered(Product product, std::string_view text) {
    return render(dialect_of(product), "test", text);
}

TEST(Statement, SpellsParametersAsItsDatabaseDoes) {
    constexpr std::string_view text = "SELECT a FROM t WHERE b = $2 AND c = $1 AND d = $2";
    EXPECT_EQ(rendered(Product::postgres, text).text, text);
    EXPECT_EQ(rendered(Product::sqlite, text).text,
              "SELECT a FROM t WHERE b = ?2 AND c = ?1 AND d = ?2");
    EXPECT_EQ(rendered(Product::sqlite, text).arguments, 2U);
}

TEST(Statement, LeavesQuotedTextAndCommentsAlone) {
    constexpr std::string_view text =
        "SELECT '$1 {x} it''s', \"$2{y}\" -- $3 {z}\n /* $4 {w} */ WHERE a = $1";
    EXPECT_EQ(rendered(Product::postgres, text).text, text);
    EXPECT_EQ(rendered(Product::postgres, text).arguments, 1U);
}

TEST(Statement, FillsTheRowLockOnlyWhereThereIsOne) {
    constexpr std::string_view text = "SELECT v FROM t WHERE id = $1 {for_update}";
    EXPECT_EQ(rendered(Product::postgres, text).text, "SELECT v FROM t WHERE id = $1 FOR UPDATE");
    EXPECT_EQ(rendered(Product::dsql, text).text, "SELECT v FROM t WHERE id = $1 FOR UPDATE");
    EXPECT_EQ(rendered(Product::sqlite, text).text, "SELECT v FROM t WHERE id = ?1 ");
}

// DSQL locks one row by its key, and has no locked rows to skip.
TEST(Statement, PassesOverLockedRowsOnlyWhereSomebodyWouldWait) {
    constexpr std::string_view text = "SELECT v FROM t ORDER BY v LIMIT $1 {skip_locked}";
    EXPECT_EQ(rendered(Product::postgres, text).text,
              "SELECT v FROM t ORDER BY v LIMIT $1 FOR UPDATE SKIP LOCKED");
    EXPECT_EQ(rendered(Product::dsql, text).text, "SELECT v FROM t ORDER BY v LIMIT $1 ");
    EXPECT_EQ(rendered(Product::sqlite, text).text, "SELECT v FROM t ORDER BY v LIMIT ?1 ");
}

TEST(Statement, GivesTheClockAParameterBehindTheCallersOwn) {
    const Rendered lite =
        rendered(Product::sqlite, "UPDATE t SET a = {now_us} + $1 WHERE b < {now_us}");
    EXPECT_EQ(lite.text, "UPDATE t SET a = ?2 + ?1 WHERE b < ?2");
    EXPECT_EQ(lite.arguments, 1U);
    EXPECT_EQ(lite.clocks, std::vector{ClockReading::now});
    const Rendered server = rendered(Product::postgres, "SELECT {now_us}");
    EXPECT_NE(server.text.find("clock_timestamp()"), std::string::npos);
    EXPECT_NE(server.text.find("$1"), std::string::npos);
    EXPECT_EQ(server.arguments, 0U);
}

// A file has a clock of leases; a server has one clock for everything.
TEST(Statement, GivesTheClockOfLeasesAParameterOfItsOwnWhereThereIsOne) {
    constexpr std::string_view text =
        "SELECT {lease_us} - $1, {now_us}, {lease_epoch_us}, {lease_us}";
    const Rendered lite = rendered(Product::sqlite, text);
    EXPECT_EQ(lite.text, "SELECT ?2 - ?1, ?3, ?4, ?2");
    EXPECT_EQ(lite.clocks,
              (std::vector{ClockReading::lease, ClockReading::now, ClockReading::lease_epoch}));
    for (const Product product : {Product::postgres, Product::dsql}) {
        const Rendered server = rendered(product, text);
        EXPECT_EQ(server.clocks, std::vector{ClockReading::now});
        EXPECT_EQ(server.text.find("$3"), std::string::npos);
        EXPECT_NE(server.text.find(", 0, "), std::string::npos);
    }
}

TEST(Statement, KnowsWhetherItWrites) {
    EXPECT_FALSE(rendered(Product::sqlite, "SELECT 1").writes);
    EXPECT_FALSE(rendered(Product::sqlite, " \n select 1").writes);
    EXPECT_TRUE(rendered(Product::sqlite, "INSERT INTO t VALUES ($1) RETURNING id").writes);
    EXPECT_TRUE(rendered(Product::sqlite, "WITH x AS (SELECT 1) DELETE FROM t").writes);
}

TEST(Statement, RefusesAGapAnUnknownHoleAndAStrayDollar) {
    for (const std::string_view text : {"SELECT $1, $3",
                                        "SELECT {nothing}",
                                        "SELECT $",
                                        "SELECT $x",
                                        "SELECT $0",
                                        "SELECT {now_us"}) {
        EXPECT_EQ(test::code_of([&] { (void)rendered(Product::postgres, text); }),
                  Code::invalid_argument)
            << text;
    }
}

}  // namespace
}  // namespace holdfast::sql

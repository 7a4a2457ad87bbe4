// Rules that every statement of this floor keeps, read from PostgreSQL's own parse tree. Floors
// above run the same checks over their catalogues.
#include <holdfast/sql/catalogue.hpp>

#include <gtest/gtest.h>

#include <holdfast/testing/catalogue_rules.hpp>

namespace holdfast::sql {
namespace {

TEST(Catalogue, EveryStatementKeepsTheRules) {
    EXPECT_EQ(test::broken_rules(catalogue()), std::vector<std::string>{});
}

constexpr std::array<std::string_view, 1> tokens{"range_id"};
constexpr std::array guarded{GuardedTable{"shards", tokens}};

constexpr Statement unguarded{"bad.update", "UPDATE shards SET data = $1 WHERE shard_id = $2"};
constexpr Statement unguarded_delete{"bad.delete", "DELETE FROM shards WHERE shard_id = $1"};
constexpr Statement unguarded_upsert{"bad.upsert",
                                     "INSERT INTO shards (shard_id, data) VALUES ($1, $2) "
                                     "ON CONFLICT (shard_id) DO UPDATE SET data = excluded.data"};
constexpr Statement hidden{
    "bad.hidden", "WITH x AS (DELETE FROM shards WHERE shard_id = $1 RETURNING 1) SELECT * FROM x"};
constexpr Statement shared_lock{"bad.share",
                                "SELECT range_id FROM shards WHERE shard_id = $1 FOR SHARE"};
constexpr Statement nonsense{"bad.text", "SELEC 1"};
constexpr FencedStatement toothless{
    "bad.fence",
    "UPDATE shards SET data = $3, range_id = $2 WHERE shard_id = $1",
    "SELECT range_id FROM shards WHERE shard_id = $1"};
constexpr FencedStatement good{"good.fence",
                               "UPDATE shards SET data = $3 WHERE shard_id = $1 AND range_id = $2",
                               "SELECT range_id FROM shards WHERE shard_id = $1"};

std::size_t findings(const Statement& statement) {
    const std::array<const Statement*, 1> one{&statement};
    return test::broken_rules(
               Catalogue{.floor = "test", .statements = one, .fenced = {}, .guarded = guarded})
        .size();
}

std::size_t findings(const FencedStatement& statement) {
    const std::array<const FencedStatement*, 1> one{&statement};
    return test::broken_rules(
               Catalogue{.floor = "test", .statements = {}, .fenced = one, .guarded = guarded})
        .size();
}

TEST(Catalogue, AWriteToAGuardedTableWithoutItsGuardIsFound) {
    EXPECT_EQ(findings(unguarded), 1U);
    EXPECT_EQ(findings(unguarded_delete), 1U);
    EXPECT_EQ(findings(unguarded_upsert), 1U);
    EXPECT_GE(findings(hidden), 1U);
    EXPECT_EQ(findings(toothless), 1U);
    EXPECT_EQ(findings(good), 0U);
}

TEST(Catalogue, ASharedRowLockAndNonsenseAreFound) {
    EXPECT_GE(findings(shared_lock), 1U);
    EXPECT_GE(findings(nonsense), 1U);
}

}  // namespace
}  // namespace holdfast::sql

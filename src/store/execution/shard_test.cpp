#include "test/store_fixture.hpp"

namespace holdfast::store::tests {
namespace {

class ShardStory : public testing::TestWithParam<test::Backend> {
protected:
    MigratedDatabase db{GetParam()};
    Shards shards{db};
    const Shard first{.id = ShardId{3}, .range = RangeId{1}, .info = blob("first")};
};

TEST_P(ShardStory, AShardIsCreatedOnceAndThenStaysAsItIs) {
    HOLDFAST_CHECK("store 124");
    EXPECT_EQ(shards.find(first.id), std::nullopt);
    EXPECT_EQ(shards.get_or_create(first), first);
    HOLDFAST_CHECK("store 125");
    EXPECT_EQ(shards.get_or_create({.id = first.id, .range = RangeId{9}, .info = blob("other")}),
              first);
    EXPECT_EQ(shards.find(first.id), first);
}

TEST_P(ShardStory, OnlyTheOwnerOfTheRangeCanStoreOrTakeTheShard) {
    (void)shards.get_or_create(first);
    HOLDFAST_CHECK("store 127");
    const Shard taken{.id = first.id, .range = RangeId{2}, .info = blob("bob's")};
    shards.update(taken, RangeId{1});
    EXPECT_EQ(shards.find(first.id), taken);

    // Ann owned the shard under range 1, was paused, and wakes up sure of herself.
    HOLDFAST_CHECK("store 126");
    const auto lost = error_of<ShardOwnershipLost>([&] {
        shards.update({.id = first.id, .range = RangeId{2}, .info = blob("ann's")}, RangeId{1});
    });
    EXPECT_EQ(lost.found(), RangeId{2});
    EXPECT_EQ(lost.lease(), (ShardLease{.shard = first.id, .range = RangeId{1}}));
    EXPECT_EQ(lost.outcome(), Outcome::not_applied);
    EXPECT_EQ(shards.find(first.id), taken);

    EXPECT_NO_THROW(shards.assert_ownership({.shard = first.id, .range = RangeId{2}}));
    EXPECT_THROW(shards.assert_ownership({.shard = first.id, .range = RangeId{1}}),
                 ShardOwnershipLost);
    const ShardLease nowhere{.shard = ShardId{4}, .range = RangeId{1}};
    EXPECT_EQ(error_of<ShardOwnershipLost>([&] { shards.assert_ownership(nowhere); }).found(),
              std::nullopt);
}

TEST_P(ShardStory, WhatCannotBeAShardIsRefusedAtTheDoor) {
    EXPECT_EQ(test::code_of([&] { (void)shards.find(ShardId{0}); }), Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { shards.update(first, RangeId{2}); }), Code::invalid_argument)
        << "a range never shrinks";
    if (GetParam() == test::Backend::dsql) {
        const Shard large{.id = first.id,
                          .range = RangeId{1},
                          .info = {.data = sql::Bytes((1U << 20U) + 1), .encoding = "Proto3"}};
        EXPECT_THROW((void)shards.get_or_create(large), TransactionSizeLimit);
    }
    // Last, because the database is stopped.
    HOLDFAST_CHECK("store 129");
    db->stop(Deadline::after(5s));
    EXPECT_EQ(test::code_of([&] { (void)shards.find(first.id); }), Code::unavailable);
    EXPECT_EQ(test::outcome_of([&] { shards.update(first, first.range); }), Outcome::not_applied);
}

INSTANTIATE_TEST_SUITE_P(Every, ShardStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests

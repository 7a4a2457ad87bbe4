// Tasks of the history service in named queues.
#include <holdfast/store/history_task_queue.hpp>

#include "test/store_fixture.hpp"

#include <holdfast/sql/error.hpp>

namespace holdfast::store::tests {
namespace {

using testing::HasSubstr;

class HistoryTaskQueueStory : public testing::TestWithParam<test::Backend> {
public:
    MigratedDatabase db{GetParam()};
    HistoryTaskQueues queues{db};
    NamedQueues named{db};
    const HistoryTaskQueue from_east{
        .category = Category::timer, .source_cluster = "east", .target_cluster = "west"};
};

TEST_P(HistoryTaskQueueStory, TasksAreReadInPagesAndDeletedInTheirOrder) {
    HOLDFAST_CHECK("store 123");
    EXPECT_THROW(queues.enqueue(from_east, ShardId{7}, blob("early")), NotFound);
    queues.create(from_east);
    EXPECT_THROW(queues.create(from_east), QueueAlreadyExists);
    const Blob json{.data = bytes("{}"), .encoding = "Json"};
    EXPECT_EQ(queues.enqueue(from_east, ShardId{7}, blob("zero")), 0);
    EXPECT_EQ(queues.enqueue(from_east, ShardId{2'147'483'647}, json), 1);
    EXPECT_EQ(queues.enqueue(from_east, ShardId{7}, blob("two")), 2);

    const QueuedHistoryTask zero{.id = 0, .shard = ShardId{7}, .task = blob("zero")};
    const QueuedHistoryTask one{.id = 1, .shard = ShardId{2'147'483'647}, .task = json};
    const QueuedHistoryTask two{.id = 2, .shard = ShardId{7}, .task = blob("two")};
    EXPECT_THAT(queues.read(from_east, 2), ElementsAre(zero, one));
    EXPECT_THAT(queues.read(from_east, 2, 1), ElementsAre(two));
    EXPECT_THAT(queues.read(from_east, 2, 2), IsEmpty());
    EXPECT_EQ(queues.remove_up_to(from_east, 1), 2);
    EXPECT_THAT(queues.read(from_east, 10), ElementsAre(two));
    EXPECT_EQ(queues.enqueue(from_east, ShardId{7}, blob("three")), 3);
}

TEST_P(HistoryTaskQueueStory, EveryPairOfClustersHasAQueueOfItsOwn) {
    const auto name = [](const std::string& source, const std::string& target) {
        return stored_name({.source_cluster = source, .target_cluster = target}).name;
    };
    EXPECT_NE(name("a", "b/c"), name("a/b", "c"));
    EXPECT_NE(name("a", "b"), name("b", "a"));
    HistoryTaskQueue normal = from_east;
    normal.kind = HistoryQueueKind::normal;
    HistoryTaskQueue transfer = from_east;
    transfer.category = Category::transfer;
    for (const HistoryTaskQueue& queue : {from_east, normal, transfer}) {
        queues.create(queue);
        EXPECT_EQ(queues.enqueue(queue, ShardId{1}, blob("first")), 0);
    }
    const auto refuses = [&](const std::function<void()>& call) {
        return test::code_of(call) == Code::invalid_argument;
    };
    EXPECT_TRUE(refuses([&] { (void)name("", "b"); }));
    EXPECT_TRUE(refuses([&] { (void)name(std::string(128, 'a'), std::string(128, 'b')); }));
    EXPECT_TRUE(refuses([&] { queues.enqueue(normal, ShardId{0}, blob("task")); }));
    EXPECT_TRUE(refuses([&] { queues.enqueue(normal, ShardId{1}, {}); }));
    EXPECT_TRUE(refuses([&] { (void)queues.read(normal, 0); }));
}

TEST_P(HistoryTaskQueueStory, WhatIsNoTaskIsNamedAndErrorsComeOutAsTheyAre) {
    HOLDFAST_CHECK("store 123");
    queues.create(from_east);
    queues.enqueue(from_east, ShardId{7}, blob("task"));
    const Blob no_shard{.data = bytes(std::string_view("\0\0\0\0task", 8)),
                        .encoding = "HistoryTask/Proto3"};
    const Blob too_short{.data = bytes("task"), .encoding = "HistoryTask/Proto3"};
    for (const Blob& damaged : {blob("no task"), too_short, no_shard}) {
        const std::int64_t id = named.enqueue(stored_name(from_east), damaged);
        const auto error = error_of<DamagedData>([&] { (void)queues.read(from_east, 10, id - 1); });
        EXPECT_THAT(error.what(), HasSubstr("message " + std::to_string(id)));
    }
    EXPECT_THAT(queues.read(from_east, 1), SizeIs(1)) << "what lies before it is read";

    // Every statement that needs the table fails.
    db.execute("ALTER TABLE queue_messages RENAME TO away");
    const auto trouble = [](const std::function<void()>& call) {
        const auto error = error_of<sql::DatabaseError>(call);
        return std::tuple(error.code(), error.outcome(), std::string(error.what()));
    };
    EXPECT_EQ(trouble([&] { (void)queues.read(from_east, 10); }),
              trouble([&] { (void)named.read(stored_name(from_east), 10); }));
    EXPECT_EQ(trouble([&] { queues.remove_up_to(from_east, 0); }),
              trouble([&] { named.remove_up_to(stored_name(from_east), 0); }));
    EXPECT_EQ(trouble([&] { queues.enqueue(from_east, ShardId{7}, blob("lost")); }),
              trouble([&] { named.enqueue(stored_name(from_east), blob("lost")); }));
}

INSTANTIATE_TEST_SUITE_P(Every, HistoryTaskQueueStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests

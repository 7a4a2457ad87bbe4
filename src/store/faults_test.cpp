// Named queues, and all that stands on transactions, when the database fails in the middle.
#include "execution/test/run_fixture.hpp"

#include <holdfast/store/queue.hpp>
#include <holdfast/testing/dsql.hpp>
#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast::store::tests {
namespace {

using testing::HasSubstr;

class QueueFaults : public testing::TestWithParam<test::Backend> {
public:
    QueueFaults() {
        named.create(orders);
        for (int i = 0; i < 3; ++i) {
            named.enqueue(orders, blob("message"));
        }
    }
    // A table that is away: every statement that needs it fails.
    void take_away(const std::string& table) {
        db.execute("ALTER TABLE " + table + " RENAME TO away");
    }
    void give_back(const std::string& table) { db.execute("ALTER TABLE away RENAME TO " + table); }
    static std::string message(const std::function<void()>& body) {
        const auto error = error_of<Error>(body);
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
        return error.what();
    }

    MigratedDatabase db{GetParam()};
    NamedQueues named{db};
    const QueueName orders{.type = 3, .name = "orders"};
};

TEST_P(QueueFaults, AStepThatFailsIsNamedAndNothingIsLeftOfTheOthers) {
    take_away("queue_messages");
    HOLDFAST_CHECK("store 98");
    EXPECT_THAT(message([&] { named.enqueue(orders, blob("lost")); }), HasSubstr("queue_messages"));
    HOLDFAST_CHECK("store 101");
    EXPECT_THAT(message([&] { named.remove_up_to(orders, 1); }), HasSubstr("queue_messages"));
    EXPECT_THAT(message([&] { (void)named.list(3, 10); }), HasSubstr("queue_messages"));
    HOLDFAST_CHECK("store 102");
    EXPECT_THAT(message([&] { (void)named.read(orders, 10); }), HasSubstr("queue_messages"));
    give_back("queue_messages");
    EXPECT_EQ(named.list(3, 10),
              (std::vector{ListedQueue{.name = "orders", .messages = 3, .last_id = 2}}));

    HOLDFAST_CHECK("store 103");
    take_away("queues");
    EXPECT_THAT(message([&] { named.create({.type = 3, .name = "b"}); }), HasSubstr("queues"));
    EXPECT_THAT(message([&] { (void)named.read(orders, 10); }), HasSubstr("queues"));
    EXPECT_THAT(message([&] { (void)named.list(3, 10); }), HasSubstr("queues"));
    give_back("queues");
    HOLDFAST_CHECK("store 99");
    db->stop(Deadline::after(5s));
    EXPECT_EQ(test::code_of([&] { named.enqueue(orders, blob("late")); }), Code::unavailable);
    EXPECT_EQ(db.number("SELECT count(*) FROM queue_messages"), 3);
}

// The messages are looked at, and then their queue cannot be written.
TEST_P(QueueFaults, ARangeWhoseEndCannotBeWrittenStaysWhole) {
    HOLDFAST_CHECK("store 105");
    const QueueName other{.type = 3, .name = "other"};
    named.create(other);
    for (int i = 0; i < 3; ++i) {
        named.enqueue(other, blob("message"));
    }
    named.remove_up_to(other, 1);
    // From now on no two queues may begin at the same message.
    db.execute("CREATE UNIQUE INDEX one_each ON queues (metadata_payload)");
    EXPECT_THAT(message([&] { named.remove_up_to(orders, 1); }), HasSubstr("update_queue"));
    EXPECT_EQ(named.list(3, 10).at(0),
              (ListedQueue{.name = "orders", .messages = 3, .last_id = 2}));
    EXPECT_THAT(named.read(orders, 10), SizeIs(3));
    EXPECT_EQ(named.remove_up_to(orders, 0), 1) << "another end can be";
}

INSTANTIATE_TEST_SUITE_P(Every, QueueFaults, test::every_backend(), test::backend_name);

class CommitFaults : public testing::Test {
public:
    MigratedDatabase direct{test::Backend::postgres};
    test::FaultProxy proxy{test::shared_postgres()};
    sql::Database through{proxy.address().url(direct.name()) + "&pool=1", direct.options()};
};

// The worst moment of a write: it is in the database, and its writer does not know.
TEST_F(CommitFaults, AWriteWhoseAnswerIsLostIsUnknownAndIsNotRepeated) {
    HOLDFAST_CHECK("store 100");
    NamedQueues named{through};
    const QueueName orders{.type = 3, .name = "orders"};
    named.create(orders);
    proxy.arm({.from = test::Side::server, .type = 'C', .containing = "COMMIT"},
              test::Fault::lose_answer);
    EXPECT_EQ(test::outcome_of([&] { named.enqueue(orders, blob("once")); }), Outcome::unknown);
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(5s))) << "or nothing was tested";
    EXPECT_EQ(direct.number("SELECT count(*) FROM queue_messages"), 1);

    // The owner of a shard takes it again, and then knows what was applied.
    Shards shards{through};
    Executions executions{shards};
    const ShardLease lease{.shard = ShardId{7}, .range = RangeId{1}};
    (void)shards.get_or_create({.id = lease.shard, .range = lease.range, .info = {}});
    const Snapshot made =
        RunStory::snapshot({.ns = NamespaceId::random(), .workflow_id = "order"}, RunId::random());
    proxy.arm({.from = test::Side::client, .containing = "COMMIT"}, test::Fault::cut);
    const auto lost =
        test::outcome_of([&] { executions.create({.lease = lease, .snapshot = made}); });
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(5s))) << "or nothing was tested";
    EXPECT_TRUE(lost.has_value());
    shards.update({.id = lease.shard, .range = RangeId{2}, .info = {}}, lease.range);
    EXPECT_THROW(executions.create({.lease = lease, .snapshot = made}), ShardOwnershipLost);
    EXPECT_EQ(executions.find(lease.shard, made.workflow, made.current.run), std::nullopt);
}

TEST_F(CommitFaults, AWriteThatCannotBeBegunIsNotAppliedAndSaysWhy) {
    HOLDFAST_CHECK("store 99");
    NamedQueues named{through};
    const QueueName orders{.type = 3, .name = "orders"};
    named.create(orders);
    proxy.refuse(true);
    proxy.cut_all();
    const auto error = error_of<Error>(
        [&] { named.enqueue(orders, blob("never"), {.deadline = Deadline::after(20s)}); });
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_EQ(error.outcome(), Outcome::not_applied);
    EXPECT_THAT(error.what(), HasSubstr("connection")) << "or nobody knows what to do";
    EXPECT_EQ(direct.number("SELECT count(*) FROM queue_messages"), 0);
}

// The same where the cluster hangs up at the commit, or says that it does not know.
TEST(ClusterFaults, ACommitThatFailsIsUnknownAndIsNotRepeated) {
    HOLDFAST_CHECK("store 100");
    MigratedDatabase db{test::Backend::dsql};
    NamedQueues named{db};
    const QueueName orders{.type = 3, .name = "orders"};
    named.create(orders);
    std::int64_t there = 0;
    for (const auto& [fault, applied] : {std::pair{dsql::GatewayFault::hang_up_after, 1},
                                         {dsql::GatewayFault::hang_up, 0},
                                         {dsql::GatewayFault::unavailable_after, 1},
                                         {dsql::GatewayFault::unavailable, 0}}) {
        test::shared_gateway().arm(
            {.point = dsql::FaultPoint::commit, .fault = fault, .cluster = db.name()});
        EXPECT_EQ(test::outcome_of([&] { named.enqueue(orders, blob("once")); }), Outcome::unknown);
        there += applied;
        EXPECT_EQ(db.number("SELECT count(*) FROM queue_messages"), there);
    }
    test::shared_gateway().disarm();
    EXPECT_EQ(named.enqueue(orders, blob("next")), there) << "ids go on where they are";
}

}  // namespace
}  // namespace holdfast::store::tests

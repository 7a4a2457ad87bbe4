// Named queues, and all that stands on transactions, when the database fails in the middle.
#include "run_fixture.hpp"

#include <holdfast/store/queue.hpp>
#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast::store::stories {
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
    HOLDFAST_CHECK("store 105");
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

}  // namespace
}  // namespace holdfast::store::stories

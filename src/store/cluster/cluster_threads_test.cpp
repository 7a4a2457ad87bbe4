// Namespaces, queues and members under many hands.
#include <atomic>
#include <mutex>

#include "cluster/statements_cluster.hpp"
#include "test/store_fixture.hpp"

#include <holdfast/store/cluster.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/queue.hpp>

namespace holdfast::store::tests {
namespace {

class CrowdStory : public testing::TestWithParam<test::Backend> {
public:
    MigratedDatabase db{GetParam()};
};

TEST_P(CrowdStory, OfManyWhoCreateOrChangeANamespaceOneDoes) {
    HOLDFAST_CHECK("store 183");
    Namespaces namespaces{db};
    constexpr int crowd = 16;
    std::atomic<int> created = 0;
    all_at_once(crowd, [&](int) {
        try {
            namespaces.create({.id = NamespaceId::random(), .name = "orders", .info = blob("i")});
            ++created;
        } catch (const NamespaceAlreadyExists&) {
            // Another thread was faster.
        }
    });
    EXPECT_EQ(created, 1);
    HOLDFAST_CHECK("store 184");
    Namespace seen = namespaces.find("orders").value();
    seen.notification_version = namespaces.notification_version();
    std::atomic<int> changed = 0;
    all_at_once(crowd, [&](int i) {
        Namespace change = seen;
        change.info = blob(std::to_string(i));
        try {
            namespaces.update(change);
            ++changed;
        } catch (const ConditionFailed&) {
            // Another thread was faster.
        }
    });
    EXPECT_EQ(changed, 1);
    EXPECT_EQ(namespaces.notification_version(), seen.notification_version + 1);
}

TEST_P(CrowdStory, MessagesOfManySendersAreNumberedWithoutAGap) {
    HOLDFAST_CHECK("store 193");
    for (const Letters letters : {Letters::live, Letters::dead}) {
        Queue queue{db, namespace_replication, letters};
        queue.init();
        constexpr int senders = 10;
        all_at_once(senders, [&](int) {
            for (int i = 0; i < 10; ++i) {
                queue.enqueue(blob("message"));
            }
        });
        std::int64_t next = 0;
        for (const Message& message : queue.read(-1, 1'000)) {
            EXPECT_EQ(message.id, next++);
        }
        EXPECT_EQ(next, 100);
    }
}

// The worst moment: who prunes has found a host that is late, and waits for its row, in which the
// host is just writing that it is alive.
TEST(Members, AHostThatComesBackInTimeIsNotPruned) {
    MigratedDatabase db{test::Backend::postgres};
    Cluster cluster{db};
    const Member ann{.host = HostId::random(), .rpc_address = "10.0.0.1"};
    cluster.heartbeat(ann, 10s);
    db.advance_clock(11s);
    std::future<std::int64_t> pruned;
    db->transact("Test", {}, [&](sql::Tx& tx) {
        (void)tx.count(statements::upsert_member,
                       ann.host.value,
                       ann.rpc_address,
                       ann.rpc_port,
                       1,
                       ann.session_start,
                       std::int64_t{60'000'000});
        pruned = std::async(std::launch::async, [&] { return cluster.prune(10); });
        const Deadline deadline = Deadline::after(20s);
        while (db.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                         "AND datname = current_database()") == 0) {
            ASSERT_FALSE(deadline.passed()) << "nobody waits, so nothing is tested";
        }
    });
    EXPECT_EQ(pruned.get(), 0);
    EXPECT_THAT(cluster.members({}, 10), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Every, CrowdStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests

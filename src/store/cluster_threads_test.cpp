// Namespaces and queues under many hands.
#include <atomic>
#include <mutex>

#include "store_fixture.hpp"

#include <holdfast/store/namespace.hpp>
#include <holdfast/store/queue.hpp>

namespace holdfast::store::stories {
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
            // Somebody was faster.
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
            // Somebody was faster.
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

INSTANTIATE_TEST_SUITE_P(Every, CrowdStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::stories

#include <future>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "sqlite/hub.hpp"
#include "sqlite/test/driver_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::sql::sqlite {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

// Collects what a subscription hears, and lets a test wait for it.
class Ear {
public:
    std::function<void(std::string_view)> wake() {
        return [this](std::string_view payload) {
            const std::lock_guard lock(mutex_);
            heard_.emplace_back(payload);
            changed_.notify_all();
        };
    }
    // All that was heard once `count` have come.
    std::vector<std::string> await(std::size_t count) {
        std::unique_lock lock(mutex_);
        EXPECT_TRUE(changed_.wait_for(lock, 60s, [&] { return heard_.size() >= count; }));
        return heard_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> heard_;
};

// Keeps the hub's thread busy until it is released, so that notices pile up.
class Blocker {
public:
    explicit Blocker(Hub& hub)
        : subscription_(hub.subscribe("block", [this](std::string_view) {
              begun_.count_down();
              released_.wait();
          })) {
        hub.publish({"block", ""});
        begun_.wait();
    }
    void release() { released_.count_down(); }

private:
    std::latch begun_{1};
    std::latch released_{1};
    std::unique_ptr<Subscription> subscription_;
};

TEST(Hub, CallsThoseWhoListenToTheChannelInOrder) {
    Hub hub(null_logger());
    Ear ann;
    Ear bob;
    const auto one = hub.subscribe("orders", ann.wake());
    const auto two = hub.subscribe("orders", bob.wake());
    hub.publish({"letters", "not for us"});
    hub.publish({"orders", "1"});
    hub.publish({"orders", "2"});
    EXPECT_THAT(ann.await(2), ElementsAre("1", "2"));
    EXPECT_THAT(bob.await(2), ElementsAre("1", "2"));
}

TEST(Hub, EqualNoticesThatNobodyHasSeenAreOne) {
    Hub hub(null_logger());
    Ear ann;
    const auto listening = hub.subscribe("orders", ann.wake());
    Blocker blocker(hub);
    for (int i = 0; i < 5; ++i) {
        hub.publish({"orders", "7"});
    }
    hub.publish({"orders", "8"});
    blocker.release();
    EXPECT_THAT(ann.await(2), ElementsAre("7", "8"));
}

TEST(Hub, TooManyNoticesBecomeOneWithoutPayload) {
    Hub hub(null_logger());
    Ear ann;
    const auto listening = hub.subscribe("orders", ann.wake());
    Blocker blocker(hub);
    for (std::size_t i = 0; i <= Hub::pending_max; ++i) {
        hub.publish({"orders", std::to_string(i)});
    }
    blocker.release();
    EXPECT_THAT(ann.await(1), ElementsAre(""));
    hub.publish({"orders", "again"});
    EXPECT_THAT(ann.await(2), ElementsAre("", "again"));
}

TEST(Hub, ASubscriptionThatEndsWaitsForItsCallback) {
    Hub hub(null_logger());
    std::latch begun{1};
    std::atomic<bool> ended = false;
    std::promise<void> released;
    auto listening = hub.subscribe("orders", [&](std::string_view) {
        begun.count_down();
        released.get_future().wait();
        ended = true;
    });
    hub.publish({"orders", ""});
    begun.wait();
    const auto release = std::async(std::launch::async, [&] { released.set_value(); });
    listening.reset();
    EXPECT_TRUE(ended);
}

TEST(Hub, ACallbackMayEndItsOwnSubscription) {
    Hub hub(null_logger());
    std::unique_ptr<Subscription> once;
    std::atomic<int> calls = 0;
    Blocker blocker(hub);
    once = hub.subscribe("orders", [&](std::string_view) {
        ++calls;
        once.reset();
    });
    Ear ann;
    const auto listening = hub.subscribe("orders", ann.wake());
    hub.publish({"orders", "1"});
    hub.publish({"orders", "2"});
    blocker.release();
    EXPECT_THAT(ann.await(2), ElementsAre("1", "2"));
    EXPECT_EQ(calls, 1);
}

TEST(Hub, ACallbackThatThrowsDisturbsNobody) {
    Hub hub(null_logger());
    const auto bad =
        hub.subscribe("orders", [](std::string_view) { throw std::runtime_error("oops"); });
    Ear ann;
    const auto good = hub.subscribe("orders", ann.wake());
    hub.publish({"orders", "1"});
    EXPECT_THAT(ann.await(1), ElementsAre("1"));
}

TEST(Hub, ASubscriptionMayOutliveTheHub) {
    std::unique_ptr<Subscription> listening;
    Ear ann;
    {
        Hub hub(null_logger());
        listening = hub.subscribe("orders", ann.wake());
        hub.publish({"orders", "1"});
        static_cast<void>(ann.await(1));
    }
    listening.reset();
}

using Notifications = DriverStory;

TEST_F(Notifications, ComeAfterTheCommitAndNeverAfterARollback) {
    const auto driver = open_orders();
    Ear ann;
    const auto listening = driver->subscribe("orders", ann.wake());
    EXPECT_THROW(driver->attempt(in_time(),
                                 [](Session& session) {
                                     session.notify("orders", "never");
                                     throw std::runtime_error("changed my mind");
                                 }),
                 std::runtime_error);
    std::promise<std::set<std::int64_t>> seen;
    const auto looking =
        driver->subscribe("orders", [&](std::string_view) { seen.set_value(order_ids(*driver)); });
    driver->attempt(in_time(), [&](Session& session) {
        session.notify("orders", "7");
        send(session, sql("INSERT INTO orders VALUES (7, 'pen')"));
    });
    EXPECT_THAT(ann.await(1), ElementsAre("7"));
    EXPECT_THAT(seen.get_future().get(), ElementsAre(7));
}

}  // namespace
}  // namespace holdfast::sql::sqlite

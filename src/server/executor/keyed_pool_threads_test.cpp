#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include "executor/keyed_pool.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server {
namespace {

using holdfast::test::soon;

TEST(KeyedPool, RunsTheJobsOfAKeyInTheirOrderAndNeverTwoAtOnce) {
    constexpr int keys = 5;
    constexpr int jobs = 200;
    struct Seen {
        std::vector<int> order;  // Without a lock: a race would show.
        std::atomic<int> inside = 0;
        int most = 0;
    };
    std::vector<Seen> seen(keys);
    std::latch all(std::ptrdiff_t{keys} * jobs);
    KeyedPool pool(4);
    for (int job = 0; job < jobs; ++job) {
        for (int key = 0; key < keys; ++key) {
            Seen& here = seen[static_cast<std::size_t>(key)];
            pool.post(std::to_string(key), [&all, &here, job] {
                here.most = std::max(here.most, ++here.inside);
                here.order.push_back(job);
                --here.inside;
                all.count_down();
            });
        }
    }
    all.wait();
    pool.stop(soon());
    std::vector<int> expected(jobs);
    for (int job = 0; job < jobs; ++job) {
        expected[static_cast<std::size_t>(job)] = job;
    }
    for (const Seen& here : seen) {
        EXPECT_EQ(here.order, expected);
        EXPECT_EQ(here.most, 1);
    }
}

// Each job waits for the other one: on one thread, or one after another, they would never end.
TEST(KeyedPool, RunsJobsOfDifferentKeysSideBySide) {
    KeyedPool pool(2);
    std::latch both(2);
    std::latch done(2);
    for (const std::string key : {"ann", "bob"}) {
        pool.post(key, [&] {
            both.arrive_and_wait();
            done.count_down();
        });
    }
    done.wait();
}

TEST(KeyedPool, AKeyWithManyJobsDoesNotHoldUpTheOthers) {
    KeyedPool pool(1);
    std::latch posted(1);
    std::vector<std::string> order;
    pool.post("busy", [&] { posted.wait(); });
    for (int i = 0; i < 3; ++i) {
        pool.post("busy", [&] { order.push_back("busy"); });
    }
    pool.post("ann", [&] { order.push_back("ann"); });
    pool.post("bob", [&] { order.push_back("bob"); });
    posted.count_down();
    pool.stop(soon());
    EXPECT_EQ(order, (std::vector<std::string>{"ann", "bob", "busy", "busy", "busy"}));
}

TEST(KeyedPool, StopRunsWhatIsPostedAndWhatThatPosts) {
    KeyedPool pool(2);
    std::latch stopping(1);
    std::atomic<int> ran = 0;
    for (int i = 0; i < 10; ++i) {
        pool.post(std::to_string(i), [&] {
            stopping.wait();
            pool.post("more", [&] { ++ran; });
            ++ran;
        });
    }
    stopping.count_down();
    pool.stop(soon());
    EXPECT_EQ(ran, 20);
}

// Jobs that post one another for ever would keep the process. The time is over before the stop
// begins, so nothing but the job under way may end.
TEST(KeyedPool, StopDestroysWhatHasNotBegunOnceItsTimeIsOver) {
    KeyedPool pool(1);
    const auto owned = std::make_shared<std::atomic<int>>(0);
    std::function<void()> again = [&pool, &again, owned] {
        ++*owned;
        pool.post("ann", again);
    };
    again();
    pool.stop(Deadline::at(Steady{}));
    again = nullptr;
    EXPECT_EQ(owned.use_count(), 1) << "a job outlived the pool's stop";
}

TEST(KeyedPool, AJobPostedAfterTheStopIsDestroyedUnrun) {
    KeyedPool pool(1);
    pool.stop(soon());
    const auto owned = std::make_shared<int>(0);
    pool.post("late", [owned] { ++*owned; });
    EXPECT_EQ(owned.use_count(), 1);
    EXPECT_EQ(*owned, 0);
}

}  // namespace
}  // namespace holdfast::server

// Limiter and slots in the hands of many threads.
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "fleet/limiter.hpp"
#include "fleet/slot_keeper.hpp"
#include "fleet/test/dynamodb_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;

constexpr int crowd = 8;

TEST(LimiterThreads, EveryoneIsServedWhoeverElseIsRefused) {
    Limiter limiter({.local_per_second = 100'000, .local_burst = 1});
    std::atomic<int> permits = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < crowd; ++i) {
            threads.emplace_back([&] {
                for (int k = 0; k < 100; ++k) {
                    limiter.acquire(Deadline::after(20s), {});
                    ++permits;
                }
            });
        }
        threads.emplace_back([&] { limiter.refused(); });
    }
    EXPECT_EQ(permits, crowd * 100);
    EXPECT_FALSE(limiter.degraded());
}

TEST(LimiterThreads, WhoStopsWaitingDoesNotHoldUpOthers) {
    HOLDFAST_CHECK("connections fill.limiter_cancel");
    Limiter limiter({.local_per_second = 1, .local_burst = 1});
    limiter.acquire(Deadline::after(20s), {});
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] {
        return holdfast::test::code_of(
            [&] { limiter.acquire(Deadline::after(20s), stop.get_token()); });
    });
    stop.request_stop();
    EXPECT_EQ(waiting.get(), Code::cancelled);
    limiter.acquire(Deadline::after(20s), {});
}

using SlotThreads = tests::DynamoStory;

TEST_F(SlotThreads, NoMoreSlotsAreLentThanThereAre) {
    SlotKeeperOptions settings{.client = std::make_shared<DynamoClient>(options(faults->url())),
                               .table = table,
                               .endpoint = "abc.dsql.us-east-1.on.aws",
                               .member = this_process("crowd"),
                               .blocks = {.size = 2, .count = 2}};
    settings.limits.block_short_first = 10ms;
    settings.limits.block_short_most = 20ms;
    SlotKeeper keeper(settings);
    const auto holder = keeper.join(4, [](int) {});
    std::atomic<int> lent = 0;
    std::atomic<int> most = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < crowd; ++i) {
            threads.emplace_back([&] {
                for (int k = 0; k < 50; ++k) {
                    const pool::SlotId slot = keeper.acquire(soon(), {});
                    const int now = ++lent;
                    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                    }
                    --lent;
                    keeper.release(slot);
                }
            });
        }
    }
    EXPECT_LE(most, 4);
    EXPECT_EQ(keeper.view().used, 0);
    keeper.leave(holder);
}

// The process ends while a thread still waits for a slot that will not come.
TEST_F(SlotThreads, StopWakesThoseWhoWait) {
    HOLDFAST_CHECK("connections slot.full");
    SlotKeeperOptions settings{.client = std::make_shared<DynamoClient>(options(faults->url())),
                               .table = table,
                               .endpoint = "abc.dsql.us-east-1.on.aws",
                               .member = this_process("crowd"),
                               .blocks = {.size = 1, .count = 1}};
    SlotKeeper keeper(settings);
    const auto holder = keeper.join(2, [](int) {});
    const pool::SlotId only = keeper.acquire(soon(), {});
    std::promise<void> about_to_wait;
    auto waiting = std::async(std::launch::async, [&] {
        about_to_wait.set_value();
        return holdfast::test::code_of([&] { (void)keeper.acquire(soon(), {}); });
    });
    about_to_wait.get_future().wait();
    keeper.stop();
    EXPECT_EQ(waiting.get(), Code::exhausted);
    keeper.release(only);
    keeper.leave(holder);
}

}  // namespace
}  // namespace holdfast::dsql

#include <atomic>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "gateway/fair_shared_mutex.hpp"
#include <gtest/gtest.h>

namespace holdfast::dsql {
namespace {

// Each kind passes while a crowd of the other kind asks again and again.
TEST(FairSharedMutex, NobodyIsKeptOutByACrowd) {
    constexpr int turns_wanted = 200;
    for (const bool crowd_is_alone : {true, false}) {
        FairSharedMutex turns;
        std::atomic<bool> enough = false;
        std::vector<std::jthread> crowd;
        for (int i = 0; i < 4; ++i) {
            crowd.emplace_back([&] {
                while (!enough) {
                    if (crowd_is_alone) {
                        const std::unique_lock lock(turns);
                    } else {
                        const std::shared_lock lock(turns);
                    }
                }
            });
        }
        for (int i = 0; i < turns_wanted; ++i) {
            if (crowd_is_alone) {
                const std::shared_lock lock(turns);
            } else {
                const std::unique_lock lock(turns);
            }
        }
        enough = true;
    }
}

TEST(FairSharedMutex, WhoIsAloneIsAlone) {
    constexpr int turns_each = 500;
    FairSharedMutex turns;
    std::atomic<int> inside = 0;
    std::atomic<int> wrong = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 6; ++i) {
            threads.emplace_back([&, alone = i % 2 == 0] {
                for (int turn = 0; turn < turns_each; ++turn) {
                    std::unique_lock one(turns, std::defer_lock);
                    std::shared_lock many(turns, std::defer_lock);
                    alone ? one.lock() : many.lock();
                    inside += alone ? 100 : 1;
                    wrong += inside > 100 ? 1 : 0;
                    inside -= alone ? 100 : 1;
                }
            });
        }
    }
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace holdfast::dsql

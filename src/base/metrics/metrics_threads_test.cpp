#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/metrics.hpp>

namespace holdfast {
namespace {

// Registering, counting and reading at once; nothing is lost.
TEST(Metrics, ThreadsLoseNoCount) {
    Metrics metrics;
    constexpr int threads = 4;
    constexpr int each = 10'000;
    {
        std::vector<std::jthread> counting;
        for (int t = 0; t < threads; ++t) {
            counting.emplace_back([&metrics] {
                const Counter counter = metrics.counter("c", "", {{"op", "pay"}});
                const Gauge gauge = metrics.gauge("g", "");
                const Histogram histogram = metrics.histogram("h", "", {1, 2});
                for (int i = 0; i < each; ++i) {
                    counter.add();
                    gauge.add(1);
                    histogram.observe(i % 3);
                    if (i % 1000 == 0) {
                        const std::string op = "op" + std::to_string(i);
                        metrics.counter("other_total", "", {{"op", op}}).add();
                        EXPECT_NE(metrics.expose(), "");
                    }
                }
            });
        }
    }
    EXPECT_EQ(metrics.value("c", {{"op", "pay"}}), threads * each);
    EXPECT_EQ(metrics.value("g"), threads * each);
    EXPECT_EQ(metrics.value("h"), threads * each);
    EXPECT_EQ(metrics.value("other_total", {{"op", "op0"}}), threads);
    const int per_thread_sum = each - 1;  // 0 + 1 + 2 + 0 + 1 + 2 + ... + 0
    EXPECT_THAT(metrics.expose(),
                testing::HasSubstr("h_sum " + std::to_string(threads * per_thread_sum)));
}

// Else it would touch what its owner is just taking down.
TEST(Metrics, TheEndOfARefresherWaitsForACallUnderWay) {
    Metrics metrics;
    std::promise<void> called;
    std::atomic<bool> ending = false;
    std::atomic<bool> over = false;
    Refresher refresher = metrics.refresh_with([&] {
        called.set_value();
        ending.wait(false);
        over = true;
    });
    const std::jthread reader([&] { static_cast<void>(metrics.expose()); });
    called.get_future().wait();
    ending = true;
    ending.notify_all();
    refresher = {};
    EXPECT_TRUE(over);
}

}  // namespace
}  // namespace holdfast

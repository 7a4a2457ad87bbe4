#include <atomic>
#include <chrono>
#include <stdexcept>

#include "workers.hpp"
#include <gtest/gtest.h>

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

TEST(Workers, CountWhatTheyDidAndDoAtLeastOneEach) {
    std::atomic<int> calls = 0;
    const Work work = run_workers(4, 1ns, {}, [&calls](Random&) { ++calls; });
    EXPECT_EQ(work.operations, calls.load());
    EXPECT_GE(calls, 4);
    EXPECT_GT(work.seconds, 0);
}

TEST(Workers, AllEndWhenTheTokenFires) {
    std::stop_source stop;
    std::atomic<int> calls = 0;
    const Work work = run_workers(4, 1h, stop.get_token(), [&](Random&) {
        if (++calls == 100) {
            stop.request_stop();
        }
    });
    EXPECT_GE(work.operations, 100);
}

TEST(Workers, AllEndWithTheFirstExceptionWhenOneThrows) {
    std::atomic<int> calls = 0;
    const auto run = [&] {
        (void)run_workers(4, 1h, {}, [&](Random&) {
            if (++calls == 100) {
                throw std::runtime_error("enough");
            }
        });
    };
    EXPECT_THROW(run(), std::runtime_error);
}

}  // namespace
}  // namespace holdfast::bench

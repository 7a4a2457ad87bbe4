// How long locks take. The gates are wide: they are for mistakes, not for machines.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "test/lock_fixture.hpp"
#include <fmt/core.h>

namespace holdfast::lock::tests {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

struct Pace {
    double mean_ms = 0;
    double p95_ms = 0;
    double deviation_ms = 0;
};

Pace pace_of(std::vector<double> times_ms) {
    std::ranges::sort(times_ms);
    const auto count = static_cast<double>(times_ms.size());
    const double mean = std::accumulate(times_ms.begin(), times_ms.end(), 0.0) / count;
    const double squares =
        std::transform_reduce(times_ms.begin(), times_ms.end(), 0.0, std::plus{}, [&](double time) {
            return (time - mean) * (time - mean);
        });
    return {.mean_ms = mean,
            .p95_ms = times_ms[times_ms.size() * 95 / 100],
            .deviation_ms = std::sqrt(squares / count)};
}

class LockPace : public LockStory {
protected:
    // A machine that is busy with other things may miss a gate by accident; what is slow by nature
    // misses it every time. Says what was measured last if all rounds missed it.
    template <class Round>
    static testing::AssertionResult in_one_round_of_fifty(Round round) {
        std::string measured;
        for (int i = 0; i < 50; ++i) {
            if (round(measured)) {
                return testing::AssertionSuccess();
            }
        }
        return testing::AssertionFailure() << measured;
    }

    Pace pace_of_pairs(int count) {
        std::vector<double> times_ms;
        for (int i = 0; i < count; ++i) {
            const auto began = std::chrono::steady_clock::now();
            const Grant grant = take("k", 60s);
            EXPECT_TRUE(locks.release(grant.lock_id).ok);
            times_ms.push_back(Milliseconds(std::chrono::steady_clock::now() - began).count());
        }
        return pace_of(std::move(times_ms));
    }
};

TEST_P(LockPace, APairTakesLessThan50MillisecondsAndSeldom100) {
    HOLDFAST_CHECK("locks B1");
    EXPECT_TRUE(in_one_round_of_fifty([&](std::string& measured) {
        const Pace pace = pace_of_pairs(100);
        measured = fmt::format("mean {} ms, p95 {} ms", pace.mean_ms, pace.p95_ms);
        return pace.mean_ms < 50 && pace.p95_ms < 100;
    }));
}

TEST_P(LockPace, WarmPairsTakeAboutTheSameTime) {
    HOLDFAST_CHECK("locks B2");
    (void)pace_of_pairs(10);
    EXPECT_TRUE(in_one_round_of_fifty([&](std::string& measured) {
        const Pace pace = pace_of_pairs(50);
        measured = fmt::format("mean {} ms, deviation {} ms", pace.mean_ms, pace.deviation_ms);
        return pace.deviation_ms < 2 * pace.mean_ms;
    }));
}

class LockCrowdPace : public LockPace {};

TEST_P(LockCrowdPace, TenWorkersMakeMoreThanAHundredPairsASecond) {
    HOLDFAST_CHECK("locks B3");
    constexpr int workers = 10;
    constexpr int rounds = 50;
    int run = 0;
    EXPECT_TRUE(in_one_round_of_fifty([&](std::string& measured) {
        ++run;
        const auto began = std::chrono::steady_clock::now();
        all_at_once(workers, [&](int i) {
            for (int round = 0; round < rounds; ++round) {
                const auto grant = take("worker/" + std::to_string(i), 60s);
                EXPECT_EQ(value_of(grant.fence),
                          static_cast<std::uint64_t>((run - 1) * rounds + round) + 1);
                EXPECT_TRUE(locks.release(grant.lock_id).ok);
            }
        });
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        measured = fmt::format("{} pairs in {} s", workers * rounds, took.count());
        return workers * rounds / took.count() > 100;
    }));
}

TEST_P(LockPace, TwentyRefusalsTakeLessThanFiveSeconds) {
    HOLDFAST_CHECK("locks B4");
    (void)take("k", 600s);
    EXPECT_TRUE(in_one_round_of_fifty([&](std::string& measured) {
        const auto began = std::chrono::steady_clock::now();
        for (int i = 0; i < 20; ++i) {
            EXPECT_TRUE(is_busy(locks.acquire("k", 60s)));
        }
        const auto took = std::chrono::steady_clock::now() - began;
        measured = fmt::format("{} ms", Milliseconds(took).count());
        return took < 5s;
    }));
}

// Where conflicts are made on purpose, the pace is theirs.
INSTANTIATE_TEST_SUITE_P(Every,
                         LockPace,
                         testing::Values(Setting{test::Backend::sqlite},
                                         Setting{test::Backend::postgres},
                                         Setting{test::Backend::postgres, true},
                                         Setting{test::Backend::dsql}),
                         setting_name);
// Not by way of the gateway: its pace with ten at once is its own.
INSTANTIATE_TEST_SUITE_P(Every,
                         LockCrowdPace,
                         testing::Values(Setting{test::Backend::sqlite},
                                         Setting{test::Backend::postgres},
                                         Setting{test::Backend::postgres, true}),
                         setting_name);

TEST(PaceOf, KnowsWhatIsSlowOrUneven) {
    std::vector<double> times(94, 1.0);
    times.resize(100, 101.0);
    const Pace pace = pace_of(times);
    EXPECT_DOUBLE_EQ(pace.mean_ms, 7.0);
    EXPECT_DOUBLE_EQ(pace.p95_ms, 101.0);
    EXPECT_NEAR(pace.deviation_ms, 23.75, 0.01);
    EXPECT_DOUBLE_EQ(pace_of({4.0, 4.0}).deviation_ms, 0.0);
}

}  // namespace
}  // namespace holdfast::lock::tests

// Figures that are recorded as ranges, because chance decides them.
//
// A range is the least and the most of n seeds of an unknown generator, so it is not a bound that
// every seed could keep. What it must keep is the law of such ranges. If n values are drawn
// independently of each other, the share of all values that lies between the least and the most of
// them is distributed as Beta(n - 1, 2), with the mean (n - 1) / (n + 1); where values can be equal
// it is not smaller. So of m seeds of ours no fewer lie within than the beta-binomial law allows,
// and the one in the middle lies within, unless all n were on one side of it.
#include <cmath>
#include <functional>

#include "fleet/test/fleet_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOLDFAST_SANITIZED 1
#elif defined(__has_feature)
#define HOLDFAST_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define HOLDFAST_SANITIZED 0
#endif

namespace holdfast::sim {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Ge;
using testing::Le;

// The sanitizers look at paths, not at luck. The law holds for any number.
constexpr int seeds = HOLDFAST_SANITIZED ? 20 : 200;
// So seldom may a test fail though everything is as it should be; there are eight ranges.
constexpr double seldom = 1e-3;

double log_factorial(int n) {
    double sum = 0;
    for (int i = 2; i <= n; ++i) {
        sum += std::log(i);
    }
    return sum;
}

double log_beta(int a, int b) {
    return log_factorial(a - 1) + log_factorial(b - 1) - log_factorial(a + b - 1);
}

// How likely it is that k of m lie within the range of n others.
double chance_within(int k, int m, int n) {
    const double ways = log_factorial(m) - log_factorial(k) - log_factorial(m - k);
    return std::exp(ways + log_beta(k + n - 1, m - k + 2) - log_beta(n - 1, 2));
}

// Fewer than these lie within as seldom as that.
int least_within(int m, int n) {
    int k = 0;
    for (double below = chance_within(0, m, n); below <= seldom; ++k) {
        below += chance_within(k + 1, m, n);
    }
    return k;
}

TEST(PublishedRanges, HaveALaw) {
    double all = 0;
    double mean = 0;
    for (int k = 0; k <= 200; ++k) {
        all += chance_within(k, 200, 12);
        mean += k * chance_within(k, 200, 12) / 200;
    }
    EXPECT_NEAR(all, 1, 1e-9);
    EXPECT_NEAR(mean, 11.0 / 13, 1e-9);
    // By hand: of one value, within the range of two others is one of three.
    EXPECT_NEAR(chance_within(1, 1, 2), 1.0 / 3, 1e-12);
    EXPECT_EQ(least_within(200, 5), 23);
    EXPECT_EQ(least_within(200, 6), 34);
    EXPECT_EQ(least_within(200, 12), 87);
    EXPECT_EQ(least_within(200, 40), 155);
}

struct Published {
    const char* what;
    double least;
    double most;
    double (*read)(const Scenario& scenario, const Result& result, Time converged);
};

struct PublishedRun {
    const char* scenario;
    Profile profile;
    int of;         // So many seeds are recorded.
    int converged;  // Seconds until all connections are there.
    std::vector<Published> ranges;
};

double read_opens(const Scenario& /*scenario*/, const Result& result, Time converged) {
    return opens_max_after(result, converged);
}
double read_lowest(const Scenario& scenario, const Result& result, Time converged) {
    return lowest_total(scenario, result, converged);
}
double read_denies(const Scenario& /*scenario*/, const Result& result, Time /*converged*/) {
    return total(result, [](const Sample& s) { return s.counters.denies; });
}

class PublishedRange : public testing::TestWithParam<PublishedRun> {};

TEST_P(PublishedRange, HoldsAsManySeedsAsTheLawSays) {
    const PublishedRun& run = GetParam();
    const Scenario scenario = shipped(run.scenario, run.profile);
    std::vector<std::vector<double>> values(run.ranges.size());
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const Result result = simulate(scenario, seed);
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i].push_back(run.ranges[i].read(scenario, result, seconds{run.converged}));
        }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Published& range = run.ranges[i];
        std::ranges::sort(values[i]);
        const auto within = std::ranges::count_if(
            values[i], [&](double value) { return value >= range.least && value <= range.most; });
        EXPECT_GE(within, least_within(seeds, run.of)) << range.what;
        EXPECT_THAT(values[i][values[i].size() / 2], AllOf(Ge(range.least), Le(range.most)))
            << range.what;
        RecordProperty(range.what, static_cast<int>(within));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Of,
    PublishedRange,
    testing::Values(
        PublishedRun{"local",
                     Profile::compat_r,
                     40,
                     2,
                     {{"opens", 5, 8, read_opens}, {"lowest", 194, 197, read_lowest}}},
        PublishedRun{"ecs-150wps",
                     Profile::compat_r,
                     12,
                     20,
                     {{"opens", 24, 30, read_opens}, {"lowest", 1'970, 1'976, read_lowest}}},
        PublishedRun{
            "ecs-400wps",
            Profile::compat_r,
            5,
            220,
            {{"lowest", 21'727, 21'834, read_lowest}, {"denies", 11'230, 11'878, read_denies}}},
        // Of the current pool, with first lives that are spread.
        PublishedRun{"ecs-150wps",
                     Profile::standard,
                     6,
                     25,
                     {{"opens", 9, 12, read_opens}, {"lowest", 1'988, 2'000, read_lowest}}}),
    [](const auto& run) {
        std::string name = run.param.scenario;
        std::ranges::replace(name, '-', '_');
        return name + (run.param.profile == Profile::standard ? "_spread" : "");
    });

}  // namespace
}  // namespace holdfast::sim

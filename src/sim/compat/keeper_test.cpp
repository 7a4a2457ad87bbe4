// The recorded figures of the model with a keeper.
#include <map>

#include "fleet/test/fleet_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/sim/report.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::seconds;

struct Row {
    const char* what;
    int converged;
    std::int64_t closures;
    int closures_off;
    double warmup;
    double keeper;
    int lowest;
    int lowest_off;
};

std::int64_t closures_max(const Result& result) {
    std::map<Time, std::int64_t> closed;
    for (const Sample& sample : result.samples) {
        closed[sample.at] += sample.counters.closed_age + sample.counters.closed_server;
    }
    std::int64_t most = 0;
    std::int64_t before = 0;
    for (const auto& [at, total] : closed) {
        most = std::max(most, total - before);
        before = total;
    }
    return most;
}

class Keeper : public testing::TestWithParam<Row> {};

TEST_P(Keeper, AsInTheTable) {
    HOLDFAST_CHECK("poolsim compat-s.table");
    const Row& row = GetParam();
    const Scenario scenario = load_scenario(std::string("compat-s/") + row.what).scenario;
    ASSERT_EQ(scenario.profile, Profile::compat_s);
    const Result result = simulate(scenario, 42);
    EXPECT_TRUE(result.passed()) << verdict_of(result);
    const Time last = last_converged(scenario, result);
    EXPECT_EQ(last, seconds{row.converged});
    EXPECT_NEAR(static_cast<double>(closures_max(result)),
                static_cast<double>(row.closures),
                row.closures_off);
    EXPECT_NEAR(total(result, [](const Sample& s) { return s.counters.warmup_opens; }),
                row.warmup,
                0.01 * row.warmup);
    EXPECT_NEAR(total(result, [](const Sample& s) { return s.counters.keeper_opens; }),
                row.keeper,
                0.01 * row.keeper);
    EXPECT_NEAR(lowest_total(scenario, result, last), row.lowest, row.lowest_off);
    EXPECT_EQ(total(result, [](const Sample& s) { return s.counters.work_started; }), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Of,
    Keeper,
    testing::Values(Row{"local", 31, 8, 0, 200, 201, 194, 0},
                    Row{"mass-drop", 2, 100, 0, 200, 205, 105, 0},
                    Row{"workload-test", 2, 0, 0, 200, 0, 200, 0},
                    Row{"ecs-150wps", 20, 100, 0, 2'000, 4'005, 1'050, 0},
                    Row{"ecs-400wps", 226, 105, 5, 21'518, 44'483, 21'817, 20}),
    [](const auto& row) {
        std::string name = row.param.what;
        std::ranges::replace(name, '-', '_');
        return name;
    });

}  // namespace
}  // namespace holdfast::sim

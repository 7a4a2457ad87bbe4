#include <holdfast/sim/plan.hpp>

#include <algorithm>

#include "fleet_figures.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

PlanLine line(const Scenario& scenario, const std::string& name) {
    const auto lines = plan_of(scenario);
    const auto found = std::ranges::find(lines, name, &PlanLine::name);
    return found == lines.end() ? PlanLine{} : *found;
}

TEST(Plan, AgreesWithTheFormulas) {
    HOLDFAST_CHECK("poolsim plan.formulas");
    const Scenario scenario = shipped("ecs-150wps", Profile::compat_r);
    EXPECT_EQ(line(scenario, "connections").value, 2'000);
    EXPECT_EQ(line(scenario, "fill_s").value, 20);
    EXPECT_EQ(line(scenario, "residency_s").value, 675.5);
    EXPECT_NEAR(line(scenario, "replacements_per_s").value, 2.96, 0.005);
    EXPECT_NEAR(line(scenario, "first_wave_peak_per_s").value, 2'000.0 / 120, 0.01);
    EXPECT_EQ(line(scenario, "first_wave_plateau_s").value, 100);
    EXPECT_EQ(line(scenario, "waves_merge_at_generation").value, 5);
    EXPECT_EQ(line(scenario, "refills").value, 6'000) << "as published";
    EXPECT_NEAR(line(scenario, "first_wave_dip").value, 8.3, 0.05);
    EXPECT_EQ(line(shipped("workload-test", Profile::compat_r), "waste_opens_per_s").value, 35);
    EXPECT_EQ(line(shipped("compat-s/local", Profile::compat_s), "cohort_recovery_s").value, 10);
    const Scenario leading = shipped("local", Profile::standard, {{"defaults.lead", "30s"}});
    EXPECT_EQ(line(leading, "first_wave_dip").value, 0);
    EXPECT_EQ(line(shipped("mass-drop", Profile::compat_r), "mass_drop_recovery_s").value, 1);
    for (const PlanLine& each : plan_of(scenario)) {
        EXPECT_EQ(each.trouble, "") << each.name;
    }
}

TEST(Plan, FlagsWhatCannotGoWell) {
    HOLDFAST_CHECK("poolsim plan.infeasible");
    const auto trouble = [](std::vector<Override> changes, const char* name) {
        return line(shipped("ecs-150wps", Profile::standard, std::move(changes)), name).trouble;
    };
    EXPECT_NE(trouble({{"limiterPerSec", "2"}}, "replacements_per_s"), "");
    EXPECT_NE(trouble({{"limiterPerSec", "5"}}, "replacements_per_s"), "");
    EXPECT_EQ(trouble({}, "replacements_per_s"), "");
    EXPECT_NE(trouble({{"limiterPerSec", "20"}}, "fill_s"), "");
    EXPECT_NE(trouble({{"cluster.ceiling", "1999"}}, "connections"), "");
    EXPECT_NE(trouble({{"cluster.ceiling", "2400"}}, "connections"), "");
    EXPECT_EQ(trouble({{"cluster.ceiling", "2500"}}, "connections"), "");
    EXPECT_NE(trouble({{"defaults.baseLifetime", "58m"}}, "longest_life_s"), "");
    EXPECT_NE(trouble({{"scenario.kind", "rolling_restart"}, {"scenario.rollEvery", "1s"}},
                      "restart_opens_per_s"),
              "");
}

}  // namespace
}  // namespace holdfast::sim

#include <holdfast/sim/plan.hpp>

#include <algorithm>

#include "fleet/test/fleet_fixture.hpp"
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
    EXPECT_EQ(line(scenario, "refills").value, 6'000) << "as the simulation gives";
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

// Of 10,000 connections for 44 processes each has a due of 227.
TEST(Plan, FlagsBlocksThatAreLargeAgainstWhatIsDue) {
    HOLDFAST_CHECK("poolsim plan.infeasible");
    const auto of = [](const char* scenario, const char* block) {
        return line(
            shipped(
                scenario, Profile::standard, {{"slots.kind", "blocks"}, {"slots.block", block}}),
            "block_of_due");
    };
    EXPECT_DOUBLE_EQ(of("ecs-400wps", "25").value, 0.11);
    EXPECT_NE(of("ecs-400wps", "25").trouble.find("at most 22"), std::string::npos);
    EXPECT_EQ(of("ecs-400wps", "22").trouble, "");
    EXPECT_EQ(of("ecs-150wps", "25").name, "") << "there is enough for all";
}

TEST(Plan, SpeaksOfTheFillOnlyToThoseWhoPromiseOne) {
    HOLDFAST_CHECK("poolsim plan.infeasible");
    const auto trouble = [](const std::string& top) {
        const std::string text =
            top + "services: [{name: 'a-{i}', replicas: 40, targetReady: 200}]\n";
        return line(parse_scenario("x", text).scenario, "fill_s").trouble;
    };
    EXPECT_EQ(trouble(""), "");
    EXPECT_EQ(trouble("assertConvergeWithin: 70s\n"), "assertConvergeWithin allows 70 s");
    EXPECT_EQ(trouble("assertions: [{kind: convergeWithin, within: 70s, name: ready}]\n"),
              "ready allows 70 s");
    EXPECT_EQ(trouble("assertions: [{kind: convergeWithin, within: 90s}]\n"), "");
}

TEST(Plan, ReckonsWithWhatTheClusterAllows) {
    const auto of = [](const std::string& top, const char* name) {
        return line(parse_scenario("x", top + "services: [{name: a, targetReady: 500}]\n").scenario,
                    name);
    };
    const std::string slow = "cluster: {rate: 5, burst: 10}\n";
    EXPECT_EQ(of(slow, "rate_per_s").value, 5);
    EXPECT_NE(of(slow, "rate_per_s").trouble, "") << "the clients allow themselves 100";
    EXPECT_EQ(of(slow + "limiterPerSec: 5\n", "rate_per_s").trouble, "");
    EXPECT_NEAR(of(slow, "fill_s").value, 499.0 / 5, 0.1);
    EXPECT_NEAR(of(slow + "limiter: {kind: none}\n", "fill_s").value, 490.0 / 5, 0.1);
}

TEST(Plan, FlagsWorkThatNeedsMoreThanThePoolHas) {
    HOLDFAST_CHECK("poolsim plan.infeasible");
    const auto use = [](const std::string& work) {
        return line(
            parse_scenario(
                "x", "services: [{name: b}, {name: a, workload: {enabled: true, " + work + "}}]\n")
                .scenario,
            "pool_use_max");
    };
    EXPECT_DOUBLE_EQ(use("arrivals: poisson, rate: 100, holdTime: 250ms").value, 0.5);
    EXPECT_EQ(use("arrivals: poisson, rate: 100, holdTime: 250ms").trouble, "");
    EXPECT_NE(use("arrivals: steady, rate: 100, holdTime: 500ms").trouble, "");
    EXPECT_DOUBLE_EQ(use("arrivals: steady, rate: 10, hold: {from: 1s, to: 3s}").value, 0.4);
    EXPECT_DOUBLE_EQ(use("arrivals: steady, rate: 10, hold: {listed: [1s, 2s]}").value, 0.3);
    EXPECT_NEAR(
        use("arrivals: steady, rate: 1, hold: {median: 10s, p99: 100s}").value, 0.326, 1e-3);
    EXPECT_DOUBLE_EQ(use("maxInUse: 10, arrivalBurst: 10, spawnEvery: 1s, holdTime: 1h").value,
                     0.2);
}

}  // namespace
}  // namespace holdfast::sim

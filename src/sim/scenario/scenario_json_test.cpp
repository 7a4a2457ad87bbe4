// A scenario in JSON is the scenario that it is in YAML.
#include <gtest/gtest.h>

#include <holdfast/sim/scenario.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

TEST(ScenarioJson, TheSameScenarioInBothIsTheSame) {
    HOLDFAST_CHECK("poolsim loader.json");
    const Scenario yaml = parse_scenario("a.yaml",
                                         "duration: 90s\nseed: 18446744073709551615\n"
                                         "cluster: {rate: 1.5e2, failures: 0.25}\n"
                                         "services:\n  - {name: \"\xf0\x9f\x98\x80/\", "
                                         "targetReady: 7,\n     workload: {enabled: true, "
                                         "maxInUse: 3, holdTime: 1.5ms}}\n",
                                         {.profile = Profile::compat_r})
                              .scenario;
    const Scenario json =
        parse_scenario("a.json",
                       R"({"duration":"90s","seed":18446744073709551615,)"
                       R"("cluster":{"rate":1.5e2,"failures":0.25},"services":[{"name":)"
                       R"("\uD83D\uDE00\/","targetReady":7,"workload":{"enabled":true,)"
                       R"("maxInUse":3,"holdTime":"1.5ms"}}]})",
                       {.profile = Profile::compat_r})
            .scenario;
    EXPECT_EQ(yaml.duration, json.duration);
    EXPECT_EQ(yaml.seed, json.seed);
    EXPECT_EQ(yaml.services[0].name, json.services[0].name);
    EXPECT_EQ(yaml.services[0].target, json.services[0].target);
    EXPECT_EQ(yaml.services[0].workload.hold, json.services[0].workload.hold);
    EXPECT_EQ(yaml.services[0].workload.enabled, json.services[0].workload.enabled);
}

}  // namespace
}  // namespace holdfast::sim

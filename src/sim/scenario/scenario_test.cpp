#include <holdfast/sim/scenario.hpp>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sim/keys.hpp>
#include <holdfast/sim/shipped.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string one = "services:\n  - name: a\n";

Loaded load(const std::string& text, std::optional<Profile> profile = {}, bool strict = false) {
    return parse_scenario("fleet.yaml", text, {.profile = profile, .strict = strict});
}

std::string refusal(const std::string& text,
                    std::optional<Profile> profile = {},
                    bool strict = false) {
    try {
        (void)load(text, profile, strict);
    } catch (const InvalidArgument& error) {
        return error.what();
    }
    return "";
}

TEST(Scenario, EveryDefaultIsTheDocumentedOne) {
    HOLDFAST_CHECK("poolsim loader.defaults");
    const Scenario scenario = load(one, Profile::compat_r).scenario;
    EXPECT_EQ(scenario.seed, 42);
    EXPECT_EQ(scenario.endpoint, "cluster.dsql.eu-west-1.on.aws");
    EXPECT_EQ(scenario.duration, minutes{20});
    EXPECT_EQ(scenario.sample_every, seconds{1});
    EXPECT_EQ(scenario.limit_per_second, 100);
    EXPECT_EQ(scenario.opens_per_second_max, 100);
    EXPECT_EQ(scenario.converge_within, seconds{60});
    EXPECT_EQ(scenario.stable_for, seconds{5});
    EXPECT_FALSE(scenario.zero_empty);
    ASSERT_EQ(scenario.services.size(), 1);
    const Service& service = scenario.services[0];
    EXPECT_EQ(service.target, 50);
    EXPECT_EQ(service.guard, seconds{45});
    EXPECT_EQ(service.life, minutes{11});
    EXPECT_EQ(service.life_jitter, minutes{2});
    EXPECT_EQ(service.start_delay, seconds{0});
    EXPECT_FALSE(service.workload.enabled);
    EXPECT_EQ(service.workload.hold, milliseconds{10});
    EXPECT_EQ(service.workload.every, milliseconds{200});
    EXPECT_EQ(service.workload.burst, 5);
    ASSERT_EQ(scenario.faults.size(), 1);
    EXPECT_EQ(scenario.faults[0].kind, FaultKind::cold_start);
    EXPECT_EQ(load("limiterPerSec: 7\n" + one, Profile::compat_r).scenario.opens_per_second_max, 7);
}

TEST(Scenario, TheKeepersDefaultsFollowTheSize) {
    HOLDFAST_CHECK("poolsim loader.defaults");
    const auto of = [](const std::string& target) {
        return load(one + "    targetOpen: " + target, Profile::compat_s).scenario.services[0];
    };
    EXPECT_EQ(of("100").stagger, seconds{0});
    EXPECT_EQ(of("101").stagger, minutes{2});
    EXPECT_EQ(of("501").stagger, minutes{3});
    EXPECT_EQ(of("12000").stagger, minutes{5});
    EXPECT_EQ(of("100").open_max, 100);
    EXPECT_EQ(of("120").opens_per_tick, 1);
    EXPECT_EQ(of("121").opens_per_tick, 2);
    EXPECT_EQ(of("5000").opens_per_tick, 10);
    EXPECT_EQ(of("5000").life, minutes{10});
}

struct Bad {
    std::string text;
    std::string message;
};

TEST(Scenario, EachRefusalNamesFileLineAndKey) {
    HOLDFAST_CHECK("poolsim loader.refusals");
    const std::vector<Bad> all{
        {"duration: 0s\n" + one, "fleet.yaml:1:11: duration: give more than 0"},
        {"duration: 5\n" + one, "fleet.yaml:1:11: duration: "},
        {"\nsampleEvery: 0\n" + one, "fleet.yaml:2:14: sampleEvery: give more than 0"},
        {"limiterPerSec: 0\n" + one, "fleet.yaml:1:16: limiterPerSec: give more than 0"},
        {"limiterPerSec: many\n" + one, "limiterPerSec: 'many' is not a whole number"},
        {"seed: -1\n" + one, "fleet.yaml:1:7: seed: '-1' is not a whole number from 0 on"},
        {"assertZeroEmptyEvents: perhaps\n" + one, "'perhaps' is neither true nor false"},
        {"{}", "fleet.yaml:1:1: services: list at least one"},
        {"services: []", "fleet.yaml:1:11: services: list at least one"},
        {"services: [3]", "fleet.yaml:1:12: services[0]: each entry holds keys"},
        {"services: [{targetReady: 3}]", "services[0].name: a service needs a name"},
        {one + "  - name: a\n", "fleet.yaml:3:11: services[1].name: there are two services 'a'"},
        {one + "    targetReady: 0\n", "fleet.yaml:3:18: services[0].targetReady: give more"},
        {one + "    baseLifetime: 0s\n", "services[0].baseLifetime: give more than 0"},
        {one + "    guardWindow: 50m\n", "services[0].guardWindow: must be shorter"},
        {one + "    jitter: -1s\n", "fleet.yaml:3:13: services[0].jitter: a duration is not"},
        {one + "    targetOpen: 3\n", "services[0].targetOpen: this is a file of the older model"},
        {one + "    workload: {spawnEvery: 0}\n", "services[0].workload.spawnEvery: give 1ms"},
        {one + "    workload: 3\n", "services[0].workload must hold keys"},
        {one + "    replicas: 2\n",
         "fleet.yaml:2:11: services[0].name: with replicas it must hold {i}"},
        {one + "    replicas: 20000\n", "services[0].replicas: give 0 to 10000"},
        {one + "scenario: {kind: flood}\n", "fleet.yaml:3:18: scenario.kind: choose from"},
        {one + "scenario: {dropFraction: 2}\n", "scenario.dropFraction: give more than 0"},
        {one + "scenario: {rollEvery: 0}\n", "scenario.rollEvery: give 1ms or more"},
        {one + "profile: other\n", "fleet.yaml:3:10: profile: there is no profile 'other'"},
        {one + "colour: red\n", "fleet.yaml:3:9: colour: unknown key"},
        {one + "    colour: red\n", "fleet.yaml:3:13: services[0].colour: unknown key"},
        {"seed: 1\nseed: 2\n" + one, "fleet.yaml:2:1: seed: set twice"},
        {"services: [", "fleet.yaml:1:1: services: this is not YAML"},
        {"seed: 1\nservices: [{name: a}, {name: 'b}]\n", "services[1].name: this is not YAML"},
        {"seed: 1\nduration 1m\n" + one, "fleet.yaml:3:9: after seed: this is not YAML"},
        {one + "    workload: {enabled: true, }{\n", "services[0].workload: this is not YAML"},
        {"- 1\n", "fleet.yaml:1:1: services: a scenario holds keys"},
        {one + "endpoint: ${who}\n", "fleet.yaml:3:11: endpoint: there is no variable 'who'"},
    };
    for (const Bad& bad : all) {
        EXPECT_THAT(refusal(bad.text), HasSubstr(bad.message)) << bad.text;
    }
    EXPECT_THAT(refusal(one, Profile::compat_s), HasSubstr("services[0].targetOpen: give more"));
    EXPECT_THAT(
        refusal(one + "    targetReady: 5\n", Profile::compat_s),
        HasSubstr("fleet.yaml:3:18: services[0].targetReady: the model with a keeper does not"));
    EXPECT_THAT(refusal(one + "    targetOpen: 5\n    maxOpen: 4\n", Profile::compat_s),
                HasSubstr("fleet.yaml:4:14: services[0].maxOpen: less than targetOpen"));
}

// What would hang, fill the memory or be overlooked.
TEST(Scenario, WhatCannotBeMeantIsRefusedInItsPlace) {
    HOLDFAST_CHECK("poolsim loader.refusals");
    const std::vector<Bad> all{
        {"vars: 3\n" + one, "fleet.yaml:1:7: vars must hold keys"},
        {"defaults: [a]\n" + one, "fleet.yaml:1:11: defaults must hold keys"},
        {"limiterPerSec: 99999999999\n" + one, "limiterPerSec: '99999999999' is too large"},
        {"scenario: {dropFraction: nan}\n" + one, "dropFraction: 'nan' is not a number"},
        {one + "    jitter: 99999d\n", "fleet.yaml:3:13: services[0].jitter: give at most 3660d"},
        {"sampleEvery: 1ns\n" + one, "fleet.yaml:1:14: sampleEvery: 1 services would be sampled"},
        {"sampleEvery: 21m\n" + one, "fleet.yaml:1:14: sampleEvery: longer than duration"},
        {one + "    startDelay: {every: 3660d}\n  - name: b\n    startDelay: {every: 3660d}\n",
         "fleet.yaml:5:25: services[1].startDelay.every: the last of them would never start"},
        {"services:\n  - {name: 'a-{i}', replicas: 9999}\n  - {name: 'b-{i}', replicas: 2}\n",
         "fleet.yaml:3:31: services[1].replicas: at most 10000 services in all"},
        {one + "<<: 3\n", "fleet.yaml:1:1: << takes a map"},
        {"", "fleet.yaml:1:1: services: a scenario holds keys"},
        {one + "---\n" + one, "fleet.yaml:3:1: something follows the document"},
    };
    for (const Bad& bad : all) {
        EXPECT_THAT(refusal(bad.text), HasSubstr(bad.message)) << bad.text;
    }
    // The older models take a negative time for "not this", which a start cannot be.
    EXPECT_THAT(refusal(one + "    startDelay: -5s\n", Profile::compat_r),
                HasSubstr("fleet.yaml:3:17: services[0].startDelay: a duration is not negative"));
    EXPECT_THAT(refusal(one + "    targetReady: 100001\n", Profile::compat_r),
                HasSubstr("fleet.yaml:3:18: services[0].targetReady: give at most 100000"));
    EXPECT_THAT(refusal(one + "    targetOpen: 5\n    warmupStagger: 2d\n", Profile::compat_s),
                HasSubstr("services[0].warmupStagger: give at most 1d"));
}

TEST(Scenario, ZeroMeansNotSetInTheOlderModelsAndIsSaidSo) {
    HOLDFAST_CHECK("poolsim loader.zero");
    const Loaded loaded = load(one + "    jitter: 0s\n", Profile::compat_r);
    EXPECT_EQ(loaded.scenario.services[0].life_jitter, minutes{2});
    EXPECT_THAT(loaded.warnings,
                ElementsAre(HasSubstr("fleet.yaml:3:13: services[0].jitter: 0 means 'not set'")));
    EXPECT_EQ(load(one + "    jitter: -1s\n", Profile::compat_r).scenario.services[0].life_jitter,
              seconds{-1});
    EXPECT_EQ(load(one + "    jitter: 0s\n").scenario.services[0].life_jitter, seconds{0});
}

TEST(Scenario, UnknownAndDeadKeysAreWarningsInTheOlderModelsUnlessStrict) {
    HOLDFAST_CHECK("poolsim loader.strict");
    const std::string text = one + "colour: red\nassertMaxClosurePerSec: 5\n";
    EXPECT_THAT(load(text, Profile::compat_r).warnings,
                ElementsAre(HasSubstr("assertMaxClosurePerSec: this model does not use it"),
                            HasSubstr("colour: unknown key")));
    EXPECT_THAT(refusal(text, Profile::compat_r, true), HasSubstr("assertMaxClosurePerSec"));
    EXPECT_THAT(refusal(one + "colour: red\n", Profile::compat_r, true), HasSubstr("colour"));
    EXPECT_THAT(
        load("assertZeroEmptyEvents: true\n" + one + "    targetOpen: 5\n", Profile::compat_s)
            .warnings,
        ElementsAre(HasSubstr("assertZeroEmptyEvents: this model does not use it")));
}

TEST(Scenario, ReplicasShareTheirWarnings) {
    const std::string text = "services: [{name: 'a-{i}', replicas: 40, jitter: 0s, colour: red}]\n";
    EXPECT_THAT(load(text, Profile::compat_r).warnings,
                ElementsAre(HasSubstr("services[0].jitter"), HasSubstr("services[0].colour")));
}

TEST(Scenario, AnchorsAndMergeKeysAreYamlAsUsual) {
    const Scenario scenario = load(
                                  "defaults: &usual {targetReady: 7, jitter: 3s}\n"
                                  "services:\n"
                                  "  - {<<: *usual, name: a, jitter: 4s}\n"
                                  "  - {name: b, <<: [{guardWindow: 9s}, *usual]}\n")
                                  .scenario;
    EXPECT_EQ(scenario.services[0].target, 7);
    EXPECT_EQ(scenario.services[0].life_jitter, seconds{4}) << "its own counts";
    EXPECT_EQ(scenario.services[1].life_jitter, seconds{3});
    EXPECT_EQ(scenario.services[1].guard, seconds{9});
}

TEST(Scenario, JsonAndYamlMeanTheSame) {
    HOLDFAST_CHECK("poolsim loader.json");
    const Scenario yaml = load("duration: 90s\n" + one + "    jitter: 3m\n").scenario;
    const Scenario json =
        load(R"({"duration": "90s", "services": [{"name": "a", "jitter": "3m"}]})").scenario;
    EXPECT_EQ(yaml.duration, json.duration);
    EXPECT_EQ(yaml.services[0].life_jitter, json.services[0].life_jitter);
    const Scenario bare =
        load(R"({"duration": 90000000000, "services": [{"name": "a"}]})", Profile::compat_r)
            .scenario;
    EXPECT_EQ(bare.duration, seconds{90}) << "the older models count nanoseconds";
}

TEST(Scenario, ReplicasAreNumberedAndStartOneAfterAnother) {
    HOLDFAST_CHECK("poolsim loader.templates");
    const Scenario scenario = load(
                                  "vars: {n: 2}\n"
                                  "defaults: {targetReady: 7, startDelay: {every: 50ms}}\n"
                                  "services:\n"
                                  "  - {name: 'a-{i:02}', replicas: '${n}'}\n"
                                  "  - {name: 'b-{i}', replicas: 1, targetReady: 9}\n")
                                  .scenario;
    ASSERT_EQ(scenario.services.size(), 3);
    EXPECT_EQ(scenario.services[0].name, "a-01");
    EXPECT_EQ(scenario.services[1].name, "a-02");
    EXPECT_EQ(scenario.services[1].start_delay, milliseconds{50});
    EXPECT_EQ(scenario.services[1].target, 7);
    EXPECT_EQ(scenario.services[2].name, "b-1");
    EXPECT_EQ(scenario.services[2].start_delay, milliseconds{100});
    EXPECT_EQ(scenario.services[2].target, 9);
}

TEST(Scenario, AnIncludedFileStandsBelow) {
    HOLDFAST_CHECK("poolsim loader.include");
    const auto read = [](const std::string& path) {
        EXPECT_EQ(path, "dir/base.yaml");
        return std::string("seed: 5\nduration: 3m\n");
    };
    const Scenario scenario =
        parse_scenario("dir/fleet.yaml", "include: base.yaml\nseed: 6\n" + one, {}, read).scenario;
    EXPECT_EQ(scenario.seed, 6);
    EXPECT_EQ(scenario.duration, minutes{3});
    const auto itself = [](const std::string&) { return std::string("include: base.yaml\n"); };
    EXPECT_THROW((void)parse_scenario("fleet.yaml", "include: base.yaml\n" + one, {}, itself),
                 InvalidArgument);
}

TEST(Scenario, WhatCannotBeIncludedIsToldWithThePlaceThatNamesIt) {
    HOLDFAST_CHECK("poolsim loader.refusals");
    const auto told = [](const std::string& text, const std::string& other) {
        try {
            (void)parse_scenario("fleet.yaml", text, {}, [&](const std::string& path) {
                if (other.empty()) {
                    throw InvalidArgument(path + " is not there");
                }
                return other;
            });
        } catch (const InvalidArgument& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(told(one + "include: base.yaml\n", ""),
              "fleet.yaml:3:10: include: base.yaml is not there");
    EXPECT_THAT(told(one + "include: base.yaml\n", "- 1\n"), HasSubstr("base.yaml must hold keys"));
    const std::string traced = "services: [{name: a, workload: {enabled: true, arrivals: trace, ";
    EXPECT_EQ(told(traced + "traceFile: a.csv}}]\n", ""),
              "fleet.yaml:1:76: services[0].workload.traceFile: a.csv is not there");
    EXPECT_THAT(told(traced + "traceFile: a.csv}}]\n", "5s,1\n7s,many\n"),
                HasSubstr("a.csv:2: services[0].workload.trace[1].count: 'many' is not"));
    EXPECT_EQ(told(traced + "traceFile: a.csv}}]\n", "5s, 1\r\n"), "")
        << "as spreadsheets write it";
    EXPECT_THAT(told(traced + "traceFile: a.csv, trace: []}}]\n", "5s\n"), HasSubstr("keep one"));
}

TEST(Scenario, WhatIsNeitherAFileNorShippedIsRefused) {
    EXPECT_THROW((void)load_scenario("no/such.yaml"), InvalidArgument);
}

// Else a sweep along it would show the same row again and again, and a search its upper end.
TEST(Scenario, ADefaultThatEveryServiceOverridesCannotBeSetFromOutside) {
    const auto set = [](const std::string& text) {
        return parse_scenario("x", text, {.overrides = {{"defaults.targetReady", "9"}}}).scenario;
    };
    EXPECT_EQ(set(one).services[0].target, 9);
    EXPECT_EQ(set(one + "  - {name: b, targetReady: 5}\n").services[0].target, 9);
    EXPECT_THROW((void)set("services: [{name: b, targetReady: 5}]\n"), InvalidArgument);
}

TEST(Scenario, AKeyCanBeSetFromOutside) {
    const LoadOptions options{
        .profile = {}, .strict = false, .overrides = {{"services[*].jitter", "7s"}, {"seed", "9"}}};
    const Scenario scenario = parse_scenario("x", one + "  - name: b\n", options).scenario;
    EXPECT_EQ(scenario.seed, 9);
    EXPECT_EQ(scenario.services[1].life_jitter, seconds{7});
    const auto set = [](const char* key, const char* value) {
        return parse_scenario("x", one + "  - name: b\n", {.overrides = {{key, value}}}).scenario;
    };
    EXPECT_EQ(set("targetReady", "8").services[1].target, 8) << "nothing else has one";
    EXPECT_EQ(set("workload.maxInUse", "3").services[0].workload.in_use_max, 3);
    for (const char* key : {"services[7].jitter", "services[x].a", "seed.x", "", "services[0"}) {
        EXPECT_THROW((void)parse_scenario("x", "seed: 1\n" + one, {.overrides = {{key, "1"}}}),
                     InvalidArgument)
            << key;
    }
}

TEST(Scenario, KnowsItsKeysFromTheReaderItself) {
    HOLDFAST_CHECK("poolsim loader.keys");
    const auto find = [](Profile profile, const std::string& path) {
        const auto keys = scenario_keys(profile);
        const auto found = std::ranges::find(keys, path, &ScenarioKey::path);
        return found == keys.end() ? ScenarioKey{} : *found;
    };
    EXPECT_EQ(find(Profile::standard, "services[0].guardWindow").fallback, "45s");
    EXPECT_EQ(find(Profile::standard, "services[0].guardWindow").kind, "duration");
    EXPECT_EQ(find(Profile::standard, "services[0].baseLifetime").fallback, "50m");
    EXPECT_EQ(find(Profile::standard, "services[0].jitter").fallback, "5m");
    EXPECT_EQ(find(Profile::standard, "services[0].probeEvery").fallback, "1s");
    EXPECT_EQ(find(Profile::compat_r, "services[0].baseLifetime").fallback, "11m");
    EXPECT_EQ(find(Profile::compat_r, "services[0].jitter").fallback, "2m");
    EXPECT_EQ(find(Profile::standard, "faults[0].batch").kind, "whole number");
    EXPECT_EQ(find(Profile::standard, "faults[0].which").kind, "oldest, newest, random");
    EXPECT_EQ(find(Profile::compat_r, "scenario.kind").kind,
              "cold_start, rolling_restart, mass_drop");
    EXPECT_EQ(find(Profile::compat_r, "faults[0].batch").path, "");
    EXPECT_EQ(find(Profile::compat_s, "services[0].keeperTick").fallback, "1s");
}

TEST(Scenario, EveryShippedOneLoadsWithoutAWarning) {
    ASSERT_FALSE(shipped_scenarios().empty());
    for (const Shipped& shipped : shipped_scenarios()) {
        EXPECT_TRUE(shipped.yaml.starts_with("# ")) << shipped.name;
        const Loaded loaded = load_scenario(std::string(shipped.name));
        if (!shipped.name.starts_with("compat-s/workload")) {
            EXPECT_THAT(loaded.warnings, IsEmpty()) << shipped.name;
        }
    }
}

}  // namespace
}  // namespace holdfast::sim

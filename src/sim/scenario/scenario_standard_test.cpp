#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sim/scenario.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

const std::string services = "\nservices:\n  - name: a\n";

Scenario load_standard(const std::string& text) {
    return parse_scenario("fleet.yaml", text).scenario;
}

TEST(StandardScenario, HasTheClustersLimitsByDefault) {
    HOLDFAST_CHECK("poolsim loader.defaults");
    const Scenario scenario = load_standard(services);
    EXPECT_EQ(scenario.cluster.rate, 100);
    EXPECT_EQ(scenario.cluster.burst, 1'000);
    EXPECT_EQ(scenario.cluster.ceiling, 10'000);
    EXPECT_EQ(scenario.cluster.age_max, minutes{60});
    EXPECT_EQ(scenario.cluster.connect.kind, Latency::Kind::lognormal);
    EXPECT_EQ(scenario.cluster.connect.low, milliseconds{80});
    EXPECT_EQ(scenario.cluster.connect.high, milliseconds{300});
    EXPECT_EQ(scenario.limiter.kind, LimiterKind::ideal);
    EXPECT_EQ(scenario.services[0].in_flight, 8);
    EXPECT_TRUE(scenario.services[0].spread);
    ASSERT_EQ(scenario.assertions.size(), 1) << "the ceiling is always asserted";
    EXPECT_EQ(scenario.assertions[0].kind, AssertionKind::max_total_connections);
}

TEST(StandardScenario, ReadsWhatItIsGiven) {
    const Scenario scenario = load_standard(
        "cluster: {rate: 50, connect: {listed: [1ms, 2ms]}}\n"
        "limiter: {kind: local, burst: 7}\n"
        "slots: share\n"
        "faults: [{kind: crash, at: 3m, down: 5s, services: a}]\n"
        "assertions: [{kind: maxWait, name: quick, quantile: 0.5, within: 5ms}]" +
        services + "    workload: {enabled: true, arrivals: trace, trace: [{at: 1s, count: 2}]}\n");
    EXPECT_EQ(scenario.cluster.connect.listed.size(), 2);
    EXPECT_EQ(scenario.limiter.kind, LimiterKind::local);
    EXPECT_EQ(scenario.slots.kind, SlotsKind::share);
    ASSERT_EQ(scenario.faults.size(), 2);
    EXPECT_EQ(scenario.faults[1].kind, FaultKind::crash);
    EXPECT_EQ(scenario.faults[1].at, minutes{3});
    EXPECT_EQ(scenario.assertions.back().name, "quick");
    EXPECT_EQ(scenario.assertions.back().limit, milliseconds{5});
    EXPECT_EQ(scenario.services[0].workload.trace.at(0).at, seconds{1});
}

// As the reservoir that ships: one in fifty more, and at least one.
TEST(StandardScenario, ALeadBringsRoomForTheReplacements) {
    const auto overshoot = [](const std::string& more) {
        return load_standard(services + more).services[0].overshoot;
    };
    EXPECT_EQ(overshoot(""), 0);
    EXPECT_EQ(overshoot("    lead: 30s\n"), 1);
    EXPECT_EQ(overshoot("    lead: 30s\n    targetReady: 200\n"), 4);
    EXPECT_EQ(overshoot("    lead: 30s\n    overshoot: 7\n"), 7);
}

TEST(StandardScenario, TheCeilingIsTheLimitOfConnectionsThatNobodyNamed) {
    const Scenario scenario = load_standard(
        "cluster: {ceiling: 70}\nassertions: [{kind: maxTotalConnections},\n"
        "  {kind: maxTotalConnections, value: 60}, {kind: recoverWithin, within: 1s}]" +
        services);
    ASSERT_EQ(scenario.assertions.size(), 4);
    EXPECT_EQ(scenario.assertions[1].value, 70);
    EXPECT_EQ(scenario.assertions[2].value, 60);
    EXPECT_EQ(scenario.assertions[3].value, 1) << "all of its target";
}

// The words of those who ask for them: how soon is a value beside a fraction, and the waits of one
// assertion are several.
TEST(StandardScenario, AssertionsAreWrittenAsTheyAreSpokenOf) {
    const Scenario scenario = load_standard(
        "assertions:\n"
        "  - {kind: recoverWithin, event: mass_drop, value: 1.5s, fraction: 0.9}\n"
        "  - {kind: maxWait, p50: 1ms, p95: 5ms, p99: 20ms, max: 1s}\n"
        "  - {kind: maxWait, name: tail, p99: 30ms}\n"
        "  - {kind: steadyOpenRate, after: 1m, max: 3.5}" +
        services);
    ASSERT_EQ(scenario.assertions.size(), 1 + 1 + 4 + 1 + 1);
    const Assertion& recovery = scenario.assertions[1];
    EXPECT_EQ(recovery.limit, milliseconds{1'500});
    EXPECT_EQ(recovery.value, 0.9);
    EXPECT_EQ(recovery.event, FaultKind::mass_drop);
    EXPECT_EQ(scenario.assertions[3].name, "maxWait.p95");
    EXPECT_EQ(scenario.assertions[3].quantile, 0.95);
    EXPECT_EQ(scenario.assertions[3].limit, milliseconds{5});
    EXPECT_EQ(scenario.assertions[5].quantile, 1);
    EXPECT_EQ(scenario.assertions[6].name, "tail.p99");
    EXPECT_EQ(scenario.assertions[7].value, 3.5);
}

TEST(StandardScenario, ADurationMayHaveAFraction) {
    const auto duration = [](const std::string& text) {
        return load_standard("duration: " + text + services).duration;
    };
    EXPECT_EQ(duration("1.5s"), milliseconds{1'500});
    EXPECT_EQ(duration("1m2.25s"), milliseconds{62'250});
    EXPECT_EQ(duration("1.5h30m"), minutes{120});
    EXPECT_EQ(duration(".5m"), seconds{30});
    for (const char* text : {"1.s", "1.5", "1..5s", "1.5x", "1.5s1.5s", "1.5.5s", "."}) {
        EXPECT_THROW((void)duration(text), InvalidArgument) << text;
    }
}

TEST(StandardScenario, AFaultAfterTheEndIsSaidSo) {
    const std::string text =
        "duration: 1m\nfaults: [{kind: crash, at: 60s}, {kind: crash}]" + services;
    EXPECT_THAT(parse_scenario("fleet.yaml", text).warnings,
                testing::ElementsAre("fleet.yaml:2:34: faults[1].at: after the end, so it never "
                                     "happens"));
}

TEST(StandardScenario, WorkThatIsNotSwitchedOnIsSaidSo) {
    const auto warnings = [](const std::string& work) {
        return parse_scenario("fleet.yaml", services + "    workload: " + work + "\n").warnings;
    };
    EXPECT_THAT(warnings("{arrivals: poisson, rate: 5}"),
                testing::ElementsAre(HasSubstr("services[0].workload.enabled: missing")));
    EXPECT_THAT(warnings("{enabled: false, arrivals: poisson, rate: 5}"), testing::IsEmpty());
}

TEST(StandardScenario, EachPoolOfAProcessIsARow) {
    const Scenario scenario = load_standard(
        "services: [{name: a, pools: 2, targetReady: 7}, {name: b, startDelay: 3s}]\n");
    ASSERT_EQ(scenario.services.size(), 3);
    EXPECT_EQ(scenario.services[0].name, "a/1");
    EXPECT_EQ(scenario.services[1].name, "a/2");
    EXPECT_EQ(scenario.services[1].process, "a");
    EXPECT_EQ(scenario.services[1].target, 7);
    EXPECT_EQ(scenario.services[2].name, "b");
    EXPECT_EQ(scenario.services[2].process, "b");
    EXPECT_EQ(scenario.target(), 64);
}

// Half of a fleet that is overlooked would be worse than a refusal.
TEST(StandardScenario, TheOlderModelsRefuseSeveralPools) {
    for (const Profile profile : {Profile::compat_r, Profile::compat_s}) {
        const std::string target =
            profile == Profile::compat_s ? ", targetOpen: 5" : ", targetReady: 5";
        const std::string text = "services: [{name: a" + target + ", pools: 2}]\n";
        try {
            (void)parse_scenario("fleet.yaml", text, {.profile = profile});
            ADD_FAILURE() << text << " was accepted";
        } catch (const InvalidArgument& error) {
            EXPECT_THAT(
                error.what(),
                AllOf(HasSubstr("fleet.yaml:1:"), HasSubstr("services[0].pools: the older")));
        }
    }
}

void expect_refused(const std::vector<std::pair<std::string, std::string>>& all) {
    for (const auto& [text, message] : all) {
        try {
            (void)load_standard(text + services);
            ADD_FAILURE() << text << " was accepted";
        } catch (const InvalidArgument& error) {
            EXPECT_THAT(error.what(), AllOf(HasSubstr("fleet.yaml:"), HasSubstr(message))) << text;
        }
    }
}

// A planner who is not heard believes in a promise that was never looked at.
TEST(StandardScenario, AWishThatNobodyHearsIsRefused) {
    HOLDFAST_CHECK("poolsim loader.refusals");
    expect_refused({
        {"faults: [{kind: load, value: 1e300}]", "faults[0].value: give 0.001 to 1000"},
        {"faults: [{kind: limit, value: 1e-9}]", "faults[0].value: give 0.001 to 1000000"},
        {"faults: [{kind: clock_jump}]", "faults[0].value: say by how many seconds"},
        {"faults: [{kind: clock_jump, value: 1e12}]", "faults[0].value: give -"},
        {"faults: [{kind: mass_drop, value: 0.5}]",
         "faults[0].value: mass_drop does not use it; it takes: services fraction"},
        {"faults: [{kind: load, value: 2, services: a}]", "faults[0].services: load does not"},
        {"faults: [{kind: cold_start, down: 5s}]", "faults[0].down: cold_start does not use it"},
        {"faults: [{kind: rejects, for: 1m, fraction: .nan}]", "faults[0].fraction: "},
        {"assertions: [{kind: maxWait, value: 5}]", "assertions[0].within: say how long"},
        {"assertions: [{kind: maxWait, within: 5s, value: 5}]",
         "assertions[0].value: maxWait does not use it; it takes: quantile within"},
        {"assertions: [{kind: noLeak, value: 5}]", "assertions[0].value: noLeak does not use it"},
        {"assertions: [{kind: recoverWithin}]", "assertions[0].within: say how soon"},
        {"assertions: [{kind: recoverWithin, within: 1s, value: 99}]", "value: a share"},
        {"assertions: [{kind: minOwnedFraction, value: 99}]", "value: a share: give 0 to 1"},
        {"assertions: [{kind: maxDiscardFullFraction}]", "value: a share: give 0 to 1"},
        {"assertions: [{kind: convergeWithin}]", "assertions[0].within: say how long"},
        {"assertions: [{kind: steadyOpenRate}]", "assertions[0].value: say how many"},
        {"assertions: [{kind: maxServerRejects, value: -1}]", "value: give 0 or more"},
        {"cluster: {rate: inf}", "cluster.rate: 'inf' is not a number"},
        {"cluster: {connect: {median: 0s, p99: 1s}}", "cluster.connect.median: give more than 0"},
        {"defaults: {workload: {enabled: true}}", "services[0].workload.maxInUse: say how much"},
        {"defaults: {workload: {enabled: true, rate: 5}}", "workload.rate: arrivals that are"},
        {"defaults: {workload: {enabled: true, arrivals: trace}}", "workload.trace: list what"},
        {"defaults: {workload: {enabled: true, maxInUse: 1, trace: [{at: 1s}]}}",
         "services[0].workload.trace: say arrivals: trace"},
        {"defaults: {workload: {arrivalBurst: 0}}", "services[0].workload.arrivalBurst: give 1"},
        {"defaults: {workload: {maxInUse: -1}}", "services[0].workload.maxInUse: give 0 to"},
        {"defaults: {workload: {retries: -1}}", "services[0].workload.retries: give 0 to"},
    });
}

TEST(StandardScenario, EachRefusalNamesFileLineAndKey) {
    HOLDFAST_CHECK("poolsim loader.refusals");
    const std::vector<std::pair<std::string, std::string>> all{
        {"cluster: {rate: 0}", "fleet.yaml:1:17: cluster.rate: give more than 0"},
        {"cluster: {burst: 0}", "cluster.burst: give 1 or more"},
        {"cluster: {ceiling: 0}", "cluster.ceiling: give 1 or more"},
        {"cluster: {maxAge: 0s}", "cluster.maxAge: give more than 0"},
        {"cluster: {failures: 1}", "cluster.failures: give 0 to below 1"},
        {"cluster: {colour: red}", "cluster.colour: unknown key"},
        {"cluster: {connect: {median: 5ms, p99: 1ms}}", "cluster.connect.p99: give at least"},
        {"cluster: {connect: {from: 5ms, to: 1ms}}", "cluster.connect.to: give at least"},
        {"cluster: {connect: {listed: []}}", "cluster.connect.listed: give a duration"},
        {"limiter: {kind: best}", "limiter.kind: choose from none, ideal, local"},
        {"limiter: {burst: 0}", "limiter.burst: give 1 or more"},
        {"limiter: {ownPerSec: 0}", "limiter.ownPerSec: give more than 0"},
        {"limiter: {ownBurst: 0}", "limiter.ownBurst: give 1 or more"},
        {"dynamodb: {transaction: 2s}", "dynamodb.transaction: give at most 1s"},
        {"slots: many", "slots: choose from none, share"},
        {"slots: {kind: blocks, ttl: 12s, renewEvery: 4s}", "slots.ttl: a block is not used in"},
        {"faults: 3", "faults: expected a list"},
        {"faults: [{at: 1m}]", "faults[0].kind: give the kind of fault"},
        {"faults: [{kind: flood}]", "faults[0].kind: choose from cold_start"},
        {"faults: [{kind: mass_drop, fraction: 0}]", "faults[0].fraction: give more than 0"},
        {"faults: [{kind: mass_drop, which: best}]", "faults[0].which: choose from oldest"},
        {"faults: [{kind: slow}]", "faults[0].value: give 0.001 to 1000"},
        {"faults: [{kind: scale}]", "faults[0].value: give 1 to"},
        {"faults: [{kind: rolling_restart, batch: 0}]", "faults[0].batch: give 1 or more"},
        {"faults: [{kind: crash, colour: red}]", "faults[0].colour: unknown key"},
        {"faults: [{kind: crash, services: z}]", "faults[0].services: no service has a name"},
        {"faults: [{kind: rolling_restart, order: best}]", "faults[0].order: choose from listed"},
        {"assertions: [{kind: recoverWithin, event: flood}]", "assertions[0].event: choose from"},
        {"assertions: [{value: 1}]", "assertions[0].kind: say what is asserted"},
        {"assertions: [{kind: good}]", "assertions[0].kind: choose from minOwnedFraction"},
        {"assertions: [{kind: maxWait, quantile: 2}]", "assertions[0].quantile: give more"},
        {"assertions: [{kind: maxEmptyRate, window: 0s}]", "assertions[0].window: give more"},
        {"defaults: {inFlight: 0}", "services[0].inFlight: give 1 to"},
        {"defaults: {overshoot: -1}", "services[0].overshoot: give 0 to"},
        {"defaults: {pools: 0}", "services[0].pools: give 1 to 100"},
        {"defaults: {pools: 101}", "services[0].pools: give 1 to 100"},
        {"defaults: {lead: 5m, baseLifetime: 5m}",
         "services[0].lead: must be shorter than baseLifetime without guardWindow"},
        {"defaults: {lead: 1s, overshoot: 0}", "services[0].overshoot: with a lead give 1 or more"},
        {"defaults: {targetReady: 200000}", "services[0].targetReady: give at most"},
        {"defaults: {workload: {arrivals: rain}}", "services[0].workload.arrivals: choose from"},
        {"defaults: {workload: {arrivals: poisson}}", "services[0].workload.rate: say how many"},
        {"defaults: {workload: {arrivals: trace, trace: [{at: 2s}, {at: 1s}]}}",
         "services[0].workload.trace[1].at: list the arrivals in order"},
        {"defaults: {workload: {trace: [{at: 2s, count: 0}]}}", "trace[0].count: give 1 or more"},
    };
    expect_refused(all);
}

// Else a slip in a word or a number looks like a promise that is kept.
TEST(StandardScenario, AnAssertionThatNeverLooksIsToldOf) {
    const auto warned = [](const std::string& text) {
        return parse_scenario("fleet.yaml", "duration: 10m\n" + text + services).warnings;
    };
    const auto always = [](const char* where) { return testing::ElementsAre(HasSubstr(where)); };
    EXPECT_THAT(warned("assertions: [{kind: minOwnedFraction, after: 1h}]"),
                always("fleet.yaml:2:46: assertions[0].after: after the end"));
    const std::string recovery = "assertions: [{kind: recoverWithin, within: 1m, event: outage}]";
    EXPECT_THAT(warned(recovery), always("fleet.yaml:2:55: assertions[0].event: no such fault"));
    EXPECT_THAT(warned("faults: [{kind: crash, at: 1m}]\n" + recovery),
                always("assertions[0].event: no such fault happens"));
    EXPECT_THAT(warned("assertions: [{kind: recoverWithin, within: 1m}]"),
                always("assertions[0].kind: no such fault happens"));
    EXPECT_THAT(warned("faults: [{kind: outage, at: 1m}]\n" + recovery), testing::IsEmpty());
    EXPECT_THAT(warned("assertions: [{kind: minOwnedFraction, after: 10m}]"), testing::IsEmpty());
}

}  // namespace
}  // namespace holdfast::sim

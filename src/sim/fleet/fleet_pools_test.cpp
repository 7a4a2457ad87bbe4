// Several pools in one process: what they share, and what befalls them together.
#include "fleet/test/fleet_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/sim/report.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::Each;
using testing::HasSubstr;

Result run(const std::string& text) {
    return simulate(parse_scenario("pools.yaml", text).scenario, 1);
}

std::vector<int> owned_at(const Result& result, Time at) {
    std::vector<int> all;
    for (const Sample& sample : result.samples) {
        if (sample.at == at) {
            all.push_back(sample.owned());
        }
    }
    return all;
}

// Two processes share 2 a second, whatever they have inside: in a minute each opens 60.
TEST(PoolsStory, ThePoolsOfAProcessShareItsShareOfTheRate) {
    HOLDFAST_CHECK("poolsim pools.share");
    for (const char* limiter : {"local", "reserve"}) {
        const Result result =
            run(std::string("duration: 71s\nlimiterPerSec: 2\nlimiter: {kind: ") + limiter +
                "}\ndynamodb: {timeout: 1s, retries: 0}\ncluster: {connect: 10ms}\n"
                "faults: [{kind: dynamodb_outage, at: 0s, for: 1h}]\n"
                "defaults: {targetReady: 200}\nservices: [{name: a, pools: 3}, {name: b}]\n");
        std::vector<int> opened(2);
        for (const Permit& permit : result.seen.permits) {
            const bool counts = permit.usable >= seconds{10} && permit.usable < seconds{70};
            opened[permit.service == 3 ? 1 : 0] += counts ? 1 : 0;
        }
        EXPECT_THAT(opened, Each(testing::AllOf(testing::Ge(58), testing::Le(62)))) << limiter;
        EXPECT_GT(result.last[2].owned(), 10) << "none of them is left behind, " << limiter;
    }
}

// Two pools of 20 want two blocks of 25, together with room to spare.
TEST(PoolsStory, AProcessWantsTheSlotsOfAllItsPools) {
    HOLDFAST_CHECK("poolsim pools.slots");
    for (const char* kind : {"blocks", "leases"}) {
        const Result result = run(std::string("duration: 2m\nslots: {block: 25, kind: ") + kind +
                                  "}\ndefaults: {targetReady: 20, pools: 2}\n"
                                  "services: [{name: a}, {name: b}]\n");
        EXPECT_THAT(per_service(result, owned), Each(20)) << kind;
        EXPECT_EQ(result.seen.leaked, 0) << kind;
        const Result tight =
            run(std::string("duration: 2m\ncluster: {ceiling: 25}\nslots: {block: 25, kind: ") +
                kind + "}\nservices: [{name: a, targetReady: 20, pools: 2}]\n");
        EXPECT_EQ(total(tight, owned), 25) << kind << ": one block is all there is";
        EXPECT_EQ(tight.seen.rejected_full, 0) << kind;
        EXPECT_EQ(tight.seen.leaked, 0) << kind;
    }
}

struct Together {
    const char* what;
    const char* fault;
    std::vector<int> during;  // Connections of a/1, a/2 and b half a minute later.
};

class PoolsTogether : public testing::TestWithParam<Together> {};

TEST_P(PoolsTogether, AreHitTogether) {
    HOLDFAST_CHECK("poolsim pools.together");
    for (const char* slots : {"none", "blocks", "leases"}) {
        const Result result =
            run(std::string("duration: 6m\nslots: ") + slots +
                "\nlimiter: {kind: reserve, burst: 100}\nfaults: [{at: 1m, " + GetParam().fault +
                "}]\ndefaults: {targetReady: 10, probeEvery: 1s}\n"
                "services: [{name: a, pools: 2}, {name: b}]\n");
        EXPECT_EQ(owned_at(result, seconds{90}), GetParam().during) << slots;
        EXPECT_EQ(result.seen.leaked, 0) << slots;
        for (const Sample& last : result.last) {
            EXPECT_EQ(last.owned(), last.target) << slots;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    By,
    PoolsTogether,
    testing::Values(Together{"crash", "kind: crash, down: 1m, services: a", {0, 0, 10}},
                    Together{"crash_of_one", "kind: crash, down: 1m, services: a/2", {0, 0, 10}},
                    Together{"partition", "kind: partition, for: 1m, services: a", {0, 0, 10}},
                    Together{"restart", "kind: rolling_restart, every: 2m, down: 1m", {0, 0, 10}},
                    Together{
                        "scale_of_one", "kind: scale, value: 20, services: a/2", {10, 20, 10}}),
    [](const auto& row) { return row.param.what; });

TEST(PoolsStory, EachPoolIsARowWithItsName) {
    const Scenario scenario =
        parse_scenario("pools.yaml", "duration: 2s\nservices: [{name: a, pools: 2}]\n").scenario;
    const Result result = simulate(scenario, 1);
    const std::string csv = csv_of(scenario, result);
    EXPECT_THAT(csv, HasSubstr(",a/1,"));
    EXPECT_THAT(csv, HasSubstr(",a/2,"));
    EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 2 * 2);
    EXPECT_EQ(csv, csv_of(scenario, simulate(scenario, 1)));
}

}  // namespace
}  // namespace holdfast::sim

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sim/batch.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

TEST(BatchThreads, GiveTheSameWhateverTheirNumber) {
    HOLDFAST_CHECK("poolsim batch.threads");
    const Scenario small = parse_scenario("small.yaml",
                                          "duration: 20s\nservices:\n"
                                          "  - {name: 'a-{i}', replicas: 3, targetReady: 5,\n"
                                          "     workload: {enabled: true, maxInUse: 4}}\n")
                               .scenario;
    std::vector<Job> jobs;
    for (std::uint64_t seed = 1; seed <= 24; ++seed) {
        jobs.push_back({&small, seed});
    }
    const auto text = [&](unsigned threads) {
        std::size_t told = 0;
        std::string all;
        const BatchOptions options{.threads = threads,
                                   .progress = [&](std::size_t done) { EXPECT_EQ(done, ++told); }};
        for (const Outcome& outcome : run_batch(jobs, options)) {
            all += std::to_string(outcome.seed) + ":" + std::to_string(outcome.events);
            for (const Figure& figure : outcome.figures) {
                all += " " + figure.name + "=" + std::to_string(figure.value);
            }
        }
        EXPECT_EQ(told, jobs.size());
        return all;
    };
    const std::string alone = text(1);
    EXPECT_EQ(alone, text(2));
    EXPECT_EQ(alone, text(8));
}

TEST(BatchThreads, StopTogetherAndLeaveTheRestUnfinished) {
    const Scenario scenario =
        parse_scenario("long.yaml", "duration: 24h\nservices: [{name: a}]\n").scenario;
    const Scenario brief =
        parse_scenario("brief.yaml", "duration: 1s\nservices: [{name: a}]\n").scenario;
    const std::vector<Job> jobs{{&scenario, 1}, {&brief, 1}, {&scenario, 2}, {&brief, 2}};
    std::stop_source stop;
    stop.request_stop();
    for (const Outcome& outcome : run_batch(jobs, {.threads = 2, .stop = stop.get_token()})) {
        EXPECT_FALSE(outcome.finished);
    }
}

}  // namespace
}  // namespace holdfast::sim

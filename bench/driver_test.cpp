#include <holdfast/bench/driver.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using testing::DoubleEq;
using testing::ElementsAre;

class Silent final : public Progress {
public:
    void round(const Pair&, int done, int, double) override { rounds_seen.push_back(done); }
    void finished(const Result& result) override { names_finished.push_back(result.name); }
    void failed(const Pair& pair, const std::exception& error) override {
        names_failed.push_back(pair.name + ": " + error.what());
    }

    std::vector<std::string> names_failed;
    std::vector<int> rounds_seen;
    std::vector<std::string> names_finished;
};

// Gives out its rates one after another, without measuring anything.
struct Script {
    std::vector<double> rates;
    std::string* journal;
    char letter;

    Work operator()(std::chrono::nanoseconds, const std::stop_token&) {
        *journal += letter;
        const double rate = rates.at(next++);
        return {.operations = rate,
                .seconds = 1,
                .counts = {{"commits_per_tx", rate * 2}},
                .figures = {{"p50_us", 1000 / rate}}};
    }
    std::size_t next = 0;
};

Code code_of(const auto& body) {
    try {
        body();
    } catch (const Error& error) {
        return error.code();
    }
    ADD_FAILURE() << "it threw no Error";
    return Code::internal;
}

struct Driver : testing::Test {
    // The first rate of each side is the warm-up's.
    Pair pair(std::vector<double> ours, std::vector<double> limit) {
        return {.name = "toy.spin.c1",
                .unit = "op/s",
                .ours = Script{std::move(ours), &journal, 'o'},
                .limit = Script{std::move(limit), &journal, 'l'},
                .floor = 0.9};
    }
    std::string journal;
    Silent progress;
};

TEST_F(Driver, MeasuresOursAndTheLimitInTurnsAfterAWarmUp) {
    const auto result = measure(
        pair({1, 2, 3, 4}, {1, 1, 1, 1}), {.rounds = 3, .round_time = 1s, .stop = {}}, progress);
    EXPECT_EQ(journal, "olololol");
    EXPECT_THAT(result.ours.rounds, ElementsAre(2, 3, 4)) << "the warm-up must not count";
    EXPECT_THAT(progress.rounds_seen, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(progress.names_finished, ElementsAre("toy.spin.c1"));
}

// The machine gets ten times slower in the last round, for both. The ratio of the medians would be
// 100/10; the median of the ratios is what each round said.
TEST_F(Driver, TheRatioIsTheMedianOfTheRatiosOfTheRounds) {
    const auto result = measure(pair({1, 100, 100, 10}, {1, 100, 10, 10}),
                                {.rounds = 3, .round_time = 1s, .stop = {}},
                                progress);
    EXPECT_DOUBLE_EQ(result.ours.median, 100);
    EXPECT_DOUBLE_EQ(result.limit.median, 10);
    EXPECT_DOUBLE_EQ(result.ratio.median, 1);
}

TEST_F(Driver, CountsArePerOperationOverAllRoundsAndFiguresTheirMedian) {
    const auto result = measure(pair({1, 10, 20, 100}, {1, 1, 1, 1}),
                                {.rounds = 3, .round_time = 1s, .stop = {}},
                                progress);
    ASSERT_EQ(result.counts.size(), 2U);
    EXPECT_EQ(result.counts[0].name, "commits_per_tx");
    EXPECT_DOUBLE_EQ(result.counts[0].value, 2);
    EXPECT_EQ(result.counts[1].name, "p50_us");
    EXPECT_DOUBLE_EQ(result.counts[1].value, 50);
}

TEST_F(Driver, SaysWhetherTheFloorIsReached) {
    const DriverOptions once{.rounds = 1, .round_time = 1s, .stop = {}};
    EXPECT_TRUE(measure(pair({1, 89}, {1, 100}), once, progress).below_floor());
    EXPECT_FALSE(measure(pair({1, 90}, {1, 100}), once, progress).below_floor());
}

TEST_F(Driver, APairMayTakeLessThanARoundsTime) {
    std::vector<std::chrono::nanoseconds> given;
    Pair brief = pair({}, {});
    brief.time_share = 0.4;
    brief.ours = brief.limit = [&given](auto time, const auto&) {
        given.push_back(time);
        return Work{.operations = 1, .seconds = 1, .counts = {}};
    };
    (void)measure(brief, {.rounds = 1, .round_time = 1s, .stop = {}}, progress);
    EXPECT_THAT(given, ElementsAre(80ms, 80ms, 400ms, 400ms));
}

TEST_F(Driver, EndsWithCancelledWhenTheTokenFires) {
    std::stop_source stop;
    Pair interrupted = pair({1, 1, 1}, {1, 1, 1});
    interrupted.ours = [&stop](auto, const auto&) {
        stop.request_stop();
        return Work{.operations = 1, .seconds = 1, .counts = {}};
    };
    const DriverOptions options{.rounds = 2, .round_time = 1s, .stop = stop.get_token()};
    EXPECT_EQ(code_of([&] { (void)measure(interrupted, options, progress); }), Code::cancelled);
    EXPECT_TRUE(progress.names_finished.empty());
}

TEST_F(Driver, APairThatFailsCostsTheOthersNothing) {
    Pair broken = pair({1, 1}, {1, 1});
    broken.name = "toy.broken.c1";
    broken.limit = [](auto, const auto&) -> Work {
        throw Error(Code::unavailable, Outcome::not_applied, "too many clients already");
    };
    const std::vector<Pair> pairs{pair({1, 2}, {1, 1}), broken, pair({1, 3}, {1, 1})};
    const Measured measured =
        measure_all(pairs, {.rounds = 1, .round_time = 1s, .stop = {}}, progress);
    ASSERT_EQ(measured.results.size(), 2U);
    EXPECT_DOUBLE_EQ(measured.results[1].ratio.median, 3);
    EXPECT_THAT(measured.failed,
                ElementsAre(Unmeasured{"toy.broken.c1", "too many clients already"}));
    EXPECT_THAT(progress.names_failed, ElementsAre("toy.broken.c1: too many clients already"));
    EXPECT_EQ(code_of([&] {
                  (void)measure_all(pairs, {.rounds = 0, .round_time = 1s, .stop = {}}, progress);
              }),
              Code::invalid_argument);
}

// A server that lets in fewer than the limit should have.
TEST_F(Driver, TheLimitMaySayWhatItWasMeasuredWith) {
    Pair reduced = pair({1, 2}, {1, 1});
    reduced.limit = [](auto, const auto&) {
        return Work{
            .operations = 1, .seconds = 1, .counts = {}, .figures = {{"limit_clients", 87}}};
    };
    const auto result = measure(reduced, {.rounds = 1, .round_time = 1s, .stop = {}}, progress);
    EXPECT_EQ(result.counts.back(), (Count{"limit_clients", 87}));
}

TEST_F(Driver, RefusesRoundsOutOfBoundsAndRoundsWithoutTime) {
    const Pair any = pair({}, {});
    for (const DriverOptions& bad : {DriverOptions{.rounds = 0, .round_time = 1s, .stop = {}},
                                     DriverOptions{.rounds = 1001, .round_time = 1s, .stop = {}},
                                     DriverOptions{.rounds = 9, .round_time = 0s, .stop = {}}}) {
        EXPECT_EQ(code_of([&] { (void)measure(any, bad, progress); }), Code::invalid_argument);
    }
    EXPECT_TRUE(journal.empty()) << "nothing may run before the options are accepted";
}

TEST(Spread, QuartilesInterpolateBetweenNeighbours) {
    const Spread spread = spread_of({4, 1, 3, 2});
    EXPECT_DOUBLE_EQ(spread.median, 2.5);
    EXPECT_DOUBLE_EQ(spread.lower, 1.75);
    EXPECT_DOUBLE_EQ(spread.upper, 3.25);
    EXPECT_THAT(spread.rounds, ElementsAre(4, 1, 3, 2)) << "rounds stay in the order of time";
    EXPECT_EQ(spread_of({}), Spread{});
    EXPECT_DOUBLE_EQ(spread_of({7}).upper, 7);
}

}  // namespace
}  // namespace holdfast::bench

#include <holdfast/base/metrics.hpp>

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

using testing::HasSubstr;

std::size_t occurrences(std::string_view part, std::string_view text) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
        ++count;
    }
    return count;
}

TEST(Metrics, ExposesPrometheusText) {
    Metrics metrics;
    metrics.counter("tx_total", "Transactions.", {{"operation", "pay"}, {"db", "orders"}}).add(2);
    metrics.gauge("open", "Connections.").set(7);
    const Histogram histogram = metrics.histogram("wait_seconds", "Waits.", {0.5, 1});
    histogram.observe(0.5);  // A bound belongs to its own bucket.
    histogram.observe(0.75);
    histogram.observe(9);
    EXPECT_EQ(metrics.expose(),
              "# HELP open Connections.\n"
              "# TYPE open gauge\n"
              "open 7\n"
              "# HELP tx_total Transactions.\n"
              "# TYPE tx_total counter\n"
              "tx_total{db=\"orders\",operation=\"pay\"} 2\n"
              "# HELP wait_seconds Waits.\n"
              "# TYPE wait_seconds histogram\n"
              "wait_seconds_count 3\n"
              "wait_seconds_sum 10.25\n"
              "wait_seconds_bucket{le=\"0.5\"} 1\n"
              "wait_seconds_bucket{le=\"1\"} 2\n"
              "wait_seconds_bucket{le=\"+Inf\"} 3\n");
}

TEST(Metrics, AskingAgainGivesTheSameSeriesInAnyOrderOfLabels) {
    Metrics metrics;
    metrics.counter("c", "", {{"a", "1"}, {"b", "2"}}).add();
    metrics.counter("c", "", {{"b", "2"}, {"a", "1"}}).add();
    EXPECT_EQ(metrics.value("c", {{"a", "1"}, {"b", "2"}}), 2);
    EXPECT_EQ(metrics.value("c", {{"b", "2"}, {"a", "1"}}), 2);
}

TEST(Metrics, ValueIsZeroForWhatDoesNotExistAndCreatesNothing) {
    Metrics metrics;
    static_cast<void>(metrics.counter("c", "", {{"a", "1"}}));
    const std::string before = metrics.expose();
    EXPECT_EQ(metrics.value("nothing"), 0);
    EXPECT_EQ(metrics.value("c"), 0);
    EXPECT_EQ(metrics.value("c", {{"a", "2"}}), 0);
    EXPECT_EQ(metrics.value("c", {{"b", "1"}}), 0);
    EXPECT_EQ(metrics.expose(), before);
}

TEST(Metrics, ValueOfAHistogramIsItsCount) {
    Metrics metrics;
    const Histogram histogram = metrics.histogram("h", "", latency_bounds());
    histogram.observe(0.2);
    histogram.observe(100);
    EXPECT_EQ(metrics.value("h"), 2);
}

TEST(Metrics, AGaugeGoesBothWays) {
    Metrics metrics;
    const Gauge gauge = metrics.gauge("g", "");
    gauge.add(5);
    gauge.add(-2);
    EXPECT_EQ(metrics.value("g"), 3);
    gauge.set(-1);
    EXPECT_EQ(metrics.value("g"), -1);
}

TEST(Metrics, AHandleOfNothingCountsNothing) {
    Counter().add();
    Gauge().set(1);
    Gauge().add(1);
    Histogram().observe(1);
}

// One operation name made from user input must not eat the process's memory.
TEST(Metrics, TheNumberOfSeriesIsBounded) {
    Metrics metrics;
    constexpr int asked = 2000;
    for (int i = 0; i < asked; ++i) {
        metrics.counter("c", "", {{"op", std::to_string(i)}, {"db", "orders"}}).add();
    }
    EXPECT_EQ(occurrences("c{", metrics.expose()), Metrics::series_per_metric_max);
    EXPECT_EQ(metrics.value("c", {{"op", "0"}, {"db", "orders"}}), 1);
    EXPECT_EQ(metrics.value("c", {{"op", "1999"}, {"db", "orders"}}), 0);
    constexpr int kept = Metrics::series_per_metric_max - 1;
    EXPECT_EQ(metrics.value("c", {{"op", "other"}, {"db", "other"}}), asked - kept);

    metrics.counter("c", "", {{"op", "0"}, {"db", "orders"}}).add();
    EXPECT_EQ(metrics.value("c", {{"op", "0"}, {"db", "orders"}}), 2) << "known sets stay apart";
    metrics.counter("d", "", {{"op", "fresh"}}).add();
    EXPECT_EQ(metrics.value("d", {{"op", "fresh"}}), 1) << "the bound is per metric";
}

TEST(Metrics, NamesThatPrometheusRefusesAreRefused) {
    Metrics metrics;
    for (const std::string_view name : {"", "1st", "a-b", "a b", "caf\xc3\xa9", "__reserved"}) {
        EXPECT_THROW(static_cast<void>(metrics.counter(name, "")), InvalidArgument) << name;
    }
    for (const std::string_view label : {"", "1st", "a-b", "a:b", "__reserved"}) {
        EXPECT_THROW(static_cast<void>(metrics.counter("c", "", {{label, "v"}})), InvalidArgument)
            << label;
    }
    EXPECT_THROW(static_cast<void>(metrics.counter("c", "", {{"a", "1"}, {"a", "2"}})),
                 InvalidArgument);
    EXPECT_THROW(static_cast<void>(metrics.histogram("h", "", {1}, {{"le", "1"}})),
                 InvalidArgument);
    EXPECT_EQ(metrics.expose(), "") << "a refused metric leaves nothing behind";
}

TEST(Metrics, BoundsMustGrow) {
    Metrics metrics;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (const std::vector<double>& bounds :
         std::vector<std::vector<double>>{{}, {1, 1}, {2, 1}, {1, infinity}, {nan}}) {
        EXPECT_THROW(static_cast<void>(metrics.histogram("h", "", bounds)), InvalidArgument);
    }
}

TEST(Metrics, OneNameHasOneMeaning) {
    Metrics metrics;
    static_cast<void>(metrics.counter("c", "", {{"a", "1"}}));
    static_cast<void>(metrics.histogram("h", "", {1, 2}));
    EXPECT_THROW(static_cast<void>(metrics.gauge("c", "", {{"a", "1"}})), InvalidArgument);
    EXPECT_THROW(static_cast<void>(metrics.counter("c", "")), InvalidArgument);
    EXPECT_THROW(static_cast<void>(metrics.counter("c", "", {{"b", "1"}})), InvalidArgument);
    EXPECT_THROW(static_cast<void>(metrics.histogram("h", "", {1, 3})), InvalidArgument);
}

// Prometheus refuses the whole page for one bad byte.
TEST(Metrics, LabelValuesCannotBreakThePage) {
    Metrics metrics;
    metrics.counter("c", "", {{"v", "a\"b\\c\nd\xff"}}).add();
    EXPECT_THAT(metrics.expose(), HasSubstr("c{v=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"} 1\n"));
    EXPECT_EQ(metrics.value("c", {{"v", "a\"b\\c\nd\xff"}}), 1);
}

TEST(Metrics, WhatIsNoNumberDoesNotPoisonASum) {
    Metrics metrics;
    const Histogram histogram = metrics.histogram("h", "", {1});
    histogram.observe(std::numeric_limits<double>::quiet_NaN());
    histogram.observe(0.5);
    EXPECT_THAT(metrics.expose(), HasSubstr("h_sum 0.5\n"));
    EXPECT_THAT(metrics.expose(), HasSubstr("h_count 1\n"));
}

// For what changes too often to be told each time.
TEST(Metrics, ARefresherIsCalledBeforeAnybodyReads) {
    Metrics metrics;
    const Gauge gauge = metrics.gauge("g", "");
    int now = 1;
    Refresher refresher = metrics.refresh_with([&] { gauge.set(now); });
    EXPECT_EQ(metrics.value("g"), 1);
    now = 2;
    EXPECT_THAT(metrics.expose(), HasSubstr("g 2\n"));

    refresher = {};
    now = 3;
    EXPECT_EQ(metrics.value("g"), 2) << "it has ended with its handle";
}

}  // namespace
}  // namespace holdfast

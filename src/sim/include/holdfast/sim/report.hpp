// Results as text: for people, and as tables for programs.
#pragma once

#include <string>
#include <vector>

#include <holdfast/sim/figures.hpp>
#include <holdfast/sim/result.hpp>
#include <holdfast/sim/scenario.hpp>
#include <holdfast/sim/simulation.hpp>

namespace holdfast::sim {

// Before it begins: "simulating local for 20m: 4 services, 200 connections".
[[nodiscard]] std::string start_of(const Scenario& scenario);

// On the way, each simulated minute: the time of day, how much has happened, how much is to come.
[[nodiscard]] std::string progress_of(const Moment& moment);

// The summary of one run, without the verdict.
[[nodiscard]] std::string summary_of(const Scenario& scenario, const Result& result);

// "converge: history: never had its connections (at 1m)", or of a fleet
// "maxServerRejects: 7 openings were refused by the cluster, 5 are allowed (at 3s, history)".
[[nodiscard]] std::string told(const Violation& violation);

// "OK", or a line "FAIL: ..." for each violation.
[[nodiscard]] std::string verdict_of(const Result& result);

// A header, then a row per service and sample, in the columns of the scenario's profile.
[[nodiscard]] std::string csv_of(const Scenario& scenario, const Result& result);

// The same with a row per sample, and columns for each service: "history-1.size".
[[nodiscard]] std::string wide_csv_of(const Scenario& scenario, const Result& result);

// The results of one scenario.
struct Suite {
    std::string scenario;
    std::vector<Outcome> outcomes;
};

// As JUnit XML: a suite per scenario, below <testsuites> if there are several, and in it a test
// case per run, with its violations.
[[nodiscard]] std::string junit_of(const std::vector<Suite>& suites);

// Simulated time as a moment: the simulation starts at 2026-01-01T00:00:00Z.
[[nodiscard]] std::string moment_text(Time at);

}  // namespace holdfast::sim

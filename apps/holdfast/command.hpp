// What a command is given, and what it gives back.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include <holdfast/base/config.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/metrics.hpp>

namespace holdfast::app {

class Signals;

struct Context {
    const Config& config;
    std::string config_file;  // As given; empty if there is none.
    Logger& logger;
    Metrics& metrics;
    std::stop_token stop;  // Fires at SIGINT and SIGTERM.
    Signals& signals;      // Which of them it was.
    bool json = false;     // Print JSON for programs, not tables for people.
    bool quiet = false;    // Print no progress.
};

// Returns an exit code of exit_code.hpp; failures throw.
using Command = std::function<int(const Context&)>;

}  // namespace holdfast::app

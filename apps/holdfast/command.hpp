// What a command is given, and what it gives back.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include <holdfast/base/config.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/metrics.hpp>

namespace holdfast::sql {
struct DatabaseOptions;
}

namespace holdfast::app {

class Signals;
struct Context;

// A command that ends soon opens connections as it needs them; a process that stays fills its pool.
enum class Stay : std::uint8_t { brief, service };

// Adds the databases that a program opens besides those of `sql`.
using AddSources = void (*)(const Context& context, Stay stay, sql::DatabaseOptions& options);

struct Context {
    const Config& config;
    std::string config_file;  // As given; empty if there is none.
    Logger& logger;
    Metrics& metrics;
    std::stop_token stop;  // Fires at SIGINT and SIGTERM.
    Signals& signals;      // Which of them it was.
    AddSources add_sources = nullptr;
    bool json = false;   // Print JSON for programs, not tables for people.
    bool quiet = false;  // Print no progress.
};

// Returns an exit code of exit_code.hpp; failures throw.
using Command = std::function<int(const Context&)>;

}  // namespace holdfast::app

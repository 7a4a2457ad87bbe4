// What every program with commands does: reads the command line and the configuration, runs the
// command, and says in one sentence what went wrong.
#pragma once

#include <variant>

#include "cli/cli.hpp"
#include "command.hpp"

#include <holdfast/base/settings.hpp>

namespace holdfast::app {

struct Program {
    std::variant<Request, Answer> (*parse)(int argc, const char* const* argv);
    Settings settings;
    AddSources add_sources;
};

// Returns the exit code.
int run_program(const Program& program, int argc, const char* const* argv);

}  // namespace holdfast::app

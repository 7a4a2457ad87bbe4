// The command line: the tree of verbs, and what a user asked of it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "command.hpp"

#include <holdfast/base/config.hpp>

namespace holdfast::app {

// A command to run.
struct Request {
    Command command;
    std::vector<FlagValue> flags;  // Settings given as options, such as --db.
    std::string config_file;
    bool json = false;
    bool quiet = false;
};

// Help or the version: text for standard output, and nothing else to do.
struct Answer {
    std::string text;
};

// Invalid_argument for what is not understood; the message names the nearest thing that would be.
[[nodiscard]] std::variant<Request, Answer> parse_command_line(int argc, const char* const* argv);

}  // namespace holdfast::app

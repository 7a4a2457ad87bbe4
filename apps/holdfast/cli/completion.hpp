// holdfast completion: scripts for tab completion, generated from the tree of verbs.
#pragma once

#include <string>

#include "cli/command_tree.hpp"
#include "command.hpp"

namespace holdfast::app {

[[nodiscard]] std::string bash_completion(const CommandNode& root);
[[nodiscard]] std::string zsh_completion(const CommandNode& root);

// Prints the script for a shell.
int completion(const std::string& shell, const CommandNode& root);

}  // namespace holdfast::app

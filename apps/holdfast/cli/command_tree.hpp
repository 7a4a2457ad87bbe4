// The tree of verbs as plain data, for completion and suggestions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::app {

enum class Takes : std::uint8_t { nothing, text, file, folder, choice };

struct OptionNode {
    std::vector<std::string> names;  // "--db", or none for an argument without a name.
    std::string help;
    Takes takes = Takes::text;
    std::vector<std::string> choices;
};

struct CommandNode {
    std::string name;
    std::string help;
    std::vector<OptionNode> options;  // Its own, and those that hold everywhere.
    std::vector<OptionNode> arguments;
    std::vector<CommandNode> commands;
};

// The candidate that `word` is most likely meant to be; empty if none is near.
[[nodiscard]] std::string closest(std::string_view word,
                                  const std::vector<std::string>& candidates);

}  // namespace holdfast::app

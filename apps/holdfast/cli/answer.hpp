// The result that a command prints.
#pragma once

#include <string>
#include <string_view>

#include "command.hpp"
#include <nlohmann/json.hpp>

namespace holdfast::app {

using Json = nlohmann::ordered_json;

// In one line. File names, as in a URL, may be invalid UTF-8, which is replaced.
[[nodiscard]] std::string json_line(const Json& json);

// One sentence for people, or the object for programs. Returns exit_done.
int say(const Context& context, const Json& json, std::string_view sentence);

}  // namespace holdfast::app

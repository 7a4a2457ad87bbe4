#include "cli/answer.hpp"

#include "cli/terminal.hpp"
#include <fmt/core.h>

#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {

std::string json_line(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

int say(const Context& context, const Json& json, std::string_view sentence) {
    print(context.json ? json_line(json) + "\n" : fmt::format("{}\n", sentence));
    return exit_done;
}

}  // namespace holdfast::app

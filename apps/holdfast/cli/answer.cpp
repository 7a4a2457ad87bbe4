#include "cli/answer.hpp"

#include "cli/terminal.hpp"

#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/visible.hpp>

namespace holdfast::app {

std::string json_line(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

int say(const Context& context, const Json& json, std::string_view sentence) {
    print(context.json ? json_line(json) + "\n" : visible(sentence) + "\n");
    return exit_done;
}

}  // namespace holdfast::app

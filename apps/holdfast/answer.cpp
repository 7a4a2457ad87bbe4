#include "answer.hpp"

#include "terminal.hpp"
#include <fmt/core.h>

#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {

int say(const Context& context, const Json& json, std::string_view sentence) {
    print(context.json ? json.dump() + "\n" : fmt::format("{}\n", sentence));
    return exit_done;
}

}  // namespace holdfast::app

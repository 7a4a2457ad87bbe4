#include "version.hpp"

#include "cli/terminal.hpp"
#include <nlohmann/json.hpp>

#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {

std::string version_text() {
    return "holdfast " HOLDFAST_VERSION;
}

int version(const Context& context) {
    const nlohmann::ordered_json json{{"version", HOLDFAST_VERSION}};
    print((context.json ? json.dump() : version_text()) + "\n");
    return exit_done;
}

}  // namespace holdfast::app

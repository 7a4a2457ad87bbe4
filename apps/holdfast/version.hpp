// holdfast version.
#pragma once

#include <string>

#include "command.hpp"

namespace holdfast::app {

// "holdfast 0.1.0"
[[nodiscard]] std::string version_text();

int version(const Context& context);

}  // namespace holdfast::app

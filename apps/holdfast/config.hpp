// holdfast config: what is in force, and why.
#pragma once

#include "command.hpp"

namespace holdfast::app {

// Every setting with its value and where that came from.
int config_show(const Context& context);

}  // namespace holdfast::app

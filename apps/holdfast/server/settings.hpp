// The settings of `holdfast server run`, below `server.` in a configuration.
#pragma once

#include <holdfast/base/config.hpp>

namespace holdfast::app {

[[nodiscard]] Settings server_settings();

}  // namespace holdfast::app

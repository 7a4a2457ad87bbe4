// The settings every Holdfast program has.
#pragma once

#include <holdfast/base/config.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast {

// db, retry.*, retry.operations.NAME.*, monitoring.*, lock.*, log.*, metrics.address.
[[nodiscard]] Settings holdfast_settings();

// Requires: `config` was loaded with holdfast_settings().
[[nodiscard]] LogOptions log_options(const Config& config);

}  // namespace holdfast

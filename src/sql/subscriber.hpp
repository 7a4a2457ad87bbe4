// The callback of one subscription.
#pragma once

#include <functional>
#include <string_view>

#include <holdfast/base/log.hpp>

namespace holdfast::sql {

using Wake = std::function<void(std::string_view payload)>;

// What the callback throws is logged and dropped: the thread that delivers serves others, too.
void call_subscriber(const Wake& wake,
                     std::string_view channel,
                     std::string_view payload,
                     Logger& logger) noexcept;

}  // namespace holdfast::sql

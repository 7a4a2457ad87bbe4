// Who is called after a notification.
#pragma once

#include <functional>
#include <string_view>

#include <holdfast/base/log.hpp>

namespace holdfast::sql {

using Wake = std::function<void(std::string_view payload)>;

// What the callback throws is logged and forgotten: whoever delivers has others to serve.
void call_subscriber(const Wake& wake,
                     std::string_view channel,
                     std::string_view payload,
                     Logger& logger) noexcept;

}  // namespace holdfast::sql

// Checks of ids and of names of channels, signals, queries and updates, before they are stored.
#pragma once

#include <string_view>

namespace holdfast::flow {

// Both throw InvalidArgument unless there are 1 to 256 bytes of UTF-8 without a zero.
void require_instance_id(std::string_view instance);
void require_name(std::string_view name, std::string_view what);

}  // namespace holdfast::flow

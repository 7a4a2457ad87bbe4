// What ids and names of channels, signals, queries and updates must be to be stored.
#pragma once

#include <string_view>

namespace holdfast::flow {

// Both throw InvalidArgument unless there are 1 to 256 bytes of UTF-8 without a zero.
void require_instance_id(std::string_view instance);
void require_name(std::string_view name, std::string_view what);

}  // namespace holdfast::flow

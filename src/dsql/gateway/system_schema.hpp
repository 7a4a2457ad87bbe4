// What every cluster has before its first user comes: the schema `sys`, and the role `admin`.
#pragma once

#include <string_view>

namespace holdfast::dsql {

// May be run again, and by two at once. The first part concerns the whole server, the second one
// database.
[[nodiscard]] std::string_view server_script() noexcept;
[[nodiscard]] std::string_view database_script() noexcept;

}  // namespace holdfast::dsql

// The initial contents of every cluster: the schema `sys`, and the role `admin`.
//
// No role but the gateway's own may use the schema `holdfast_gateway`. The only function there that
// runs with its owner's rights has a fixed search_path and is for the gateway's role alone.
#pragma once

#include <string_view>

namespace holdfast::dsql {

// All may be repeated, also concurrently. The first concerns the whole server, the second one
// database; a superuser runs both. The third is run by the gateway's role.
[[nodiscard]] std::string_view server_script() noexcept;
[[nodiscard]] std::string_view database_script() noexcept;
[[nodiscard]] std::string_view schema_script() noexcept;

}  // namespace holdfast::dsql

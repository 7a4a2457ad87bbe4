// What of a secret may be shown.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Stands for anything that is not shown.
inline constexpr std::string_view redacted = "***";

// `url` with `***` for the password before the host and for every query parameter whose name ends
// in `password`. Text that is no URL comes back as it is.
[[nodiscard]] std::string without_password(std::string_view url);

}  // namespace holdfast

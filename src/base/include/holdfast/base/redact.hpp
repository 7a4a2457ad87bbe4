// Hides secrets in text that is shown.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Stands for anything that is not shown.
inline constexpr std::string_view redacted = "***";

// `url` with `***` for the password before the host and for every query parameter whose name ends
// in `password`, `token` or `secret`. Text that is neither a URL nor the name of a .db file comes
// back as `***`: where its password would be is not known. Rather too much is hidden than too
// little, for example if the password holds an '@' or a '?' that is not escaped.
[[nodiscard]] std::string without_password(std::string_view url);

}  // namespace holdfast

// Percent coding as in URLs (RFC 3986, section 2.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

// Letters, digits, -._~ and the characters in `keep` stay as they are; every other byte becomes %XX
// with capital digits, as signatures of requests require it.
[[nodiscard]] std::string percent_encoded(std::string_view text, std::string_view keep = {});

// Empty if a % is not followed by two hexadecimal digits. A + stays a +. The result may hold any
// byte, zero among them.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace holdfast

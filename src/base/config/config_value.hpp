// Parses and formats the values of settings.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/base/config.hpp>

namespace holdfast {

// Invalid_argument if `text` is not of that kind or out of its bounds; the message quotes `text`.
[[nodiscard]] ConfigValue parse_value(const SettingKind& kind, std::string_view text);

// "an integer from 0 to 10".
[[nodiscard]] std::string expectation(const SettingKind& kind);

// A text that parse_value() reads back, but for what is secret.
[[nodiscard]] std::string show_value(const ConfigValue& value, Secrecy secrecy);

}  // namespace holdfast

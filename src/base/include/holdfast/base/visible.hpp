// Stored text for a reader's terminal.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// `text` in which everything that controls a terminal, changes the reading order or is invisible
// stands as an escape: \x1b, \x9b, \u202e, \U000e0041, and \xff for a byte that is not UTF-8.
// Line ends and tabs stay as they are. A repeat changes nothing more.
[[nodiscard]] std::string visible(std::string_view text);

}  // namespace holdfast

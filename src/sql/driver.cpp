#include "driver.hpp"

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast::sql {

void require_text(std::string_view text, const Rendered& statement, int number) {
    const bool zero = text.find('\0') != std::string_view::npos;
    if (!zero && is_utf8(text)) {
        return;
    }
    throw InvalidArgument(fmt::format("argument {} of statement '{}' is text {}; bind it as bytes",
                                      number,
                                      statement.name,
                                      zero ? "with a zero byte" : "that is not UTF-8"));
}

}  // namespace holdfast::sql

#include "name_check.hpp"

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast::flow {
namespace {

constexpr std::size_t name_bytes_max = 256;

void require_bytes(std::string_view text, std::string_view what) {
    if (text.empty() || text.size() > name_bytes_max) {
        throw InvalidArgument(
            fmt::format("{} has {} bytes; give it 1 to {}", what, text.size(), name_bytes_max));
    }
    if (!is_utf8(text)) {
        throw InvalidArgument(fmt::format("{} is not UTF-8; encode it as UTF-8", what));
    }
    if (text.find('\0') != std::string_view::npos) {
        throw InvalidArgument(fmt::format("{} contains a zero byte; remove it", what));
    }
}

}  // namespace

void require_instance_id(std::string_view instance) {
    require_bytes(instance, "an instance id");
}

void require_name(std::string_view name, std::string_view what) {
    require_bytes(name, what);
}

}  // namespace holdfast::flow

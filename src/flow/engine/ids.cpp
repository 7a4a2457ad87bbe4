#include <holdfast/flow_engine/ids.hpp>

#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include <holdfast/base/error.hpp>

namespace holdfast::flow {
namespace {

// Takes a whole number without a sign or a leading zero from the front; false if there is none.
bool take_number(std::string_view& text, int& number) noexcept {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    if (text.empty() || text.front() == '-') {
        return false;
    }
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error != std::errc{} || (text.front() == '0' && stop != begin + 1)) {
        return false;
    }
    text.remove_prefix(static_cast<std::size_t>(stop - begin));
    return true;
}

bool take_dot(std::string_view& text) noexcept {
    if (!text.starts_with('.')) {
        return false;
    }
    text.remove_prefix(1);
    return true;
}

}  // namespace

Version Version::parse(std::string_view text) {
    Version version;
    std::string_view rest = text;
    const bool good = take_number(rest, version.major) && take_dot(rest) &&
                      take_number(rest, version.minor) && take_dot(rest) &&
                      take_number(rest, version.patch) && rest.empty();
    if (!good) {
        throw InvalidArgument(
            fmt::format("'{}' is not a version; write three numbers, for example 1.2.3", text));
    }
    return version;
}

std::string Version::text() const {
    return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace holdfast::flow

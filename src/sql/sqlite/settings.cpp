#include "sqlite/settings.hpp"

#include <charconv>
#include <string_view>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sql::sqlite {
namespace {

constexpr std::string_view memory_path = ":memory:";
constexpr std::chrono::milliseconds busy_timeout_max = std::chrono::hours{1};

[[noreturn]] void refuse_value(std::string_view option,
                               std::string_view value,
                               std::string_view allowed) {
    throw InvalidArgument(fmt::format(
        "the SQLite option {} cannot be '{}'; write {}={}", option, value, option, allowed));
}

bool parse_flag(std::string_view option, std::string_view value) {
    if (value != "0" && value != "1") {
        refuse_value(option, value, "1 or 0");
    }
    return value == "1";
}

Synchronous parse_synchronous(std::string_view value) {
    if (value == "full") {
        return Synchronous::full;
    }
    if (value == "normal") {
        return Synchronous::normal;
    }
    if (value == "off") {
        return Synchronous::off;
    }
    refuse_value("synchronous", value, "full, normal or off");
}

std::chrono::milliseconds parse_busy_timeout(std::string_view value) {
    std::int64_t count = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, count);
    if (error != std::errc{} || stop != end || count < 0 || count > busy_timeout_max.count()) {
        refuse_value("busy_timeout", value, "0 to 3600000, in milliseconds");
    }
    return std::chrono::milliseconds{count};
}

void apply_option(Settings& settings, std::string_view option, std::string_view value) {
    if (option == "create") {
        settings.create = parse_flag(option, value);
    } else if (option == "readonly") {
        settings.read_only = parse_flag(option, value);
    } else if (option == "synchronous") {
        settings.synchronous = parse_synchronous(value);
    } else if (option == "busy_timeout") {
        settings.busy_timeout = parse_busy_timeout(value);
    } else {
        throw InvalidArgument(
            fmt::format("SQLite has no option '{}'; there are create, readonly, synchronous and "
                        "busy_timeout",
                        option));
    }
}

}  // namespace

Settings settings_of(const Url& url, bool create) {
    Settings settings;
    settings.create = create;
    for (const auto& [option, value] : url.options) {
        apply_option(settings, option, value);
    }
    if (url.rest.empty()) {
        throw InvalidArgument("the database URL names no file; write sqlite:PATH");
    }
    settings.memory = url.rest == memory_path;
    // SQLite takes special names (":memory:", "file:...") from a path that begins with them.
    const bool plain = settings.memory || url.rest.front() == '/';
    settings.path = plain ? url.rest : "./" + url.rest;
    if (settings.read_only && (settings.create || settings.memory)) {
        throw InvalidArgument(
            "readonly=1 reads a file that exists; drop readonly=1, or create=1 and :memory:");
    }
    return settings;
}

}  // namespace holdfast::sql::sqlite

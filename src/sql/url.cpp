#include <holdfast/sql/url.hpp>

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sql {
namespace {

constexpr std::string_view examples = "sqlite:orders.db or postgres://user@host/orders";

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

std::string percent_decoded(std::string_view text) {
    std::string decoded;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            decoded += text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0)) {
            throw InvalidArgument(fmt::format(
                "the database URL has a bad percent escape in '{}'; write % as %25", text));
        }
        decoded += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return decoded;
}

// Blanks that were not written as %20 are a slip of whoever put the URL together.
std::string_view trimmed(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

void parse_options(std::string_view text, Url& url) {
    while (!text.empty()) {
        const std::size_t end = text.find('&');
        const std::string_view option = text.substr(0, end);
        const std::size_t equals = option.find('=');
        if (option.empty() || equals == std::string_view::npos || equals == 0) {
            throw InvalidArgument(fmt::format(
                "the database URL has an option '{}' without a value; write name=value", option));
        }
        std::string name = percent_decoded(trimmed(option.substr(0, equals)));
        std::string value = percent_decoded(trimmed(option.substr(equals + 1)));
        if (!url.options.emplace(name, std::move(value)).second) {
            throw InvalidArgument(
                fmt::format("the database URL has the option '{}' twice; keep one", name));
        }
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
}

}  // namespace

std::string Url::printable() const {
    std::string text = scheme + ":" + rest;
    const std::size_t at = text.rfind('@');
    const std::size_t authority = text.find("//");
    if (at == std::string::npos || authority == std::string::npos || at < authority) {
        return text;
    }
    const std::size_t colon = text.find(':', authority + 2);
    if (colon != std::string::npos && colon < at) {
        text.replace(colon, at - colon, ":***");
    }
    return text;
}

Url parse_url(std::string_view text) {
    if (std::any_of(text.begin(), text.end(), [](char c) {
            return std::iscntrl(static_cast<unsigned char>(c)) != 0;
        })) {
        throw InvalidArgument(
            fmt::format("the database URL contains a control character; write {}", examples));
    }
    const std::size_t colon = text.find(':');
    const bool named = colon != std::string_view::npos && colon > 0 &&
                       std::all_of(text.begin(),
                                   text.begin() + static_cast<std::ptrdiff_t>(colon),
                                   [](char c) { return c >= 'a' && c <= 'z'; });
    if (!named) {
        throw InvalidArgument(
            fmt::format("'{}' is not a database URL, which begins with a scheme; write {}",
                        text.substr(0, 60),
                        examples));
    }
    Url url;
    url.scheme = text.substr(0, colon);
    const std::string_view rest = text.substr(colon + 1);
    const std::size_t query = rest.find('?');
    url.rest = rest.substr(0, query);
    if (query != std::string_view::npos) {
        parse_options(rest.substr(query + 1), url);
    }
    return url;
}

std::optional<bool> reservoir_option(const Url& url) {
    const auto found = url.options.find("reservoir");
    if (found == url.options.end()) {
        return std::nullopt;
    }
    if (found->second != "on" && found->second != "off") {
        throw InvalidArgument(fmt::format(
            "the option reservoir={} of the database URL is neither on nor off", found->second));
    }
    return found->second == "on";
}

}  // namespace holdfast::sql

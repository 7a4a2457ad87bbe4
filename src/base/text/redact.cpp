#include <holdfast/base/redact.hpp>

#include <algorithm>
#include <cstddef>

namespace holdfast {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// `rest` is what follows "://", with its options: a password that is not escaped may hold '@', '/',
// '?' and '&', so the last '@' of all counts.
std::string without_userinfo_password(std::string_view rest) {
    const std::size_t at = rest.rfind('@');
    const std::size_t colon = rest.find(':');
    if (at != std::string_view::npos && colon < at) {
        std::string shown(rest.substr(0, colon + 1));
        shown += redacted;
        shown += rest.substr(at);
        return shown;
    }
    if (colon == std::string_view::npos || rest.starts_with('[')) {
        return std::string(rest);
    }
    // host:port, or a user and a password whose host is missing.
    const std::size_t end = std::min(rest.find_first_of("/?,", colon), rest.size());
    const std::string_view port = rest.substr(colon + 1, end - colon - 1);
    if (std::ranges::all_of(port, is_digit)) {
        return std::string(rest);
    }
    return std::string(rest.substr(0, colon + 1)) + std::string(redacted);
}

bool is_name(std::string_view text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

bool is_secret(std::string_view name) {
    return name.ends_with("password") || name.ends_with("token") || name.ends_with("secret");
}

std::string without_parameter_passwords(std::string_view query) {
    std::string shown;
    while (!query.empty()) {
        const std::string_view parameter = query.substr(0, query.find('&'));
        const std::size_t equals = parameter.find('=');
        const std::string_view name = parameter.substr(0, equals);
        if (equals == std::string_view::npos || !is_name(name)) {
            shown += redacted;  // Of a password that an '&' has cut in two.
        } else if (is_secret(name)) {
            shown += name;
            shown += '=';
            shown += redacted;
        } else {
            shown += parameter;
        }
        query.remove_prefix(parameter.size());
        if (!query.empty()) {
            shown += '&';
            query.remove_prefix(1);
        }
    }
    return shown;
}

// A file such as dir/orders.db, which holds nothing secret.
bool is_plain_file(std::string_view text) {
    return text.ends_with(".db") && std::ranges::all_of(text, [](char c) {
               return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                      c == '-' || c == '.' || c == '/';
           });
}

// How long the scheme is; 0 if there is none.
std::size_t scheme_length(std::string_view text) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const bool named =
        colon < text.size() &&
        std::ranges::all_of(
            text.substr(0, colon), [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c); });
    return named ? colon : 0;
}

}  // namespace

std::string without_password(std::string_view url) {
    const std::size_t scheme = scheme_length(url);
    if (url.empty() || is_plain_file(url)) {
        return std::string(url);
    }
    if (scheme == 0) {
        return std::string(redacted);
    }
    const std::string_view rest = url.substr(scheme + 1);
    std::string shown(url.substr(0, scheme + 1));
    if (rest.starts_with("//")) {
        shown += "//";
        shown += without_userinfo_password(rest.substr(2));
    } else if (url.substr(0, scheme) == "sqlite") {
        shown += rest;
    } else {
        return std::string(redacted);  // What looks like a scheme may be a user or a password.
    }
    const std::size_t question = std::min(shown.find('?'), shown.size());
    if (question == shown.size()) {
        return shown;
    }
    return shown.substr(0, question + 1) + without_parameter_passwords(shown.substr(question + 1));
}

}  // namespace holdfast

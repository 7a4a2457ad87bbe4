#include <holdfast/sql/url.hpp>

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/percent.hpp>
#include <holdfast/base/redact.hpp>

namespace holdfast::sql {
namespace {

constexpr std::string_view examples = "sqlite:orders.db or postgres://user@host/orders";

std::string decoded(std::string_view text) {
    std::optional<std::string> plain = percent_decoded(text);
    if (!plain || plain->find('\0') != std::string::npos) {
        throw InvalidArgument("the database URL has a bad percent escape; write % as %25");
    }
    return *std::move(plain);
}

constexpr std::string_view escape_hint =
    "; in a user's name or password write @ as %40, / as %2F, : as %3A and ? as %3F";

// " 'sslmode'", if it can be the name of an option; else it may be part of a password.
std::string quoted_name(std::string_view name) {
    const bool plausible = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || c == '_';
    });
    return plausible ? fmt::format(" '{}'", name) : "";
}

// Blanks that are not written as %20 are a mistake, for example of a shell script.
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
            throw InvalidArgument(
                fmt::format("the database URL has an option{} without a value; write name=value",
                            quoted_name(option)));
        }
        std::string name = decoded(trimmed(option.substr(0, equals)));
        std::string value = decoded(trimmed(option.substr(equals + 1)));
        if (!url.options.emplace(name, std::move(value)).second) {
            throw InvalidArgument(fmt::format("the database URL has the option{} twice; keep one",
                                              quoted_name(name)));
        }
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
}

// The hosts and ports of an authority: h1:5432,[::1]:5432. What cannot be a port may be the
// password of a URL whose '@' is cut off, so it is not shown.
void check_ports(std::string_view hosts) {
    for (std::size_t begin = 0; begin <= hosts.size();) {
        const std::size_t end = std::min(hosts.find(',', begin), hosts.size());
        const std::string_view host = hosts.substr(begin, end - begin);
        const std::size_t bracket = host.rfind(']');
        const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
        const std::string_view port =
            colon == std::string_view::npos ? std::string_view{} : host.substr(colon + 1);
        if (!std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; })) {
            throw InvalidArgument(
                fmt::format("the port in the database URL is not a number{}", escape_hint));
        }
        begin = end + 1;
    }
}

// A password with an '@', '/' or '?' that is not escaped would be taken for a host, a port or an
// option, and would be shown in the errors about them. `whole` has the options, too.
void check_authority(std::string_view rest, std::string_view whole) {
    rest.remove_prefix(2);
    const std::string_view authority = rest.substr(0, rest.find('/'));
    const std::size_t at = authority.find('@');
    const bool cut_off = at == std::string_view::npos &&
                         authority.find(':') != std::string_view::npos &&
                         whole.find('@') != std::string_view::npos;
    if (cut_off || rest.rfind('@') != rest.find('@')) {
        throw InvalidArgument(
            fmt::format("the database URL cannot be told apart at its '@'{}", escape_hint));
    }
    check_ports(at == std::string_view::npos ? authority : authority.substr(at + 1));
}

}  // namespace

bool Url::embedded() const noexcept {
    return scheme == "sqlite";
}

std::string Url::printable() const {
    return without_password(scheme + ":" + rest);
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
                        without_password(text),
                        examples));
    }
    Url url;
    url.scheme = text.substr(0, colon);
    const std::string_view rest = text.substr(colon + 1);
    const std::size_t query = rest.find('?');
    url.rest = rest.substr(0, query);
    if (rest.starts_with("//")) {
        check_authority(url.rest, rest);
    }
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

#include <holdfast/base/redact.hpp>

#include <cstddef>

namespace holdfast {
namespace {

// `rest` is what follows "://".
std::string without_userinfo_password(std::string_view rest) {
    // A password may hold an '@' or a '/' that somebody forgot to escape, so the last '@' counts.
    const std::size_t at = rest.rfind('@');
    const std::size_t colon = rest.find(':');
    if (at == std::string_view::npos || colon >= at) {
        return std::string(rest);
    }
    std::string shown(rest.substr(0, colon + 1));
    shown += redacted;
    shown += rest.substr(at);
    return shown;
}

std::string without_parameter_passwords(std::string_view query) {
    std::string shown;
    while (!query.empty()) {
        const std::string_view parameter = query.substr(0, query.find('&'));
        const std::size_t equals = parameter.find('=');
        const std::string_view name = parameter.substr(0, equals);
        if (equals != std::string_view::npos && name.ends_with("password")) {
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

}  // namespace

std::string without_password(std::string_view url) {
    const std::size_t question = url.find('?');
    const std::string_view address = url.substr(0, question);
    const std::size_t slashes = address.find("://");
    const std::size_t rest = slashes == std::string_view::npos ? address.size() : slashes + 3;
    std::string shown(address.substr(0, rest));
    shown += without_userinfo_password(address.substr(rest));
    if (question != std::string_view::npos) {
        shown += '?';
        shown += without_parameter_passwords(url.substr(question + 1));
    }
    return shown;
}

}  // namespace holdfast

#include "http/same_origin.hpp"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>

namespace holdfast::http {
namespace {

// The host of "host", "host:port" or "[address]:port".
std::string host_without_port(std::string_view authority) {
    if (authority.starts_with('[')) {
        const std::size_t end = authority.find(']');
        return std::string(end == std::string_view::npos ? authority
                                                         : authority.substr(1, end - 1));
    }
    return std::string(authority.substr(0, authority.find(':')));
}

bool is_ip_address(const std::string& host) {
    std::array<unsigned char, sizeof(in6_addr)> address{};
    return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
           ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

bool same_name(std::string_view left, std::string_view right) {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), [&](char a, char b) {
        return lower(a) == lower(b);
    });
}

}  // namespace

std::optional<std::string> cross_origin_refusal(const Request& request,
                                                std::span<const std::string> own_hosts) {
    const auto is_own = [&](const std::string& host) {
        return is_ip_address(host) || same_name(host, "localhost") ||
               std::ranges::any_of(own_hosts, [&](const std::string& own) {
                   return own == "*" || same_name(host, own);
               });
    };
    const auto hosts = request.values("host");
    const std::string authority(hosts.empty() ? std::string_view{} : hosts.front());
    const std::string host = host_without_port(authority);
    if (!is_own(host)) {
        return fmt::format(
            "the Host header names '{}'; call this port by its IP address, as localhost or by the "
            "name that it listens on",
            host);
    }
    for (const std::string_view origin : request.values("origin")) {
        if (!same_name(origin, "http://" + authority)) {
            return fmt::format("web pages of another origin ('{}') may not call this port", origin);
        }
    }
    for (const std::string_view site : request.values("sec-fetch-site")) {
        if (site != "same-origin" && site != "none") {
            return "web pages of another site may not call this port";
        }
    }
    return std::nullopt;
}

}  // namespace holdfast::http

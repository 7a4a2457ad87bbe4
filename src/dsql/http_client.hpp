// One HTTP request, with an end.
//
// For the small services around a cluster: credentials and metadata. Nothing is kept between two
// requests and no redirect is followed, so what is sent goes nowhere else.
#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/base/clock.hpp>

namespace holdfast::dsql {

struct HttpRequest {
    std::string method = "GET";
    std::string url{};  // http:// or https://, with a path or without.
    std::vector<std::pair<std::string, std::string>> headers{};
    std::string body{};
    std::string ca_file{};  // For https; empty: the distribution's.
};

struct HttpReply {
    int status = 0;
    std::string body;
};

inline constexpr std::size_t reply_bytes_max = 1U << 20U;

// Where Debian and its relatives keep the certificates they trust.
inline constexpr const char* system_ca_file = "/etc/ssl/certs/ca-certificates.crt";

struct HttpUrl {
    bool tls = false;
    std::string host;  // Without the brackets of an IPv6 address.
    int port = 0;
    std::string target;  // Path and query.
};

// Invalid_argument if it is none.
[[nodiscard]] HttpUrl parse_http_url(std::string_view url);

// Any answer is an answer, whatever its status. Unavailable if none came whole by the deadline,
// cancelled if the stop token fired; neither quotes headers or bodies.
[[nodiscard]] HttpReply http_send(const HttpRequest& request,
                                  Deadline deadline,
                                  const std::stop_token& stop);

}  // namespace holdfast::dsql

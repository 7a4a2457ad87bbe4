// HTTP requests, each with a deadline and a stop token.
//
// For services such as credentials, metadata and DynamoDB. Redirects are not followed, so a request
// goes to no other server than the one it names.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/base/clock.hpp>

namespace holdfast {

struct HttpRequest {
    std::string method = "GET";
    std::string url{};  // http:// or https://, with a path or without.
    std::vector<std::pair<std::string, std::string>> headers{};
    std::string body{};
    std::string ca_file{};  // For https; empty: the distribution's.
};

struct HttpReply {
    int status = 0;
    std::string date;  // The server's, as it wrote it; empty if it did not.
    std::string body;
};

inline constexpr std::size_t reply_bytes_max = 1U << 20U;

// The certificates that Debian trusts.
inline constexpr const char* system_ca_file = "/etc/ssl/certs/ca-certificates.crt";

struct HttpUrl {
    bool tls = false;
    std::string host;  // Without the brackets of an IPv6 address.
    int port = 0;
    std::string target;  // Path and query.
};

// Invalid_argument unless it is an address such as http://host:80/path.
[[nodiscard]] HttpUrl parse_http_url(std::string_view url);

// Returns every whole answer, whatever its status. Unavailable if there is none by the deadline,
// cancelled if the stop token fired; neither message quotes headers or bodies. The outcome is
// unknown as soon as there was a connection. Nothing is kept between two requests.
[[nodiscard]] HttpReply http_send(const HttpRequest& request,
                                  Deadline deadline,
                                  const std::stop_token& stop);

// Connections to one server, kept open for the next request. Safe to share between threads: each
// request has a connection of its own.
class HttpConnections {
public:
    static constexpr std::size_t idle_max = 8;

    // Requires: `url` has no path. Invalid_argument if it is not an address.
    explicit HttpConnections(const std::string& url, std::string ca_file = {});
    ~HttpConnections();
    HttpConnections(const HttpConnections&) = delete;
    HttpConnections& operator=(const HttpConnections&) = delete;

    // As http_send(); the request's `url` is a path.
    [[nodiscard]] HttpReply send(const HttpRequest& request,
                                 Deadline deadline,
                                 const std::stop_token& stop);

    // What stands in the header Host: with a port where it is not the usual one.
    [[nodiscard]] std::string host() const;

private:
    struct Idle;

    const HttpUrl url_;
    const std::string ca_file_;
    std::mutex mutex_;
    std::unique_ptr<Idle> idle_;
};

}  // namespace holdfast

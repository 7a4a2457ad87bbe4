#include <holdfast/base/http.hpp>

#include <cerrno>
#include <charconv>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "http/http_loop.hpp"
#include "http/same_origin.hpp"
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <sys/socket.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/unique_fd.hpp>

namespace holdfast {
namespace {

constexpr int port_max = 65535;

constexpr const char* prometheus_text = "text/plain; version=0.0.4; charset=utf-8";

Health health_now(const std::function<Health()>& health) {
    try {
        return health();
    } catch (...) {
        return {.ready = false, .reason = describe(std::current_exception())};
    }
}

std::vector<HttpRoute> window(Metrics& metrics, std::function<Health()> health) {
    std::vector<HttpRoute> routes = health_routes(std::move(health));
    routes.push_back({"GET", "/metrics", [&metrics](const std::string&) {
                          return HttpAnswer{.body = metrics.expose(), .type = prometheus_text};
                      }});
    return routes;
}

// Each address that the host has, until one can be bound. Without SO_REUSEPORT, by which two
// processes would share a port in silence. On failure `reason` is an errno, or 0 if there is no
// such host.
UniqueFd bound_socket(const HttpAddress& address, int& reason) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    reason = 0;
    const std::string port = std::to_string(address.port);
    if (::getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &found) != 0) {
        return UniqueFd{};
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        const int type = each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC;
        UniqueFd listener(::socket(each->ai_family, type, each->ai_protocol));
        const int on = 1;
        if (listener &&
            ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
            ::bind(listener.get(), each->ai_addr, each->ai_addrlen) == 0 &&
            ::listen(listener.get(), SOMAXCONN) == 0) {
            return listener;
        }
        reason = errno;
    }
    return UniqueFd{};
}

UniqueFd listening(const HttpAddress& address, std::string_view setting) {
    int reason = 0;
    UniqueFd listener = bound_socket(address, reason);
    if (listener) {
        return listener;
    }
    throw Error(
        Code::unavailable,
        Outcome::not_applied,
        fmt::format("cannot listen on {} port {}: {}; set {} to a free address of this machine",
                    address.host,
                    address.port,
                    reason == 0 ? "no such address" : std::system_category().message(reason),
                    setting));
}

int port_of(const UniqueFd& listener) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    HOLDFAST_ASSERT(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) ==
                    0);
    in_port_t port = 0;
    if (address.ss_family == AF_INET6) {
        port = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port;
    } else {
        port = reinterpret_cast<const sockaddr_in*>(&address)->sin_port;
    }
    return ntohs(port);
}

}  // namespace

// The routes, and the connections on which they are asked for.
class HttpServer::Server {
public:
    Server(const HttpAddress& address,
           std::vector<HttpRoute> routes,
           std::string_view setting,
           const HttpOptions& options,
           HttpHandler others)
        : routes_(std::move(routes)),
          others_(std::move(others)),
          own_hosts_(options.hosts),
          same_origin_only_(options.same_origin_only) {
        own_hosts_.push_back(address.host);
        UniqueFd listener = listening(address, setting);
        port_ = port_of(listener);
        http::Service service{
            .refusal = [this](const http::Request& request) { return refusal(request); },
            .answer = [this](const http::Request& request,
                             const HttpRespond& respond) { answer(request, respond); }};
        loop_ = std::make_unique<http::Loop>(
            std::move(listener), std::move(service), options.limits, workers);
    }

    [[nodiscard]] int port() const noexcept { return port_; }
    void stop(Deadline drain) { loop_->stop(drain); }

private:
    [[nodiscard]] const HttpRoute* route_of(const http::Request& request) const {
        const std::string method = request.method == "HEAD" ? "GET" : request.method;
        for (const HttpRoute& route : routes_) {
            if (route.path == request.path && route.method == method) {
                return &route;
            }
        }
        return nullptr;
    }

    [[nodiscard]] std::optional<HttpAnswer> refusal(const http::Request& request) const {
        if (same_origin_only_) {
            if (const auto reason = http::cross_origin_refusal(request, own_hosts_)) {
                return HttpAnswer{.status = 403, .body = *reason + "\n"};
            }
        }
        if (route_of(request) != nullptr) {
            return std::nullopt;
        }
        std::set<std::string> allowed;
        for (const HttpRoute& route : routes_) {
            if (route.path == request.path) {
                allowed.insert(route.method);
            }
        }
        if (allowed.empty()) {
            return others_ ? std::nullopt
                           : std::optional(
                                 HttpAnswer{.status = 404, .body = "there is no such path\n"});
        }
        if (allowed.contains("GET")) {
            allowed.insert("HEAD");
        }
        return HttpAnswer{.status = 405,
                          .body = "this path does not support the method\n",
                          .headers = {{"Allow", fmt::format("{}", fmt::join(allowed, ", "))}}};
    }

    void answer(const http::Request& request, const HttpRespond& respond) const {
        try {
            if (const HttpRoute* route = route_of(request)) {
                respond(route->answer(request.body));
            } else {
                others_(request, respond);
            }
        } catch (...) {
            respond({.status = 500, .body = describe(std::current_exception()) + "\n"});
        }
    }

    std::vector<HttpRoute> routes_;
    HttpHandler others_;
    std::vector<std::string> own_hosts_;
    bool same_origin_only_;
    int port_ = 0;
    std::unique_ptr<http::Loop> loop_;  // Last: it ends before what it calls.
};

HttpAddress HttpAddress::parse(std::string_view text) {
    const auto refuse = [&] {
        return InvalidArgument(fmt::format(
            "'{}' is not an address to listen on; write host:port, such as 127.0.0.1:9464", text));
    };
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        throw refuse();
    }
    std::string_view host = text.substr(0, colon);
    const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) {
        host = host.substr(1, host.size() - 2);
    }
    const bool bare_v6 = !bracketed && host.find(':') != std::string_view::npos;
    const std::string_view port_text = text.substr(colon + 1);
    int port = -1;
    const char* const end = port_text.data() + port_text.size();
    const auto [after, error] =
        std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
    const bool whole = error == std::errc{} && after == end;
    if (bare_v6 || !whole || port < 0 || port > port_max) {
        throw refuse();
    }
    return {.host = host.empty() ? "0.0.0.0" : std::string(host), .port = port};
}

HttpServer::HttpServer(const HttpAddress& address,
                       std::vector<HttpRoute> routes,
                       std::string_view setting,
                       const HttpOptions& options,
                       HttpHandler others)
    : server_(std::make_unique<Server>(
          address, std::move(routes), setting, options, std::move(others))) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const noexcept {
    return server_->port();
}

void HttpServer::stop() {
    stop(Deadline::after(std::chrono::seconds{0}));
}

void HttpServer::stop(Deadline drain) {
    server_->stop(drain);
}

std::vector<HttpRoute> health_routes(std::function<Health()> health) {
    return {{"GET", "/healthz", [](const std::string&) { return HttpAnswer{.body = "ok\n"}; }},
            {"GET", "/readyz", [health = std::move(health)](const std::string&) {
                 const Health now = health_now(health);
                 return HttpAnswer{.status = now.ready ? 200 : 503,
                                   .body = (now.ready ? "ready" : now.reason) + "\n"};
             }}};
}

HttpEndpoint::HttpEndpoint(const HttpAddress& address,
                           Metrics& metrics,
                           std::function<Health()> health,
                           const HttpLimits& limits,
                           std::string_view setting)
    : server_(address, window(metrics, std::move(health)), setting, {.limits = limits}) {}

}  // namespace holdfast

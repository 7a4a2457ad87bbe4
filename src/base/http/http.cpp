#include <holdfast/base/http.hpp>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <semaphore>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "http/http_stream.hpp"
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <httplib.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

constexpr std::chrono::seconds request_max{5};
constexpr std::size_t request_bytes_max = 16384;  // Nobody has much to say here.

constexpr int port_max = 65535;

constexpr const char* prometheus_text = "text/plain; version=0.0.4; charset=utf-8";

// The library's queue grows without end, and each entry is an open descriptor. Here the accepting
// thread waits instead.
class BoundedQueue final : public httplib::TaskQueue {
public:
    void enqueue(std::function<void()> task) override {
        free_.acquire();
        pool_.enqueue([this, task = std::move(task)] {
            task();
            free_.release();
        });
    }
    void shutdown() override { pool_.shutdown(); }

private:
    std::counting_semaphore<> free_{HttpServer::connections_max};
    httplib::ThreadPool pool_{HttpServer::workers};
};

// The library would set SO_REUSEPORT too, with which two processes share a port in silence.
void reuse_address_only(socket_t listening) {
    const int on = 1;
    ::setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

Health health_now(const std::function<Health()>& health) {
    try {
        return health();
    } catch (...) {
        return {.ready = false, .reason = describe(std::current_exception())};
    }
}

std::vector<HttpRoute> window(Metrics& metrics, std::function<Health()> health) {
    return {{"GET",
             "/metrics",
             [&metrics](const std::string&) {
                 return HttpAnswer{.body = metrics.expose(), .type = prometheus_text};
             }},
            {"GET", "/healthz", [](const std::string&) { return HttpAnswer{.body = "ok\n"}; }},
            {"GET", "/readyz", [health = std::move(health)](const std::string&) {
                 const Health now = health_now(health);
                 return HttpAnswer{.status = now.ready ? 200 : 503,
                                   .body = (now.ready ? "ready" : now.reason) + "\n"};
             }}};
}

}  // namespace

// One request per connection and one deadline for all of it, so that a slow or silent peer can
// neither hold a worker nor delay a shutdown.
class HttpServer::Server final : public httplib::Server {
public:
    Server(const HttpAddress& address, std::vector<HttpRoute> routes, std::string_view setting) {
        set_tcp_nodelay(true);
        set_socket_options(reuse_address_only);
        set_payload_max_length(request_bytes_max);
        refuse_unknown_methods(routes);
        for (HttpRoute& route : routes) {
            add(std::move(route));
        }
        port_ = bound(address, setting);
        serve();
    }

    ~Server() override { shut_down(); }

    [[nodiscard]] int port() const noexcept { return port_; }

    void shut_down() {
        std::call_once(stopped_, [this] {
            httplib::Server::stop();
            {
                const std::lock_guard lock(mutex_);
                stopping_ = true;
                for (const socket_t connection : connections_) {
                    ::shutdown(connection, SHUT_RDWR);
                }
            }
            thread_.join();
        });
    }

private:
    // Here, before a body is read: the library reads to its end even one that it refuses.
    void refuse_unknown_methods(const std::vector<HttpRoute>& routes) {
        std::set<std::string> known;
        for (const HttpRoute& route : routes) {
            known.insert(route.method);
            if (route.method == "GET") {
                known.insert("HEAD");
            }
        }
        set_pre_routing_handler([known = std::move(known)](const httplib::Request& request,
                                                           httplib::Response& response) {
            if (known.contains(request.method)) {
                return HandlerResponse::Unhandled;
            }
            response.status = 405;
            response.set_header("Allow", fmt::format("{}", fmt::join(known, ", ")));
            return HandlerResponse::Handled;
        });
    }

    void add(HttpRoute route) {
        const std::string path = route.path;
        const auto answer = [ask = std::move(route.answer)](const httplib::Request& request,
                                                            httplib::Response& response) {
            HttpAnswer given;
            try {
                given = ask(request.body);
            } catch (...) {
                given = {.status = 500, .body = describe(std::current_exception()) + "\n"};
            }
            response.status = given.status;
            response.set_content(given.body, given.type);
        };
        if (route.method == "GET") {
            Get(path, answer);
        } else if (route.method == "POST") {
            Post(path, answer);
        } else {
            HOLDFAST_ASSERT(route.method == "DELETE");
            Delete(path, answer);
        }
    }

    int bound(const HttpAddress& address, std::string_view setting) {
        errno = 0;
        const int port = address.port == 0                          ? bind_to_any_port(address.host)
                         : bind_to_port(address.host, address.port) ? address.port
                                                                    : -1;
        if (port > 0) {
            // The library lets five wait; a burst would lose a second to retransmission.
            ::listen(svr_sock_, static_cast<int>(connections_max));
            return port;
        }
        const int reason = errno;
        throw Error(
            Code::unavailable,
            Outcome::not_applied,
            fmt::format("cannot listen on {} port {}: {}; set {} to a free address of this machine",
                        address.host,
                        address.port,
                        reason == 0 ? "no such address" : std::system_category().message(reason),
                        setting));
    }

    // Returns once the library listens; it would lose a stop() that comes earlier.
    void serve() {
        std::promise<void> listening;
        new_task_queue = [&listening] {
            auto queue = std::make_unique<BoundedQueue>();
            listening.set_value();
            return queue.release();
        };
        thread_ = std::thread([this] { listen_after_bind(); });
        listening.get_future().wait();
    }

    bool process_and_close_socket(socket_t connection) override {
        bool done = false;
        if (enter(connection)) {
            http::BoundedStream stream(connection, Deadline::after(request_max), request_bytes_max);
            bool closed = false;
            done = process_request(stream, true, closed, nullptr);
            leave(connection);
        }
        ::shutdown(connection, SHUT_RDWR);
        ::close(connection);
        return done;
    }

    bool enter(socket_t connection) {
        const std::lock_guard lock(mutex_);
        return !stopping_ && connections_.insert(connection).second;
    }

    // Before the descriptor is closed: afterwards its number may belong to somebody else.
    void leave(socket_t connection) {
        const std::lock_guard lock(mutex_);
        connections_.erase(connection);
    }

    int port_ = 0;
    std::once_flag stopped_;
    std::mutex mutex_;
    bool stopping_ = false;
    std::set<socket_t> connections_;
    std::thread thread_;
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
                       std::string_view setting)
    : server_(std::make_unique<Server>(address, std::move(routes), setting)) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const noexcept {
    return server_->port();
}

void HttpServer::stop() {
    server_->shut_down();
}

HttpEndpoint::HttpEndpoint(const HttpAddress& address,
                           Metrics& metrics,
                           std::function<Health()> health)
    : server_(address, window(metrics, std::move(health)), "metrics.address") {}

}  // namespace holdfast

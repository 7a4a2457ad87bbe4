// A small HTTP server, and the window through which operators and Prometheus look into a process.
//
// Of the window GET /metrics is the Prometheus text; /healthz answers 200 as long as the process
// breathes; /readyz answers 200 or 503 with the reason. There is no login: bind it to an address
// that only those can reach who may use it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/base/metrics.hpp>

namespace holdfast {

// Whether the process can do its work now.
struct Health {
    bool ready = true;
    std::string reason{};  // One sentence, shown when not ready. Strangers may read it: no secrets.
};

struct HttpAddress {
    std::string host = "127.0.0.1";
    int port = 0;  // 0: any free one.

    // "host:port", "[::1]:port" or ":port" for every interface. Else invalid_argument.
    [[nodiscard]] static HttpAddress parse(std::string_view text);
};

struct HttpAnswer {
    int status = 200;
    std::string body{};
    std::string type = "text/plain; charset=utf-8";
};

// Who answers what. A GET answers HEAD as well.
struct HttpRoute {
    std::string method;  // "GET", "POST" or "DELETE"
    std::string path;
    std::function<HttpAnswer(const std::string& body)> answer;
};

// Serves on threads of its own from construction until stop(). Safe to share between threads. From
// the first one on, the process ignores SIGPIPE.
class HttpServer {
public:
    static constexpr std::size_t workers = 4;
    static constexpr std::size_t connections_max = 64;  // The rest waits in the kernel's queue.

    // Requires: the routes' functions may be called from any thread and are quick; what they throw
    // is a 500 with the reason. Unavailable if the address cannot be bound; the message then names
    // `setting` as the place to choose another one.
    HttpServer(const HttpAddress& address, std::vector<HttpRoute> routes, std::string_view setting);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    [[nodiscard]] int port() const noexcept;

    // Hangs up on everybody and returns when the threads have ended, which takes no longer than one
    // call of a route's function. May be repeated.
    void stop();

private:
    class Server;
    std::unique_ptr<Server> server_;
};

// The window itself.
class HttpEndpoint {
public:
    // Requires: `metrics` outlives this object; `health` may be called from any thread and is
    // quick. Unavailable if the address cannot be bound.
    HttpEndpoint(const HttpAddress& address, Metrics& metrics, std::function<Health()> health);

    [[nodiscard]] int port() const noexcept { return server_.port(); }
    void stop() { server_.stop(); }

private:
    HttpServer server_;
};

}  // namespace holdfast

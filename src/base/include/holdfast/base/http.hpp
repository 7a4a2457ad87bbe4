// A small HTTP server, and the endpoint for operators and Prometheus.
//
// A server has routes, which answer at once, and may have a handler for all other paths, which
// answers when it can: a request that waits for its answer costs a connection, not a thread.
//
// The endpoint has GET /metrics with the Prometheus text, /healthz, which answers 200 while the
// process runs, and /readyz, which answers 200 or 503 with the reason. There is no login: bind it
// to an address that only its users can reach.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/base/clock.hpp>
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
    std::vector<std::pair<std::string, std::string>> headers{};  // More of them.
};

// As it came, complete.
struct ReceivedRequest {
    std::string method;
    std::string path;                                          // Percent-coded, without the query.
    std::string query{};                                       // What follows the first '?'.
    std::vector<std::pair<std::string, std::string>> headers;  // Names in lower case.
    std::string body;

    // The values of all headers with this name, which is in lower case.
    [[nodiscard]] std::vector<std::string_view> values(std::string_view name) const;
};

// Answers a request: from any thread, and also when its client or the server is gone. The first
// answer counts; without any, when the last copy goes, the client is told of a failure.
using HttpRespond = std::function<void(HttpAnswer)>;

// Gets what no route has a path for. What it throws is a 500 with the reason.
// Requires: it may be called from any thread and is quick; HEAD and OPTIONS are among the methods.
using HttpHandler = std::function<void(const ReceivedRequest&, HttpRespond)>;

// One method of one path. A GET answers HEAD as well.
struct HttpRoute {
    std::string method;  // "GET", "POST" or "DELETE"
    std::string path;
    std::function<HttpAnswer(const std::string& body)> answer;
};

// What peers may take. A slow peer costs others nothing: at a limit the oldest connection that
// waits for its peer is closed.
struct HttpLimits {
    std::size_t connections = 128;
    std::size_t answer_bytes = std::size_t{64} << 20;  // Of all answers that peers have not read.
    std::chrono::milliseconds request{5'000};  // From connecting to the request's last byte.
    std::chrono::milliseconds answer{30'000};  // To read the answer.
    std::size_t body_bytes = 16'384;           // Of one request.
    std::size_t bodies_bytes = std::size_t{64} << 20;  // Of all that are not answered.
};

struct HttpOptions {
    HttpLimits limits{};
    // Refuses what web pages of other sites make a browser send, also after DNS rebinding, with
    // 403. The Host must then be an IP address, localhost or the host of the server's address.
    bool same_origin_only = false;
    std::vector<std::string> hosts{};  // Names by which the server is called besides; "*" for all.
};

// Serves on threads of its own from construction until stop(): one moves the bytes of all
// connections, `workers` call the routes. One request per connection; bodies come with a
// Content-Length. Safe to share between threads.
class HttpServer {
public:
    static constexpr std::size_t workers = 4;

    // Requires: the routes' functions may be called from any thread and are quick; what they throw
    // is a 500 with the reason. Unavailable if the address cannot be bound; the message then names
    // `setting` as the place to choose another one.
    HttpServer(const HttpAddress& address,
               std::vector<HttpRoute> routes,
               std::string_view setting,
               const HttpOptions& options = {},
               HttpHandler others = {});
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    [[nodiscard]] int port() const noexcept;

    // Closes all connections and returns when the threads have ended, which takes no longer than
    // one call of a route's function. May be repeated.
    void stop();
    // The same, but requests that are complete are answered first, until the deadline.
    void stop(Deadline drain);

private:
    class Server;
    std::unique_ptr<Server> server_;
};

// The routes /healthz and /readyz.
[[nodiscard]] std::vector<HttpRoute> health_routes(std::function<Health()> health);

// Serves /metrics, /healthz and /readyz.
class HttpEndpoint {
public:
    // Requires: `metrics` outlives this object; `health` may be called from any thread and is
    // quick. Unavailable if the address cannot be bound.
    HttpEndpoint(const HttpAddress& address,
                 Metrics& metrics,
                 std::function<Health()> health,
                 const HttpLimits& limits = {},
                 std::string_view setting = "metrics.address");

    [[nodiscard]] int port() const noexcept { return server_.port(); }
    void stop() { server_.stop(); }

private:
    HttpServer server_;
};

}  // namespace holdfast

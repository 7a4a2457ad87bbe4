// The small window through which operators and Prometheus look into a process.
//
// GET /metrics is the Prometheus text; /healthz answers 200 as long as the process breathes;
// /readyz answers 200 or 503 with the reason. It has no login: bind it to an address that only
// those can reach who may read it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

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

// Serves on threads of its own from construction until stop(). Safe to share between threads. From
// the first one on, the process ignores SIGPIPE.
class HttpEndpoint {
public:
    static constexpr std::size_t workers = 4;
    static constexpr std::size_t connections_max = 64;  // The rest waits in the kernel's queue.

    // Requires: `metrics` outlives this object; `health` may be called from any thread and is
    // quick. Unavailable if the address cannot be bound.
    HttpEndpoint(const HttpAddress& address, Metrics& metrics, std::function<Health()> health);
    ~HttpEndpoint();
    HttpEndpoint(const HttpEndpoint&) = delete;
    HttpEndpoint& operator=(const HttpEndpoint&) = delete;

    [[nodiscard]] int port() const noexcept;

    // Hangs up on everybody and returns when the threads have ended, which takes no longer than one
    // call of `health` or one rendering of the metrics. May be repeated.
    void stop();

private:
    class Server;
    std::unique_ptr<Server> server_;
};

}  // namespace holdfast

// gRPC below the table of methods: listens, receives calls, and sends their answers.
//
// A call that waits holds no thread. gRPC's few threads run the handlers, so a handler that would
// block hands its work on. Health and reflection are served here too.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <holdfast/base/clock.hpp>

namespace holdfast::server::rpc {

class CallMeter;
class Dispatch;
class Health;

// PEM texts. TLS 1.2 or newer is spoken.
struct GrpcTls {
    std::string certificate;  // The server's, followed by those between it and the authority.
    std::string key;          // A secret. Never logged.
    std::string client_authorities{};  // If not empty, what clients show is checked against it.
    bool require_client_certificate = false;
};

// The workers of the SDKs live with these: they ping every 30 s, also without calls, and expect to
// be sent elsewhere from time to time.
struct ConnectionLimits {
    std::chrono::milliseconds idle_max = std::chrono::minutes{2};
    std::chrono::milliseconds age_max = std::chrono::minutes{5};
    std::chrono::milliseconds age_grace = std::chrono::seconds{70};  // More than a long poll.
    std::chrono::milliseconds ping_after = std::chrono::minutes{1};  // Of silence.
    std::chrono::milliseconds ping_timeout = std::chrono::seconds{10};
    std::chrono::milliseconds pings_apart_min = std::chrono::seconds{5};  // The client's.
    int metadata_bytes_max = 64 << 10;
};

struct GrpcTransportOptions {
    std::string address = "127.0.0.1";  // IPv4 or IPv6; 0.0.0.0 and :: are all of a family.
    std::uint16_t port = 0;             // 0: a free one.
    std::optional<GrpcTls> tls{};
    std::chrono::milliseconds drain = std::chrono::seconds{1};
    ConnectionLimits connections{};
    CallMeter* meter = nullptr;  // Null, or it outlives the transport: counts the calls.
};

class GrpcTransport {
public:
    // Listens from now on. Throws Error if it cannot.
    // Requires: both outlive this object; `dispatch` has its methods, and keeps them.
    GrpcTransport(Dispatch& dispatch, Health& health, GrpcTransportOptions options = {});

    // Stops, without a drain, unless that was done.
    ~GrpcTransport();

    GrpcTransport(const GrpcTransport&) = delete;
    GrpcTransport& operator=(const GrpcTransport&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept;

    // Health turns to not serving, new calls are refused, and handlers are told to answer. Blocks
    // until all calls are answered and connections closed; what is still open at the deadline is
    // refused, and what is left a little later is cut off. A repeat does nothing.
    // Requires: not called by a handler.
    void stop(Deadline deadline);

    // The same with the option `drain`.
    void stop();

private:
    struct Listening;

    const std::unique_ptr<Listening> listening_;
};

}  // namespace holdfast::server::rpc

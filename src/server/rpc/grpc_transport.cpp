#include "rpc/grpc_transport.hpp"

#include <cerrno>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "rpc/grpc_calls.hpp"
#include <arpa/inet.h>
#include <fmt/format.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/unique_fd.hpp>

namespace holdfast::server::rpc {

namespace {

// The table refuses what is above its own, much lower limit, in words that make an SDK fail the
// task. What is above this one gRPC refuses in other words, and an SDK tries it for ever: so this
// limit only bounds memory, above what workflows send by mistake.
constexpr int received_bytes_max = 32 << 20;

// How long the refusals of what missed the deadline have to reach their clients.
constexpr std::chrono::milliseconds last_words{250};

class GenericService final : public grpc::CallbackGenericService {
public:
    explicit GenericService(Serving& serving) : serving_(serving) {}

    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
        return new_call(serving_, *context);
    }

private:
    Serving& serving_;
};

int in_ms(std::chrono::milliseconds time) {
    return static_cast<int>(time.count());
}

void set_arguments(grpc::ServerBuilder& builder, const ConnectionLimits& limits) {
    const std::pair<const char*, int> arguments[] = {
        {GRPC_ARG_MAX_CONNECTION_IDLE_MS, in_ms(limits.idle_max)},
        {GRPC_ARG_MAX_CONNECTION_AGE_MS, in_ms(limits.age_max)},
        {GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, in_ms(limits.age_grace)},
        {GRPC_ARG_KEEPALIVE_TIME_MS, in_ms(limits.ping_after)},
        {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, in_ms(limits.ping_timeout)},
        {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
        {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},  // No bound on our own pings.
        {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, in_ms(limits.pings_apart_min)},
        {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},  // A client that pings too often is kept.
        {GRPC_ARG_MAX_METADATA_SIZE, limits.metadata_bytes_max},
        {GRPC_ARG_ALLOW_REUSEPORT, 0},                   // A port that is taken is an error.
        {GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},  // See ReceivedBytes.
    };
    for (const auto& [name, value] : arguments) {
        builder.AddChannelArgument(name, value);
    }
    builder.SetMaxReceiveMessageSize(received_bytes_max);
    builder.SetMaxSendMessageSize(-1);
}

std::shared_ptr<grpc::ServerCredentials> credentials_of(const std::optional<GrpcTls>& tls) {
    if (!tls) {
        return grpc::InsecureServerCredentials();
    }
    auto request = GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    if (tls->require_client_certificate) {
        request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    } else if (!tls->client_authorities.empty()) {
        request = GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    }
    grpc::SslServerCredentialsOptions options(request);
    options.pem_root_certs = tls->client_authorities;
    options.pem_key_cert_pairs.push_back({.private_key = tls->key, .cert_chain = tls->certificate});
    return grpc::SslServerCredentials(options);
}

bool is_ipv6(const std::string& address) {
    return address.find(':') != address.npos;
}

// gRPC does not tell why it cannot listen. Tries what it tried; empty if that works.
std::string bind_failure(const std::string& address, std::uint16_t port) {
    sockaddr_storage storage{};
    socklen_t size = 0;
    bool parsed = false;
    if (is_ipv6(address)) {
        auto& to = reinterpret_cast<sockaddr_in6&>(storage);
        to.sin6_family = AF_INET6;
        to.sin6_port = htons(port);
        size = sizeof to;
        parsed = ::inet_pton(AF_INET6, address.c_str(), &to.sin6_addr) == 1;
    } else {
        auto& to = reinterpret_cast<sockaddr_in&>(storage);
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        size = sizeof to;
        parsed = ::inet_pton(AF_INET, address.c_str(), &to.sin_addr) == 1;
    }
    if (!parsed) {
        return fmt::format("\"{}\" is not an IP address", address);
    }
    const UniqueFd socket(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;  // As gRPC does: a port whose last owner has just gone is free.
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (socket.get() >= 0 &&
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), size) == 0) {
        return {};
    }
    return std::system_category().message(errno);
}

Error not_listening(const GrpcTransportOptions& options) {
    std::string reason = bind_failure(options.address, options.port);
    if (reason.empty()) {
        reason = options.tls ? "the certificate and the key cannot be used together"
                             : "gRPC does not listen there";
    }
    return {Code::unavailable,
            Outcome::not_applied,
            fmt::format("can't set frontend port {}: {}", options.port, reason)};
}

}  // namespace

struct GrpcTransport::Listening {
    Listening(Dispatch& dispatch, Health& health, GrpcTransportOptions given)
        : options(std::move(given)),
          serving{.dispatch = dispatch,
                  .health = health,
                  .reflection = Reflection(dispatch.methods()),
                  .meter = options.meter},
          service(serving) {
        if (!bind_failure(options.address, options.port).empty()) {
            throw not_listening(options);  // Before gRPC fails, which writes to standard error.
        }
        grpc::ServerBuilder builder;
        set_arguments(builder, options.connections);
        const std::string host =
            is_ipv6(options.address) ? "[" + options.address + "]" : options.address;
        builder.AddListeningPort(
            fmt::format("{}:{}", host, options.port), credentials_of(options.tls), &port);
        builder.RegisterCallbackGenericService(&service);
        server = builder.BuildAndStart();
        if (!server || port <= 0) {
            throw not_listening(options);
        }
    }

    const GrpcTransportOptions options;
    Serving serving;
    GenericService service;
    int port = 0;
    std::unique_ptr<grpc::Server> server;  // Destroyed before what its calls use.
    std::once_flag stopped;
};

GrpcTransport::GrpcTransport(Dispatch& dispatch, Health& health, GrpcTransportOptions options)
    : listening_(std::make_unique<Listening>(dispatch, health, std::move(options))) {}

GrpcTransport::~GrpcTransport() {
    stop(Deadline::after(std::chrono::milliseconds{0}));
}

std::uint16_t GrpcTransport::port() const noexcept {
    return static_cast<std::uint16_t>(listening_->port);
}

void GrpcTransport::stop() {
    stop(Deadline::after(listening_->options.drain));
}

void GrpcTransport::stop(Deadline deadline) {
    std::call_once(listening_->stopped, [&] {
        Serving& serving = listening_->serving;
        serving.health.set_serving(false);
        serving.dispatch.stop();
        serving.open.close_streams();
        // Sends clients away at once, then waits for their calls, then cuts them off.
        const auto cut_off = std::chrono::system_clock::now() +
                             std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                 deadline.remaining() + last_words);
        std::thread farewell([&] { listening_->server->Shutdown(cut_off); });
        serving.open.wait_for_none(deadline);
        serving.dispatch.close();
        farewell.join();
    });
}

}  // namespace holdfast::server::rpc

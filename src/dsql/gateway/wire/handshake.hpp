// The login of a client: TLS, the name of its cluster, its token.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "gateway/cluster.hpp"
#include "gateway/wire/channel.hpp"

#include <holdfast/dsql/wire.hpp>

typedef struct ssl_ctx_st SSL_CTX;  // NOLINT(modernize-use-using): as OpenSSL declares it.

namespace holdfast::dsql {

// The contents of the packets before the first query.
struct Startup {
    std::string server_name;  // By SNI; empty if none was sent.
    Backend::Params params;   // user, database, application_name, ...

    [[nodiscard]] std::string value(std::string_view name) const;
    // The id in `options=-c amzn-cluster-id=...`, for clients without SNI.
    [[nodiscard]] std::string cluster_option() const;
    [[nodiscard]] std::string cluster_id() const;
    // Whether it decides how statements are checked.
    [[nodiscard]] bool sets_rules() const;
};

struct TlsFree {
    void operator()(SSL* ssl) const noexcept;
};
using Tls = std::unique_ptr<SSL, TlsFree>;

// Reads up to the client's startup packet. Empty if there is none, or it is not supported.
[[nodiscard]] std::optional<Startup> read_startup(
    Channel& channel, MessageStream& stream, int fd, SSL_CTX* context, Tls& tls);

// What is wrong with the startup packet itself.
[[nodiscard]] std::optional<ErrorResponse> objection_to(const Startup& startup);

// Asks for the token and checks it. Its identity is an ARN.
[[nodiscard]] std::variant<ErrorResponse, std::string> identify(const GatewayOptions& options,
                                                                Wall now,
                                                                const Startup& startup,
                                                                Channel& channel,
                                                                MessageStream& stream);
// Whether this identity may use the role. Empty: the client is admitted.
[[nodiscard]] std::optional<ErrorResponse> authorize(Cluster& cluster,
                                                     const Startup& startup,
                                                     const std::string& arn);

// A backend with the client's settings, and the packet that ends the handshake.
[[nodiscard]] std::unique_ptr<Backend> open_backend(Cluster& cluster, const Startup& startup);
[[nodiscard]] std::string welcome(const Backend& backend, const Startup& startup);

}  // namespace holdfast::dsql

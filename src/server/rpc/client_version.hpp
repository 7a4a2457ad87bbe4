// Which versions of clients the server talks to, and whether a client talks to this server.
//
// Both sides may refuse: the server has a table of the clients it knows, and a client may send the
// range of server versions it was made for. A client that says neither is served.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "rpc/dispatch.hpp"

namespace holdfast::server::rpc {

struct SupportedClient {
    std::string_view name;      // As it comes in the metadata `client-name`.
    std::string_view versions;  // A range.
};

// Clients of other names are served whatever their version.
[[nodiscard]] std::span<const SupportedClient> supported_clients() noexcept;

// A check for Dispatch. Requires: `server_version` is a semantic version; else InvalidArgument.
[[nodiscard]] Dispatch::Check client_version_check(std::string_view server_version);

}  // namespace holdfast::server::rpc

#include "rpc/client_version.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "rpc/semantic_version.hpp"
#include <fmt/format.h>
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/base/error.hpp>

namespace holdfast::server::rpc {

namespace {

constexpr std::array<SupportedClient, 8> known_clients{{
    {.name = "temporal-go", .versions = "<2.0.0"},
    {.name = "temporal-java", .versions = "<2.0.0"},
    {.name = "temporal-php", .versions = "<2.0.0"},
    {.name = "temporal-typescript", .versions = "<2.0.0"},
    {.name = "temporal-cli", .versions = "<2.0.0"},
    {.name = "temporal-server", .versions = "<2.0.0"},
    {.name = "Nexus-go-sdk", .versions = "<2.0.0"},
    {.name = "temporal-ui", .versions = "<3.0.0"},
}};

// Whether this server wants the client.
std::optional<Refusal> check_client(const Caller& caller) {
    const auto client =
        std::ranges::find(known_clients, caller.client_name, &SupportedClient::name);
    if (client == known_clients.end() || caller.client_version.empty()) {
        return std::nullopt;
    }
    const auto version = SemanticVersion::parse(caller.client_version);
    if (!version) {
        return Refusal(StatusCode::invalid_argument,
                       fmt::format("client-version \"{}\" is not a version such as 1.2.3",
                                   caller.client_version));
    }
    if (VersionRange::parse(client->versions)->contains(*version)) {
        return std::nullopt;
    }
    temporal::api::errordetails::v1::ClientVersionNotSupportedFailure detail;
    detail.set_client_version(caller.client_version);
    detail.set_client_name(caller.client_name);
    detail.set_supported_versions(std::string(client->versions));
    return Refusal(StatusCode::failed_precondition,
                   fmt::format("{} {} is not supported; this server needs {}",
                               caller.client_name,
                               caller.client_version,
                               client->versions),
                   detail);
}

// Whether the client wants this server.
std::optional<Refusal> check_server(const Caller& caller,
                                    const SemanticVersion& version,
                                    const std::string& text) {
    if (caller.supported_server_versions.empty()) {
        return std::nullopt;
    }
    const auto range = VersionRange::parse(caller.supported_server_versions);
    if (!range) {
        return Refusal(StatusCode::invalid_argument,
                       fmt::format("supported-server-versions \"{}\" is not a range such as "
                                   ">=1.0.0 <2.0.0",
                                   caller.supported_server_versions));
    }
    if (range->contains(version)) {
        return std::nullopt;
    }
    temporal::api::errordetails::v1::ServerVersionNotSupportedFailure detail;
    detail.set_server_version(text);
    detail.set_client_supported_server_versions(caller.supported_server_versions);
    return Refusal(StatusCode::failed_precondition,
                   fmt::format("the server's version {} is not among those that the client "
                               "supports: {}",
                               text,
                               caller.supported_server_versions),
                   detail);
}

}  // namespace

std::span<const SupportedClient> supported_clients() noexcept {
    return known_clients;
}

Dispatch::Check client_version_check(std::string_view server_version) {
    auto version = SemanticVersion::parse(server_version);
    if (!version) {
        throw InvalidArgument(
            fmt::format("the server's version \"{}\" is not one such as 1.2.3", server_version));
    }
    return
        [version = std::move(*version), text = std::string(server_version)](const CallInfo& info) {
            auto refusal = check_client(info.caller);
            return refusal ? std::move(refusal) : check_server(info.caller, version, text);
        };
}

}  // namespace holdfast::server::rpc

// Why a call is refused, as clients read it: a code, a text, and at most one detail.
//
// Clients look at the code first, then at the type of the detail; texts are for people, except
// where a client matches them. Nothing here knows gRPC: the numbers of the codes are those of its
// wire format.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace google::protobuf {
class Message;
}

namespace holdfast {
class Logger;
}

namespace holdfast::server::rpc {

enum class StatusCode : std::uint8_t {
    cancelled = 1,
    unknown = 2,
    invalid_argument = 3,
    deadline_exceeded = 4,
    not_found = 5,
    already_exists = 6,
    permission_denied = 7,
    resource_exhausted = 8,
    failed_precondition = 9,
    aborted = 10,
    out_of_range = 11,
    unimplemented = 12,
    internal = 13,
    unavailable = 14,
    data_loss = 15,
    unauthenticated = 16,
};

struct Refusal {
    Refusal(StatusCode status, std::string text);
    // `about` is a message of temporal.api.errordetails.v1.
    Refusal(StatusCode status, std::string text, const google::protobuf::Message& about);

    friend bool operator==(const Refusal&, const Refusal&) = default;

    StatusCode code;
    std::string message;
    std::string detail_type;  // The full name of the detail's message; empty if there is none.
    std::string detail;       // The detail, serialised.
};

// What a handler's exception means to a client. An Error is judged by its code; a failure that can
// pass is UNAVAILABLE, for INTERNAL makes some clients give up.
[[nodiscard]] Refusal refusal_of(const std::exception_ptr& error);

// The longest text that is sent; a longer one is cut between two characters and marked.
inline constexpr std::size_t message_bytes_max = 4000;

// What leaves the server. Texts of INTERNAL and UNKNOWN may quote data: they are logged, and the
// client gets the hash under which the log has them. The text of an UNIMPLEMENTED that clients
// would take for missing compression is logged and replaced: they would not compress again.
[[nodiscard]] Refusal shaped(Refusal refusal, Logger& log);

// A serialised google.rpc.Status for the trailer grpc-status-details-bin; empty without a detail.
[[nodiscard]] std::string status_details(const Refusal& refusal);

// What a RESOURCE_EXHAUSTED says in metadata too: the cause and the scope of its detail, by their
// short names (RpsLimit, Namespace). Nothing without that detail.
struct Exhaustion {
    std::string cause;
    std::string scope;
};
[[nodiscard]] std::optional<Exhaustion> exhaustion(const Refusal& refusal);

}  // namespace holdfast::server::rpc

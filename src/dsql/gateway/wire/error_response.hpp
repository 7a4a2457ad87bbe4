// The gateway's errors, in the service's words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::dsql {

// An error as the protocol carries it.
struct ErrorResponse {
    std::string code;
    std::string message;
    std::string detail{};
    std::string hint{};
    bool fatal = false;

    // The ErrorResponse, whole.
    [[nodiscard]] std::string bytes() const;
};

// The fields of a server's error that decisions need. Views into the message's body.
struct ServerError {
    std::string_view code;
    std::string_view message;
    std::string_view detail;
    std::string_view schema;
    std::string_view table;
    std::string_view constraint;

    [[nodiscard]] static ServerError read(std::string_view body);
    // A row has changed after the snapshot, or a deadlock.
    [[nodiscard]] bool is_conflict() const noexcept;
};

[[nodiscard]] ErrorResponse data_conflict();
[[nodiscard]] ErrorResponse schema_conflict();
[[nodiscard]] ErrorResponse in_failed_transaction();
[[nodiscard]] ErrorResponse server_unavailable();
[[nodiscard]] ErrorResponse unsupported(std::string message);
[[nodiscard]] ErrorResponse transaction_too_large(std::int64_t size, std::int64_t limit);

}  // namespace holdfast::dsql

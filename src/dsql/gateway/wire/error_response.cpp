#include "gateway/wire/error_response.hpp"

#include <utility>

#include <fmt/core.h>

#include <holdfast/dsql/wire.hpp>

namespace holdfast::dsql {

std::string ErrorResponse::bytes() const {
    const std::string_view severity = fatal ? "FATAL" : "ERROR";
    BodyWriter body;
    const auto field = [&body](char name, std::string_view value) {
        if (!value.empty()) {
            body.bytes({&name, 1}).text(value);
        }
    };
    field('S', severity);
    field('V', severity);
    field('C', code);
    field('M', message);
    field('D', detail);
    field('H', hint);
    body.bytes(std::string_view("\0", 1));
    std::string bytes;
    append_message(bytes, 'E', body.body());
    return bytes;
}

ServerError ServerError::read(std::string_view body) {
    ServerError error;
    BodyReader reader(body);
    while (!reader.empty()) {
        const char name = reader.bytes(1)[0];
        if (name == '\0') {
            break;
        }
        const std::string_view value = reader.text();
        switch (name) {
            case 'C':
                error.code = value;
                break;
            case 'M':
                error.message = value;
                break;
            case 'D':
                error.detail = value;
                break;
            case 's':
                error.schema = value;
                break;
            case 't':
                error.table = value;
                break;
            case 'n':
                error.constraint = value;
                break;
            default:
                break;
        }
    }
    return error;
}

bool ServerError::is_conflict() const noexcept {
    return code == "40001" || code == "40P01" || code == "55P03";
}

ErrorResponse data_conflict() {
    return {.code = "40001", .message = "change conflicts with another transaction (OC000)"};
}

ErrorResponse schema_conflict() {
    return {.code = "40001", .message = "schema has been updated by another transaction (OC001)"};
}

ErrorResponse in_failed_transaction() {
    return {.code = "25P02",
            .message =
                "current transaction is aborted, commands ignored until end of transaction "
                "block"};
}

ErrorResponse server_unavailable() {
    return {.code = "XX000", .message = "server unavailable"};
}

ErrorResponse unsupported(std::string message) {
    return {.code = "0A000", .message = std::move(message)};
}

ErrorResponse transaction_too_large(std::int64_t size, std::int64_t limit) {
    constexpr std::int64_t mebibyte = std::int64_t{1} << 20U;
    return {.code = "54000",
            .message = fmt::format("transaction size limit {}mb exceeded", limit / mebibyte),
            .detail = fmt::format("Current transaction size {}mb > {}mb",
                                  (size + mebibyte - 1) / mebibyte,
                                  limit / mebibyte)};
}

}  // namespace holdfast::dsql

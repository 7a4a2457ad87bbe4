#include "transaction.hpp"

#include "times.hpp"
#include <fmt/core.h>

#include <holdfast/base/utf8.hpp>
#include <holdfast/store/error.hpp>

namespace holdfast::store {

void rethrow_if_too_large(const Operation& operation, const sql::DatabaseError& error) {
    if (error.error_class() != sql::ErrorClass::limit_exceeded ||
        error.outcome() != Outcome::not_applied) {
        return;
    }
    TransactionSizeLimit refused(
        fmt::format("{} is more than the database takes at once; give it less: {}",
                    operation.name,
                    error.what()));
    refused.set_cause(std::current_exception());
    throw refused;
}

std::int32_t number(ShardId shard) {
    const auto value = static_cast<std::int32_t>(shard);
    if (value < 1) {
        throw InvalidArgument(fmt::format("there is no shard {}; shards count from 1", value));
    }
    return value;
}

void require_name(std::string_view what, std::string_view name, std::size_t bytes_max) {
    if (name.empty() || name.size() > bytes_max) {
        throw InvalidArgument(
            fmt::format("{} has {} bytes; give it 1 to {}", what, name.size(), bytes_max));
    }
    if (name.find('\0') != std::string_view::npos) {
        throw InvalidArgument(fmt::format("{} has a zero byte, which no key may have", what));
    }
    if (!is_utf8(name)) {
        throw InvalidArgument(fmt::format("{} is not UTF-8; encode it so", what));
    }
}

std::int64_t require_page_size(std::int64_t size) {
    if (size < 1 || size > page_size_max) {
        throw InvalidPersistenceRequest(
            fmt::format("a page of {} rows cannot be read; ask for 1 to {}", size, page_size_max));
    }
    return size;
}

void require_size(const sql::Dialect& dialect, std::size_t bytes) {
    if (bytes > dialect.value_bytes_max) {
        throw TransactionSizeLimit(fmt::format(
            "a value of {} bytes is more than the {} that the database stores; split it",
            bytes,
            dialect.value_bytes_max));
    }
}

void require_blob(const sql::Dialect& dialect, const Blob& blob) {
    require_size(dialect, blob.data.size());
    if (!blob.encoding.empty()) {
        require_name("the name of an encoding", blob.encoding, name_bytes_max);
    }
}

void require_time(std::string_view what, sql::Timestamp time) {
    if (time <= earliest || time >= latest) {
        throw InvalidArgument(fmt::format("{} must lie in the years 1 to 9999", what));
    }
}

}  // namespace holdfast::store

#include "door.hpp"

#include "codec.hpp"
#include <fmt/core.h>

#include <holdfast/store/error.hpp>

namespace holdfast::store {
namespace {

constexpr std::size_t dsql_value_bytes_max = std::size_t{1} << 20U;

}  // namespace

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
    if (dialect.product == sql::Product::dsql && bytes > dsql_value_bytes_max) {
        throw TransactionSizeLimit(
            fmt::format("a value of {} bytes is more than the {} that Aurora DSQL stores; split it",
                        bytes,
                        dsql_value_bytes_max));
    }
}

}  // namespace holdfast::store

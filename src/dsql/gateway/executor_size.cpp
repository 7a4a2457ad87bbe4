// How large a single value may be.
#include <array>

#include "gateway/executor.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {

namespace {

struct TypeName {
    std::int32_t oid;
    std::string_view name;
};
constexpr std::array type_names{TypeName{17, "bytea"},
                                TypeName{114, "json"},
                                TypeName{3802, "jsonb"},
                                TypeName{1043, "varchar"}};

struct LongValue {
    int index;
    std::string_view bytes;
};

// The first of the arguments of a Bind that is longer than that.
std::optional<LongValue> first_longer_than(std::string_view arguments, std::int64_t limit) {
    BodyReader reader(arguments);
    (void)reader.bytes(static_cast<std::size_t>(reader.int16()) * 2);
    const std::int16_t count = reader.int16();
    for (std::int16_t i = 0; i < count; ++i) {
        const std::int32_t size = reader.int32();
        const std::string_view bytes = reader.bytes(size < 0 ? 0 : static_cast<std::size_t>(size));
        if (size > limit) {
            return LongValue{i, bytes};
        }
    }
    return std::nullopt;
}

std::string_view type_at(std::string_view types, int index) {
    BodyReader reader(types);
    std::int32_t oid = 0;
    for (std::int16_t i = 0, count = reader.int16(); i < count; ++i) {
        const std::int32_t found = reader.int32();
        oid = i == index ? found : oid;
    }
    for (const TypeName& type : type_names) {
        if (type.oid == oid) {
            return type.name;
        }
    }
    return "text";
}

}  // namespace

std::optional<ErrorResponse> Executor::objection_to_size(const Call& call) {
    const std::int64_t limit = cluster_.options().limits.value_bytes;
    if (call.statement->kind != Kind::write ||
        call.arguments.size() <= static_cast<std::size_t>(limit)) {
        return std::nullopt;
    }
    const auto value = first_longer_than(call.arguments, limit);
    if (!value || cluster_.stored_size(value->bytes) <= limit) {
        return std::nullopt;
    }
    return ErrorResponse{
        .code = "54000",
        .message = fmt::format("datatype limit greater than {} bytes not supported for {}",
                               limit,
                               type_at(types_of(call), value->index))};
}

}  // namespace holdfast::dsql

#include "postgres/codec.hpp"

#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "driver.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sql::postgres {
namespace {

// The numbers of PostgreSQL's built-in types; they never change.
enum TypeId : Oid {
    type_bool = 16,
    type_bytea = 17,
    type_name = 19,
    type_int8 = 20,
    type_int2 = 21,
    type_int4 = 23,
    type_text = 25,
    type_oid = 26,
    type_json = 114,
    type_float4 = 700,
    type_float8 = 701,
    type_unknown = 705,
    type_bpchar = 1042,
    type_varchar = 1043,
    type_timestamp = 1114,
    type_timestamptz = 1184,
    type_numeric = 1700,
    type_void = 2278,
    type_uuid = 2950,
    type_jsonb = 3802,
};

// PostgreSQL counts microseconds from 2000-01-01.
constexpr std::int64_t epoch_us = 946'684'800'000'000;

// To PostgreSQL the least number is before all times, and the largest one after them.
constexpr std::int64_t before_all = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t after_all = std::numeric_limits<std::int64_t>::max();

std::int64_t from_postgres(std::int64_t us) {
    std::int64_t ours = 0;
    if (us == before_all) {
        return before_all;
    }
    return __builtin_add_overflow(us, epoch_us, &ours) ? after_all : ours;
}
std::int64_t to_postgres(std::int64_t us) {
    std::int64_t theirs = 0;
    return __builtin_sub_overflow(us, epoch_us, &theirs) ? before_all : theirs;
}

template <class T>
T from_network(const char* data) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        value = (value << 8) | static_cast<unsigned char>(data[i]);
    }
    return static_cast<T>(value);
}

// Groups of four decimal digits with a weight. Whole numbers become integers where they fit; the
// rest becomes a real number.
Cell decode_numeric(const char* data, int length) {
    constexpr int header = 8;
    const auto digits = from_network<std::int16_t>(data);
    const auto weight = from_network<std::int16_t>(data + 2);
    const auto sign = from_network<std::uint16_t>(data + 4);
    const auto scale = from_network<std::int16_t>(data + 6);
    // Groups beyond those that are sent are zero.
    const auto digit = [&](int group) -> int {
        const auto at = static_cast<std::size_t>(header) + 2 * static_cast<std::size_t>(group);
        const bool sent =
            group >= 0 && group < digits && at + 2 <= static_cast<std::size_t>(length);
        return sent ? from_network<std::int16_t>(data + at) : 0;
    };
    std::string text = sign == 0x4000 ? "-0" : "0";
    for (int group = 0; group <= weight; ++group) {
        text += fmt::format("{:04}", digit(group));
    }
    if (scale > 0) {
        text += '.';
        for (int group = weight + 1; group < digits; ++group) {
            text += fmt::format("{:04}", digit(group));
        }
        text += '0';
    }
    if (sign != 0 && sign != 0x4000) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    std::int64_t whole = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
    if (error == std::errc{} && end == text.data() + text.size()) {
        return whole;
    }
    return std::strtod(text.c_str(), nullptr);
}

Bytes to_bytes(const char* data, std::size_t length) {
    Bytes bytes(length);
    if (length > 0) {
        std::memcpy(bytes.data(), data, length);
    }
    return bytes;
}

Cell decode_cell(Oid type, const char* data, int length) {
    const auto size = static_cast<std::size_t>(length);
    switch (type) {
        case type_bool:
            return std::int64_t{*data != 0};
        case type_int2:
            return std::int64_t{from_network<std::int16_t>(data)};
        case type_int4:
            return std::int64_t{from_network<std::int32_t>(data)};
        case type_oid:
            return std::int64_t{from_network<std::uint32_t>(data)};
        case type_int8:
            return from_network<std::int64_t>(data);
        case type_float4:
            return double{std::bit_cast<float>(from_network<std::uint32_t>(data))};
        case type_float8:
            return std::bit_cast<double>(from_network<std::uint64_t>(data));
        case type_numeric:
            return decode_numeric(data, length);
        case type_timestamp:
        case type_timestamptz:
            return from_postgres(from_network<std::int64_t>(data));
        case type_bytea:
        case type_uuid:
            return to_bytes(data, size);
        case type_jsonb:
            return std::string(data + 1, size - 1);  // One byte of version first.
        case type_void:
            return std::monostate{};
        case type_text:
        case type_varchar:
        case type_bpchar:
        case type_name:
        case type_json:
        case type_unknown:
            return std::string(data, size);
        default:
            throw Error(Code::internal,
                        Outcome::not_applied,
                        fmt::format("the answer has a column of the type number {}, which is not "
                                    "read; cast it to text in the statement",
                                    type));
    }
}

Oid type_of(Kind kind) noexcept {
    switch (kind) {
        case Kind::int64:
            return type_int8;
        case Kind::real:
            return type_float8;
        case Kind::boolean:
            return type_bool;
        case Kind::bytes:
            return type_bytea;
        case Kind::uuid:
            return type_uuid;
        case Kind::timestamp:
            return type_timestamptz;
        case Kind::text:
        case Kind::json:
            break;
    }
    return 0;
}

}  // namespace

void Bound::bind(std::span<const Param> args, const Rendered& statement) {
    buffer_.clear();
    offsets_.clear();
    values_.clear();
    lengths_.clear();
    formats_.clear();
    for (const Param& param : args) {
        offsets_.push_back(buffer_.size());
        const bool as_text = param.kind() == Kind::text || param.kind() == Kind::json;
        formats_.push_back(as_text ? 0 : 1);
        if (!param.is_null()) {
            if (as_text) {
                require_text(param.view(), statement, static_cast<int>(offsets_.size()));
            }
            append(param);
        }
        lengths_.push_back(static_cast<int>(buffer_.size() - offsets_.back()));
        if (as_text) {
            buffer_ += '\0';
        }
    }
    // Only now: the buffer may have moved while it grew.
    for (std::size_t i = 0; i < args.size(); ++i) {
        values_.push_back(args[i].is_null() ? nullptr : buffer_.data() + offsets_[i]);
    }
}

void Bound::append(const Param& param) {
    switch (param.kind()) {
        case Kind::int64:
            append_number(static_cast<std::uint64_t>(param.number()));
            break;
        case Kind::timestamp:
            append_number(static_cast<std::uint64_t>(to_postgres(param.number())));
            break;
        case Kind::real:
            append_number(std::bit_cast<std::uint64_t>(param.real()));
            break;
        case Kind::boolean:
            buffer_ += param.number() != 0 ? '\1' : '\0';
            break;
        case Kind::bytes:
            buffer_ += param.view();
            break;
        case Kind::uuid:
            buffer_.append(reinterpret_cast<const char*>(param.uuid().bytes.data()),
                           param.uuid().bytes.size());
            break;
        case Kind::text:
        case Kind::json:
            buffer_ += param.view();
            break;
    }
}

void Bound::append_number(std::uint64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8) {
        buffer_ += static_cast<char>((value >> shift) & 0xff);
    }
}

std::vector<Oid> types_of(std::span<const Param> args) {
    std::vector<Oid> types;
    types.reserve(args.size());
    for (const Param& param : args) {
        types.push_back(type_of(param.kind()));
    }
    return types;
}

Rows decode_rows(const PGresult* result) {
    const int rows = libpq().PQntuples(result);
    const int columns = libpq().PQnfields(result);
    std::vector<Cell> cells;
    cells.reserve(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column) {
            if (libpq().PQgetisnull(result, row, column) != 0) {
                cells.emplace_back(std::monostate{});
            } else {
                cells.push_back(decode_cell(libpq().PQftype(result, column),
                                            libpq().PQgetvalue(result, row, column),
                                            libpq().PQgetlength(result, row, column)));
            }
        }
    }
    return {std::move(cells), static_cast<std::size_t>(columns), static_cast<std::size_t>(rows)};
}

std::int64_t rows_changed(PGresult* result) {
    if (std::strncmp(libpq().PQcmdStatus(result), "SELECT", 6) == 0) {
        return 0;
    }
    const std::string_view text = libpq().PQcmdTuples(result);
    std::int64_t changed = 0;
    std::from_chars(text.data(), text.data() + text.size(), changed);
    return changed;
}

}  // namespace holdfast::sql::postgres

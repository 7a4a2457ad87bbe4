#include "visibility/query_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

#include "search_attributes/values.hpp"
#include "visibility/query.hpp"
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <holdfast/base/error.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::server::visibility {

namespace {

namespace enums = temporal::api::enums::v1;

constexpr std::string_view server_prefix = "Temporal";

// By number, from 1: the short name, and the one of the enumeration.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> statuses{
    std::pair{"Running", "WORKFLOW_EXECUTION_STATUS_RUNNING"},
    std::pair{"Completed", "WORKFLOW_EXECUTION_STATUS_COMPLETED"},
    std::pair{"Failed", "WORKFLOW_EXECUTION_STATUS_FAILED"},
    std::pair{"Canceled", "WORKFLOW_EXECUTION_STATUS_CANCELED"},
    std::pair{"Terminated", "WORKFLOW_EXECUTION_STATUS_TERMINATED"},
    std::pair{"ContinuedAsNew", "WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW"},
    std::pair{"TimedOut", "WORKFLOW_EXECUTION_STATUS_TIMED_OUT"},
    std::pair{"Paused", "WORKFLOW_EXECUTION_STATUS_PAUSED"}};

template <class T>
std::optional<T> read_as(std::string_view text) {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> read_integer(std::string_view text) {
    const bool negative = text.starts_with('-');
    const std::string_view digits = text.substr(negative ? 1 : 0);
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
        std::uint32_t value = 0;
        const std::string_view hex = digits.substr(2);
        const auto [stop, error] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
        if (hex.empty() || error != std::errc{} || stop != hex.data() + hex.size()) {
            return std::nullopt;
        }
        return negative ? -std::int64_t{value} : std::int64_t{value};
    }
    return read_as<std::int64_t>(text);
}

// A number as the store writes it; nothing if it is none.
std::optional<std::string> number_text(std::string_view text) {
    if (const std::optional<std::int64_t> whole = read_integer(text)) {
        return fmt::format("{}", *whole);
    }
    const std::optional<double> real = read_as<double>(text);
    return real && std::isfinite(*real) ? std::optional(fmt::format("{:.17g}", *real))
                                        : std::nullopt;
}

std::string status_text(const Literal& literal) {
    const auto* found = statuses.end();
    if (literal.kind == Literal::Kind::number) {
        const std::int64_t number = read_integer(literal.text).value_or(0);
        if (number >= 1 && number <= std::ssize(statuses)) {
            found = statuses.begin() + number - 1;
        }
    } else {
        found = std::ranges::find_if(statuses, [&](const auto& status) {
            return literal.text == status.first || literal.text == status.second;
        });
    }
    if (found == statuses.end()) {
        throw_invalid(
            fmt::format("invalid expression: invalid ExecutionStatus value '{}'", literal.text));
    }
    return fmt::format("'{}'", found->first);
}

std::string time_text(const Attribute& attribute, const Literal& literal) {
    if (literal.kind == Literal::Kind::boolean) {
        refuse_value(attribute, literal);
    }
    if (literal.kind == Literal::Kind::number) {
        const std::optional<std::int64_t> ns = read_integer(literal.text);
        if (!ns) {
            refuse_value(attribute, literal);
        }
        const sql::Timestamp moment{
            std::chrono::floor<std::chrono::microseconds>(std::chrono::nanoseconds{*ns})};
        return moment_text(moment);
    }
    if (!search_attributes::parse_datetime(literal.text)) {
        throw_invalid(
            fmt::format("invalid expression: unable to parse datetime '{}'", literal.text));
    }
    return store::quoted_text(literal.text);
}

std::string duration_text(const Attribute& attribute, const Literal& literal) {
    if (literal.kind == Literal::Kind::boolean) {
        refuse_value(attribute, literal);
    }
    if (literal.kind == Literal::Kind::number) {
        const std::optional<std::int64_t> ns = read_integer(literal.text);
        if (!ns) {
            refuse_value(attribute, literal);
        }
        return fmt::format("{}", *ns);
    }
    return store::quoted_text(literal.text);  // The store knows the forms of a duration.
}

std::string number_value(const Attribute& attribute, const Literal& literal) {
    const std::optional<std::string> number =
        literal.kind == Literal::Kind::boolean ? std::nullopt : number_text(literal.text);
    if (!number) {
        refuse_value(attribute, literal);
    }
    return *number;
}

std::optional<Attribute> known_name(const std::string& given, const std::string& name) {
    const search_attributes::Known* const known = search_attributes::find_known(name);
    return known == nullptr
               ? std::nullopt
               : std::optional(Attribute{.given = given, .stored = name, .type = known->type});
}

std::string described(const Literal& literal) {
    switch (literal.kind) {
        case Literal::Kind::text:
            return fmt::format("\"{}\" (type: string)", literal.text);
        case Literal::Kind::boolean:
            return fmt::format("{} (type: bool)", literal.text == "TRUE" ? "true" : "false");
        case Literal::Kind::number:
            break;
    }
    return fmt::format(
        "{} (type: {})", literal.text, read_integer(literal.text) ? "int64" : "float64");
}

}  // namespace

// Not by one format: it would leave out what is below a second.
std::string moment_text(sql::Timestamp moment) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(moment);
    return fmt::format("'{:%FT%T}.{:06}Z'", whole, (moment - whole).count());
}

std::string_view status_name(int status) {
    const bool known = status >= 1 && status <= std::ssize(statuses);
    return known ? statuses[static_cast<std::size_t>(status - 1)].first : "Unspecified";
}

void throw_invalid(std::string_view text) {
    throw InvalidArgument(fmt::format("invalid query: {}", text));
}

void refuse_operation(std::string_view text) {
    throw_invalid(fmt::format("operation is not supported: {}", text));
}

void refuse_operator(const Attribute& attribute, std::string_view name) {
    refuse_operation(fmt::format("operator '{}' not supported for {} type search attribute '{}'",
                                 name,
                                 search_attributes::short_name(attribute.type),
                                 attribute.given));
}

void refuse_value(const Attribute& attribute, const Literal& literal) {
    throw_invalid(
        fmt::format("invalid expression: invalid value type for search attribute {} of type {}: {}",
                    attribute.given,
                    search_attributes::short_name(attribute.type),
                    described(literal)));
}

Attribute resolve_name(const search_attributes::Info& info, const std::string& name) {
    if (std::optional<std::string> column = search_attributes::column_of(info, name)) {
        const auto type =
            search_attributes::column_type(*column).value_or(search_attributes::Type{});
        return {.given = name, .stored = *std::move(column), .type = type};
    }
    if (name == "ScheduleId") {
        return {.given = name, .stored = "WorkflowId", .type = enums::INDEXED_VALUE_TYPE_KEYWORD};
    }
    std::optional<Attribute> found = known_name(name, name);
    if (!found) {
        found = known_name(name, fmt::format("{}{}", server_prefix, name));
    }
    if (!found && name.starts_with(server_prefix)) {
        found = known_name(name, name.substr(server_prefix.size()));
    }
    if (!found) {
        throw_invalid(fmt::format("invalid search attribute: {}", name));
    }
    return *std::move(found);
}

std::string value_text(const Attribute& attribute, const Literal& literal) {
    if (attribute.stored == "ExecutionStatus") {
        return status_text(literal);
    }
    if (attribute.stored == "ExecutionDuration") {
        return duration_text(attribute, literal);
    }
    switch (attribute.type) {
        case enums::INDEXED_VALUE_TYPE_INT:
        case enums::INDEXED_VALUE_TYPE_DOUBLE:
            return number_value(attribute, literal);
        case enums::INDEXED_VALUE_TYPE_DATETIME:
            return time_text(attribute, literal);
        case enums::INDEXED_VALUE_TYPE_BOOL:
            if (literal.kind != Literal::Kind::boolean) {
                refuse_value(attribute, literal);
            }
            return literal.text;
        default:
            break;
    }
    if (literal.kind != Literal::Kind::text) {
        refuse_value(attribute, literal);
    }
    return store::quoted_text(literal.text);
}

std::vector<std::string> words_in(std::string_view text) {
    std::vector<std::string> values;
    for (const std::string& word : search_attributes::words_of(text)) {
        values.push_back(store::quoted_text(word));
    }
    return values;
}

}  // namespace holdfast::server::visibility

// Writes values by their layout. Every append is straight into the text.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "stored/layout.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/json_text.hpp>

namespace holdfast::flow::stored {

template <class T>
concept Described = requires { Layout<T>::fields; };
template <class T>
concept Faultable = requires(const T& value) { Layout<T>::fault(value); };

// `first` is what stands before the first field: a brace, or a comma.
template <Described T>
void write_fields(std::string& out, char first, const T& value);

inline void write(std::string& out, const std::string& value) {
    json::append_string(out, value);
}
inline void write(std::string& out, const Payload& value) {
    out += value.json;
}
template <std::integral T>
void write(std::string& out, T value) {
    if constexpr (std::same_as<T, bool>) {
        out += value ? std::string_view("true") : std::string_view("false");
    } else if constexpr (std::signed_integral<T>) {
        json::append_integer(out, static_cast<std::int64_t>(value));
    } else {
        json::append_integer(out, static_cast<std::uint64_t>(value));
    }
}
// The shortest text that reads back as the same number. Requires: finite.
inline void write(std::string& out, double value) {
    std::array<char, 32> text{};
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
    out.append(text.data(), end);
}
template <class T>
    requires std::same_as<T, FailureKind> || std::same_as<T, Dropped>
void write(std::string& out, T value) {
    out += '"';
    out += to_string(value);
    out += '"';
}
template <Described T>
void write(std::string& out, const T& value) {
    write_fields(out, '{', value);
    out += '}';
}

inline void write_name(std::string& out, char before, std::string_view name) {
    out += before;
    out += '"';
    out += name;
    out += "\":";
}

// Each returns what stands before the next field.
template <class T>
char write_field(std::string& out, char before, std::string_view name, const T& value) {
    write_name(out, before, name);
    write(out, value);
    return ',';
}
template <class T>
char write_field(std::string& out,
                 char before,
                 std::string_view name,
                 const std::optional<T>& value) {
    return value ? write_field(out, before, name, *value) : before;
}
// Left out when it is empty.
template <class T>
char write_field(std::string& out,
                 char before,
                 std::string_view name,
                 const std::vector<T>& values) {
    if (values.empty()) {
        return before;
    }
    write_name(out, before, name);
    char first = '[';
    for (const T& value : values) {
        out += first;
        write(out, value);
        first = ',';
    }
    out += ']';
    return ',';
}
template <class Owner, class T>
char write_member(std::string& out, char before, const Field<Owner, T>& field, const Owner& owner) {
    return write_field(out, before, field.name, owner.*field.member);
}
template <class Owner>
char write_member(std::string& out,
                  char before,
                  const AnswerField<Owner>& field,
                  const Owner& owner) {
    const Answer& answer = owner.*field.member;
    if (const auto* failure = std::get_if<FailureInfo>(&answer)) {
        return write_field(out, before, field.failure, *failure);
    }
    return write_field(out, before, field.result, std::get<Payload>(answer));
}

template <Described T>
void write_fields(std::string& out, char first, const T& value) {
    if constexpr (Faultable<T>) {
        // What could not be read again must not be written.
        if (const char* why = Layout<T>::fault(value)) {
            throw InvalidArgument(why);
        }
    }
    char before = first;
    std::apply(
        [&](const auto&... fields) { ((before = write_member(out, before, fields, value)), ...); },
        Layout<T>::fields);
}

// The kind and the fields of whichever alternative it is.
template <class Body>
void write_body(std::string& out, char before, const Body& body) {
    write_name(out, before, "kind");
    std::visit(
        [&]<class T>(const T& value) {
            out += '"';
            out += Layout<T>::kind;
            out += '"';
            write_fields(out, ',', value);
        },
        body);
    out += '}';
}

}  // namespace holdfast::flow::stored

// Values on their way between functions, and how a type becomes one.
//
// A payload is JSON text. The engine and the store carry it and never look inside. A type takes
// part by `Codec<T>`; numbers, booleans, strings and Unit have theirs here,
// <holdfast/flow/json.hpp> adds every type that nlohmann's JSON knows, and anything else can
// specialise it.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::flow {

struct Payload {
    std::string json = "null";

    // Constructors, because g++ 12 destroys an aggregate that stands inside co_await twice.
    Payload() = default;
    explicit Payload(std::string text) : json(std::move(text)) {}
    friend bool operator==(const Payload&, const Payload&) = default;
};

// What "nothing" is where a value is needed.
struct Unit {
    friend bool operator==(const Unit&, const Unit&) = default;
};

// encode: JSON text, canonical (equal values give equal text). Throws InvalidArgument for a value
// that JSON cannot carry (NaN, a string that is not UTF-8).
// decode: throws InvalidArgument, naming what it found, when the text is something else.
template <class T>
struct Codec;

template <>
struct Codec<Unit> {
    static std::string encode(const Unit& value);
    static Unit decode(std::string_view json);
};
template <>
struct Codec<Payload> {
    // Throws InvalidArgument unless it is JSON.
    static std::string encode(const Payload& value);
    static Payload decode(std::string_view json) { return Payload{std::string(json)}; }
};
template <>
struct Codec<bool> {
    static std::string encode(bool value);
    static bool decode(std::string_view json);
};
template <>
struct Codec<double> {
    static std::string encode(double value);
    static double decode(std::string_view json);
};
template <>
struct Codec<std::string> {
    static std::string encode(const std::string& value);
    static std::string decode(std::string_view json);
};

namespace detail {
std::string encode_integer(std::int64_t value);
std::string encode_integer(std::uint64_t value);
// Throws InvalidArgument unless the text is an integer between the bounds.
std::int64_t decode_integer(std::string_view json, std::int64_t least, std::int64_t most);
std::uint64_t decode_natural(std::string_view json, std::uint64_t most);
}  // namespace detail

template <std::integral T>
    requires(!std::same_as<T, bool>)
struct Codec<T> {
    static std::string encode(T value) {
        if constexpr (std::signed_integral<T>) {
            return detail::encode_integer(static_cast<std::int64_t>(value));
        } else {
            return detail::encode_integer(static_cast<std::uint64_t>(value));
        }
    }
    static T decode(std::string_view json) {
        if constexpr (std::signed_integral<T>) {
            return static_cast<T>(detail::decode_integer(
                json, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
        } else {
            return static_cast<T>(detail::decode_natural(json, std::numeric_limits<T>::max()));
        }
    }
};

}  // namespace holdfast::flow

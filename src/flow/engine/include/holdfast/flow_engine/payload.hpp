// Values in transit between functions, and how a type becomes one.
//
// A payload is JSON text. The engine and the store carry it and never look inside. A type takes
// part by `Codec<T>`; numbers, booleans, strings, optionals and Unit have theirs here,
// <holdfast/flow/json.hpp> adds every type that nlohmann's JSON knows, and anything else can
// specialise it.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace holdfast::flow {

struct Payload {
    std::string json = "null";

    // Constructors, because g++ 12 destroys an aggregate that stands inside co_await twice.
    Payload() = default;
    explicit Payload(std::string text) : json(std::move(text)) {}
    friend bool operator==(const Payload&, const Payload&) = default;
};

// An empty value where a value is needed.
struct Unit {
    friend bool operator==(const Unit&, const Unit&) = default;
};

namespace detail {

template <class>
inline constexpr bool never = false;

// A value that refers to data that it does not own.
template <class T>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<const T> = is_view<T>;
template <class Char, class Traits>
inline constexpr bool is_view<std::basic_string_view<Char, Traits>> = true;
template <class T, std::size_t Extent>
inline constexpr bool is_view<std::span<T, Extent>> = true;
template <class T>
inline constexpr bool is_view<std::initializer_list<T>> = true;
template <class T>
inline constexpr bool is_view<std::reference_wrapper<T>> = true;

// Whether a value of the type is complete in itself, so that it can be read back from JSON: no
// pointer, no reference, no view, and no container of them.
template <class T>
inline constexpr bool owns_itself = !std::is_pointer_v<T> && !std::is_reference_v<T> && !is_view<T>;
template <template <class...> class Container, class... T>
    requires(!is_view<Container<T...>>)
inline constexpr bool owns_itself<Container<T...>> = (owns_itself<T> && ...);

}  // namespace detail

// encode: JSON text, canonical (equal values give equal text). Throws InvalidArgument for a value
// that JSON cannot carry (NaN, a string that is not UTF-8).
// decode: throws InvalidArgument, naming what it found, when the text is something else.
template <class T>
struct Codec {
    static_assert(detail::never<T>,
                  "nothing says how a value of this type is stored: include "
                  "<holdfast/flow/json.hpp> if nlohmann's JSON knows it, else specialise Codec");
    static std::string encode(const T& value);
    static T decode(std::string_view json);
};

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
struct Codec<float> {
    static std::string encode(float value) { return Codec<double>::encode(value); }
    static float decode(std::string_view json);
};
template <>
struct Codec<std::string> {
    static std::string encode(const std::string& value);
    static std::string decode(std::string_view json);
};
// Text is stored from a view as from a string; it is read back as a string.
template <>
struct Codec<std::string_view> {
    static std::string encode(std::string_view value) {
        return Codec<std::string>::encode(std::string(value));
    }
};

namespace detail {
std::string encode_integer(std::int64_t value);
std::string encode_integer(std::uint64_t value);
// Throws InvalidArgument unless the text is an integer between the bounds.
std::int64_t decode_integer(std::string_view json, std::int64_t least, std::int64_t most);
std::uint64_t decode_natural(std::string_view json, std::uint64_t most);
[[nodiscard]] bool is_null(std::string_view json) noexcept;

template <class T>
inline constexpr bool may_be_null = std::same_as<T, Unit>;
template <class T>
inline constexpr bool may_be_null<std::optional<T>> = true;
}  // namespace detail

// null where there is no value.
template <class T>
struct Codec<std::optional<T>> {
    static_assert(!detail::may_be_null<T>, "null would have two meanings");
    static std::string encode(const std::optional<T>& value) {
        return value ? Codec<T>::encode(*value) : "null";
    }
    static std::optional<T> decode(std::string_view json) {
        return detail::is_null(json) ? std::nullopt : std::optional<T>(Codec<T>::decode(json));
    }
};

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

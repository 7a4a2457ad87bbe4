// Every type that nlohmann's JSON knows, as a payload. The one header that needs that library.
//
//   struct Basket { std::string id; std::int64_t cents = 0; };
//   NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Basket, id, cents)
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/context.hpp>
#include <holdfast/flow_engine/payload.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {

namespace detail {

// Like the library's dump(), except that NaN and infinity, for which the library writes null, are
// refused, and that strings, most of what is large, are written many bytes at a time.
inline void write_json(std::string& out, const nlohmann::json& value) {
    if (value.is_string()) {
        out += quote(value.get_ref<const std::string&>());
    } else if (value.is_object() && !value.empty()) {
        char before = '{';
        for (const auto& [key, inner] : value.items()) {
            out += before;
            out += quote(key);
            out += ':';
            write_json(out, inner);
            before = ',';
        }
        out += '}';
    } else if (value.is_array() && !value.empty()) {
        char before = '[';
        for (const nlohmann::json& inner : value) {
            out += before;
            write_json(out, inner);
            before = ',';
        }
        out += ']';
    } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
        throw InvalidArgument("a number that is not finite cannot be stored as JSON");
    } else {
        out += value.dump();
    }
}

}  // namespace detail

template <class T>
concept KnownToJson = requires(const T& value, nlohmann::json& json) {
    json = value;
    json.get<T>();
};

// Keys are sorted, so equal values give equal text.
template <class T>
    requires(KnownToJson<T> && !std::is_arithmetic_v<T>)
struct Codec<T> {
    static std::string encode(const T& value) {
        std::string text;
        detail::write_json(text, nlohmann::json(value));
        return text;
    }
    static T decode(std::string_view text) {
        static_assert(detail::owns_itself<T>,
                      "a decoded type must own its data: use a string instead of a string_view");
        try {
            return nlohmann::json::parse(text).get<T>();
        } catch (const nlohmann::json::exception& error) {
            throw InvalidArgument(error.what());
        }
    }
};

template <class Tag>
struct DefaultJson {
    using type = nlohmann::json;
};

}  // namespace holdfast::flow

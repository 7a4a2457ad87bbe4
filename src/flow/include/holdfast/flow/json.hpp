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

namespace holdfast::flow {

namespace detail {

// JSON has no NaN and no infinity; the library would write null for them.
inline void refuse_what_json_cannot_say(const nlohmann::json& value) {
    if (value.is_number_float() && !std::isfinite(value.get<double>())) {
        throw InvalidArgument("a number that is not finite cannot be stored as JSON");
    }
    if (value.is_structured()) {
        for (const nlohmann::json& inner : value) {
            refuse_what_json_cannot_say(inner);
        }
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
        const nlohmann::json json = value;
        detail::refuse_what_json_cannot_say(json);
        try {
            return json.dump();
        } catch (const nlohmann::json::exception& error) {
            throw InvalidArgument(error.what());
        }
    }
    static T decode(std::string_view text) {
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

// JSON in blobs, for the few values that the store itself keeps.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include <holdfast/store/types.hpp>

namespace holdfast::store {

inline constexpr std::string_view json_encoding = "Json";
inline constexpr std::string_view proto_encoding = "Proto3";

// Requires: all text is UTF-8. Else invalid_argument.
[[nodiscard]] Blob to_blob(const nlohmann::json& value);
// Throws DamagedData if the bytes are not JSON, and UnknownEncodingType if they do not say so;
// `what` names the row.
[[nodiscard]] nlohmann::json from_blob(const Blob& blob, std::string_view what);
// What a reader makes of such a value. Throws DamagedData if it has another shape than `read`
// expects.
template <class Read>
auto decode(const Blob& blob, std::string_view what, Read&& read);

[[noreturn]] void throw_damaged(std::string_view what, std::string_view why);

// Of blobs that callers give us; what is before a slash is a mark of ours.
// Throws UnknownEncodingType if it is none that a reader knows.
void require_encoding(const std::string& encoding, std::string_view what);

template <class Read>
auto decode(const Blob& blob, std::string_view what, Read&& read) {
    const nlohmann::json value = from_blob(blob, what);
    try {
        return read(value);
    } catch (const nlohmann::json::exception& error) {
        throw_damaged(what, error.what());
    }
}

// Requires: canonical text. Else DamagedData.
[[nodiscard]] Uuid uuid_of(const nlohmann::json& value, std::string_view what);

}  // namespace holdfast::store

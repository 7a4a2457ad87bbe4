#include "codec.hpp"

#include <fmt/core.h>

#include <holdfast/store/error.hpp>
#include <holdfast/store/queue.hpp>

namespace holdfast::store {
namespace {

[[noreturn]] void throw_unknown(std::string_view what,
                                const std::string& encoding,
                                std::string_view accepted) {
    throw UnknownEncodingType(
        fmt::format("the data of {} cannot be read: its encoding is '{}', and known is {}; restore "
                    "the row",
                    what,
                    encoding,
                    accepted),
        encoding);
}

}  // namespace

Blob to_blob(const nlohmann::json& value) {
    std::string text;
    try {
        text = value.dump();
    } catch (const nlohmann::json::exception&) {
        throw InvalidArgument("a name is not UTF-8; give names as text");
    }
    const auto bytes = std::as_bytes(std::span(text));
    return {.data = sql::Bytes(bytes.begin(), bytes.end()), .encoding = std::string(json_encoding)};
}

nlohmann::json from_blob(const Blob& blob, std::string_view what) {
    if (blob.encoding != json_encoding) {
        throw_unknown(what, blob.encoding, json_encoding);
    }
    const auto* const text = reinterpret_cast<const char*>(blob.data.data());
    auto value = nlohmann::json::parse(text, text + blob.data.size(), nullptr, false);
    if (value.is_discarded()) {
        throw_damaged(what, "it is not valid JSON");
    }
    return value;
}

void require_encoding(const std::string& encoding, std::string_view what) {
    const std::string_view name =
        std::string_view(encoding).substr(encoding.find_last_of('/') + 1);  // All without a slash.
    if (name != proto_encoding && name != json_encoding) {
        throw_unknown(what, encoding, "Proto3 and Json");
    }
}

void throw_damaged(std::string_view what, std::string_view why) {
    throw DamagedData(fmt::format("the data of {} cannot be read: {}; restore the row", what, why));
}

Uuid uuid_of(const nlohmann::json& value, std::string_view what) {
    const auto parsed = Uuid::parse(value.get_ref<const std::string&>());
    if (!parsed) {
        throw_damaged(what, "an id is not a UUID");
    }
    return *parsed;
}

}  // namespace holdfast::store

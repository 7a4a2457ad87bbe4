// Messages of the API as JSON, and back.
//
// It is protobuf's JSON with two additions of the API. Names of enumerators may be short on the way
// in: "Running" for WORKFLOW_EXECUTION_STATUS_RUNNING. And payloads may be in shorthand: the value
// that they hold, where that says everything. A payload of json/plain is its JSON, null is one of
// binary/null, and an object with "_protoMessageType" is one of json/protobuf; everything else is
// written in full, with metadata and data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
}

namespace holdfast::server::rpc {

enum class Shorthand : std::uint8_t { off, on };

// Appends to what `message` holds. Returns what is wrong with the text, for its author; then
// `message` is undefined. A name that the message does not have is an error.
[[nodiscard]] std::optional<std::string> from_json(std::string_view text,
                                                   Shorthand shorthand,
                                                   google::protobuf::Message& message);

// Fields with default values are left out. Throws Error if the message has no JSON, as when it
// nests too deeply.
[[nodiscard]] std::string to_json(const google::protobuf::Message& message, Shorthand shorthand);

// The same value in lines, indented by two blanks. Requires: `text` is JSON.
[[nodiscard]] std::string pretty_json(std::string_view text);

}  // namespace holdfast::server::rpc

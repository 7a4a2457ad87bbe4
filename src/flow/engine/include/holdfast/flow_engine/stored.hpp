// Histories and messages as text.
//
// An event or a message is one JSON object in one line, with the fields of its type in snake_case;
// payloads stand in it as they are. Reading does not parse payloads, and gives them back byte for
// byte. An unknown kind, a missing field or a foreign format is an error, never a guess; an unknown
// field is ignored, so that a newer version may add one.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/flow_engine/event.hpp>
#include <holdfast/flow_engine/message.hpp>

namespace holdfast::flow {

// The text is not an event or message that this build knows. The message says where and why.
class Undecodable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// {"id":2,"time_ms":1700000000000,"kind":"activity_scheduled","name":"shop.capture","input":[...]}
// Appends, without a line end. `source` is left out when there is none; so is an empty optional.
void encode(const Event& event, std::string& out);
[[nodiscard]] std::string encode(const Event& event);
[[nodiscard]] Event decode_event(std::string_view line);
// Several events, one line each.
[[nodiscard]] std::string encode(const std::vector<Event>& events);
[[nodiscard]] std::vector<Event> decode_events(std::string_view lines);

// One execution with all that a replay of it needs, as files hold it: a header line with the
// instance and the keys that the execution began with, then its events.
struct ExportedHistory {
    std::string instance{};  // Empty: the text does not say.
    ExecutionId execution = 1;
    std::map<std::string, Payload> kv{};
    std::vector<Event> events{};
    friend bool operator==(const ExportedHistory&, const ExportedHistory&) = default;
};
[[nodiscard]] std::string encode(const ExportedHistory& history);
// The first line may be missing.
[[nodiscard]] ExportedHistory decode_export(std::string_view lines);

// The body with its kind; the execution travels beside it.
[[nodiscard]] std::string encode(const MessageBody& body);
[[nodiscard]] MessageBody decode_message(std::string_view line);

[[nodiscard]] std::string encode(const FailureInfo& failure);
[[nodiscard]] FailureInfo decode_failure(std::string_view json);

[[nodiscard]] std::string encode(const ActivityRetry& retry);
[[nodiscard]] ActivityRetry decode_retry(std::string_view json);

// Whether `text` is one JSON value and nothing else.
[[nodiscard]] bool is_json(std::string_view text) noexcept;
// A JSON string of `text`, which must be UTF-8; else InvalidArgument.
[[nodiscard]] std::string quote(std::string_view text);
// [a,b,c] of payloads, and back. Undecodable unless the text is an array.
[[nodiscard]] std::string join_array(const std::vector<std::string>& values);
[[nodiscard]] std::vector<std::string_view> split_array(std::string_view json);

}  // namespace holdfast::flow

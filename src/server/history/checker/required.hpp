// Attributes that an event must have, whatever it tells.
#pragma once

#include <span>
#include <string_view>

#include "history/event_kind.hpp"
#include <google/protobuf/message.h>
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history {

// Paths of fields, "workflow_type.name", that are set in every event of the type.
[[nodiscard]] std::span<const std::string_view> required_attributes(EventType type);

// A message that is there; a text, a number or an enumerator that is not the default.
[[nodiscard]] bool is_set(const google::protobuf::Message& message, std::string_view path);

// The event's attributes; null if they are missing or are those of another type.
[[nodiscard]] const google::protobuf::Message* attributes_of(
    const temporal::api::history::v1::HistoryEvent& event);

// The field's value; 0 or "" if the message has no such field.
[[nodiscard]] std::int64_t number_in(const google::protobuf::Message& message, const char* field);
[[nodiscard]] std::string text_in(const google::protobuf::Message& message, const char* field);

}  // namespace holdfast::server::history

// Moments and spans of time of the API, as values one can reckon with.
#pragma once

#include <chrono>

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

namespace holdfast::server::history {

using Time = std::chrono::sys_time<std::chrono::nanoseconds>;
using Span = std::chrono::nanoseconds;

// Longer spans are taken for this one, so that no sum of a moment and a span overflows.
inline constexpr Span span_max = std::chrono::years{100};

// An absent message is a span of 0 or the epoch, as everywhere in the API. A span outside of
// ±span_max is cut to it.
[[nodiscard]] Span span_of(const google::protobuf::Duration& duration);
[[nodiscard]] Time time_of(const google::protobuf::Timestamp& timestamp);

[[nodiscard]] google::protobuf::Duration to_duration(Span span);
[[nodiscard]] google::protobuf::Timestamp to_timestamp(Time time);

// False for what protobuf does not call a duration: seconds and nanos of different signs, nanos
// beyond a second; and for a negative one.
[[nodiscard]] bool valid_span(const google::protobuf::Duration& duration);

}  // namespace holdfast::server::history

#include "history/times.hpp"

#include <algorithm>
#include <cstdint>

namespace holdfast::server::history {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

}  // namespace

Span span_of(const google::protobuf::Duration& duration) {
    constexpr std::int64_t most =
        std::chrono::duration_cast<std::chrono::seconds>(span_max).count();
    if (duration.seconds() >= most) {
        return span_max;
    }
    if (duration.seconds() <= -most) {
        return -span_max;
    }
    return std::chrono::seconds{duration.seconds()} + Span{duration.nanos()};
}

Time time_of(const google::protobuf::Timestamp& timestamp) {
    constexpr std::int64_t most = INT64_MAX / second_ns - 1;
    const std::int64_t seconds = std::clamp(timestamp.seconds(), -most, most);
    const std::int64_t nanos = std::clamp<std::int64_t>(timestamp.nanos(), 0, second_ns - 1);
    return Time{std::chrono::seconds{seconds} + Span{nanos}};
}

google::protobuf::Duration to_duration(Span span) {
    google::protobuf::Duration duration;
    duration.set_seconds(span.count() / second_ns);
    duration.set_nanos(static_cast<std::int32_t>(span.count() % second_ns));
    return duration;
}

google::protobuf::Timestamp to_timestamp(Time time) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    google::protobuf::Timestamp timestamp;
    timestamp.set_seconds(seconds.time_since_epoch().count());
    timestamp.set_nanos(static_cast<std::int32_t>((time - seconds).count()));
    return timestamp;
}

bool valid_span(const google::protobuf::Duration& duration) {
    return duration.seconds() >= 0 && duration.nanos() >= 0 && duration.nanos() < second_ns;
}

}  // namespace holdfast::server::history

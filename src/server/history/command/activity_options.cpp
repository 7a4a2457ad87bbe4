#include "history/command/activity_options.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace holdfast::server::history {

namespace {

using temporal::api::command::v1::ScheduleActivityTaskCommandAttributes;
using temporal::api::history::v1::ActivityTaskScheduledEventAttributes;

constexpr std::string_view reserved_prefix = "/_sys/";
constexpr std::size_t fairness_key_bytes_max = 64;

// Command and event name these fields alike.
template <class Attributes>
bool valid_timeouts(const Attributes& attributes) {
    return valid_span(attributes.schedule_to_close_timeout()) &&
           valid_span(attributes.schedule_to_start_timeout()) &&
           valid_span(attributes.start_to_close_timeout()) &&
           valid_span(attributes.heartbeat_timeout());
}

template <class Attributes>
std::optional<std::string> options_problem(const Attributes& attributes) {
    if (attributes.task_queue().name().starts_with(reserved_prefix)) {
        return "task queue name cannot start with reserved prefix /_sys/";
    }
    if (attributes.priority().priority_key() < 0 || attributes.priority().fairness_weight() < 0 ||
        attributes.priority().fairness_key().size() > fairness_key_bytes_max) {
        return "invalid priority";
    }
    const std::string which = fmt::format("ActivityId={} ActivityType={}",
                                          attributes.activity_id(),
                                          attributes.activity_type().name());
    if (!valid_timeouts(attributes)) {
        return fmt::format("An invalid timeout is set on the activity. {}", which);
    }
    if (span_of(attributes.schedule_to_close_timeout()) == Span::zero() &&
        span_of(attributes.start_to_close_timeout()) == Span::zero()) {
        return fmt::format(
            "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on "
            "the activity. {}",
            which);
    }
    return std::nullopt;
}

Span least(Span span, Span most) {
    return most > Span::zero() ? std::min(span, most) : span;
}

Span given_or(Span span, Span otherwise) {
    return span > Span::zero() ? span : otherwise;
}

}  // namespace

std::optional<std::string> activity_options_problem(
    const ScheduleActivityTaskCommandAttributes& attributes) {
    return options_problem(attributes);
}

std::optional<std::string> activity_options_problem(
    const ActivityTaskScheduledEventAttributes& attributes) {
    return options_problem(attributes);
}

void normalise_activity_timeouts(ActivityTaskScheduledEventAttributes& scheduled, Span run) {
    Span to_close = span_of(scheduled.schedule_to_close_timeout());
    Span to_start = span_of(scheduled.schedule_to_start_timeout());
    Span attempt = span_of(scheduled.start_to_close_timeout());
    if (to_close > Span::zero()) {
        to_start = least(given_or(to_start, to_close), to_close);
        attempt = least(given_or(attempt, to_close), to_close);
    } else {
        to_close = run;
        to_start = given_or(to_start, run);
    }
    attempt = least(attempt, run);
    *scheduled.mutable_schedule_to_close_timeout() = to_duration(least(to_close, run));
    *scheduled.mutable_schedule_to_start_timeout() = to_duration(least(to_start, run));
    *scheduled.mutable_start_to_close_timeout() = to_duration(attempt);
    *scheduled.mutable_heartbeat_timeout() =
        to_duration(std::min(span_of(scheduled.heartbeat_timeout()), attempt));
}

}  // namespace holdfast::server::history

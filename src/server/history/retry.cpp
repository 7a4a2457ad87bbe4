#include "history/retry.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::common::v1::RetryPolicy;
using temporal::api::failure::v1::Failure;

constexpr std::string_view timeout_prefix = "TemporalTimeout:";
constexpr std::array<std::string_view, 4> timeout_names{
    "StartToClose", "ScheduleToStart", "ScheduleToClose", "Heartbeat"};

bool listed(const RetryPolicy& policy, std::string_view type) {
    const auto& types = policy.non_retryable_error_types();
    return std::find(types.begin(), types.end(), type) != types.end();
}

bool retryable_timeout(TimeoutType type, const RetryPolicy& policy) {
    switch (type) {
        case TIMEOUT_TYPE_START_TO_CLOSE:
            return !listed(policy, "TemporalTimeout:StartToClose");
        case TIMEOUT_TYPE_HEARTBEAT:
            return !listed(policy, "TemporalTimeout:Heartbeat");
        default:
            return false;
    }
}

bool retryable(const Failure& failure, const RetryPolicy& policy) {
    if (failure.has_terminated_failure_info() || failure.has_canceled_failure_info()) {
        return false;
    }
    if (failure.has_timeout_failure_info()) {
        return retryable_timeout(failure.timeout_failure_info().timeout_type(), policy);
    }
    if (failure.has_server_failure_info()) {
        return !failure.server_failure_info().non_retryable();
    }
    if (failure.has_application_failure_info()) {
        const auto& info = failure.application_failure_info();
        return !info.non_retryable() && !listed(policy, info.type());
    }
    return true;
}

}  // namespace

void fill_defaults(RetryPolicy& policy) {
    if (span_of(policy.initial_interval()) == Span::zero()) {
        *policy.mutable_initial_interval() = to_duration(std::chrono::seconds{1});
    }
    if (policy.backoff_coefficient() == 0) {
        policy.set_backoff_coefficient(2.0);
    }
    if (span_of(policy.maximum_interval()) == Span::zero()) {
        const Span first = span_of(policy.initial_interval());
        *policy.mutable_maximum_interval() =
            to_duration(first > span_max / 100 ? span_max : 100 * first);
    }
}

std::optional<std::string> policy_problem(const RetryPolicy& policy) {
    if (policy.maximum_attempts() == 1) {
        return std::nullopt;  // It is never tried again, whatever the rest says.
    }
    if (policy.has_initial_interval() && !valid_span(policy.initial_interval())) {
        return "InitialInterval cannot be negative on retry policy.";
    }
    // A coefficient that is not a number is refused as well.
    if (!(policy.backoff_coefficient() >= 1)) {
        return "BackoffCoefficient cannot be less than 1 on retry policy.";
    }
    if (policy.has_maximum_interval() && !valid_span(policy.maximum_interval())) {
        return "MaximumInterval cannot be negative on retry policy.";
    }
    const Span most = span_of(policy.maximum_interval());
    if (most > Span::zero() && most < span_of(policy.initial_interval())) {
        return "MaximumInterval cannot be less than InitialInterval on retry policy.";
    }
    if (policy.maximum_attempts() < 0) {
        return "MaximumAttempts cannot be negative on retry policy.";
    }
    for (const std::string_view type : policy.non_retryable_error_types()) {
        if (type.starts_with(timeout_prefix) &&
            std::find(timeout_names.begin(),
                      timeout_names.end(),
                      type.substr(timeout_prefix.size())) == timeout_names.end()) {
            return "Invalid timeout type value in NonRetryableErrorTypes on retry policy.";
        }
    }
    return std::nullopt;
}

std::optional<Span> retry_interval(const RetryPolicy& policy, std::int32_t attempt) {
    const Span most = span_of(policy.maximum_interval());
    const double grown = static_cast<double>(span_of(policy.initial_interval()).count()) *
                         std::pow(policy.backoff_coefficient(), attempt - 1);
    if (grown < static_cast<double>(span_max.count())) {
        const Span exact{static_cast<std::int64_t>(grown)};
        return most > Span::zero() ? std::min(exact, most) : exact;
    }
    return most > Span::zero() ? std::optional{most} : std::nullopt;
}

RetryDecision decide_retry(const RetryPolicy& policy,
                           const Failure& failure,
                           std::int32_t attempt,
                           Time now,
                           std::optional<Time> deadline) {
    if (failure.has_timeout_failure_info()) {
        const TimeoutType type = failure.timeout_failure_info().timeout_type();
        if (type == TIMEOUT_TYPE_SCHEDULE_TO_START || type == TIMEOUT_TYPE_SCHEDULE_TO_CLOSE) {
            return {.state = RETRY_STATE_TIMEOUT};
        }
    }
    if (!retryable(failure, policy)) {
        return {.state = RETRY_STATE_NON_RETRYABLE_FAILURE};
    }
    if (policy.maximum_attempts() > 0 && attempt >= policy.maximum_attempts()) {
        return {.state = RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED};
    }
    std::optional<Span> delay = retry_interval(policy, attempt);
    if (failure.application_failure_info().has_next_retry_delay()) {
        delay = span_of(failure.application_failure_info().next_retry_delay());
    }
    if (!delay || (deadline && now + *delay > *deadline)) {
        return {.state = RETRY_STATE_TIMEOUT};
    }
    return {.state = RETRY_STATE_IN_PROGRESS, .delay = *delay};
}

}  // namespace holdfast::server::history

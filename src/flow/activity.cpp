#include <holdfast/flow/activity.hpp>

#include <fmt/core.h>

namespace holdfast::flow {
namespace {

milliseconds since_queued(const ClaimedActivity& claim) {
    return claim.now - claim.queued.value_or(claim.now);
}

}  // namespace

std::string ActivityContext::idempotency_key() const {
    const ActivityKey& key = claim_.task.key;
    return fmt::format("{}/{}/{}", key.instance, key.execution, key.event);
}

ActivityEnd end_of_attempt(const ClaimedActivity& claim,
                           std::variant<Payload, FailureInfo> result,
                           milliseconds took,
                           double unit) {
    ActivityEnd end{.key = claim.task.key, .token = claim.token};
    FailureInfo* const failure = std::get_if<FailureInfo>(&result);
    if (failure != nullptr && claim.task.retry) {
        const ActivityRetry& retry = *claim.task.retry;
        const int failures = claim.failures + 1;
        const milliseconds delay = retry.delay_after(failures, unit);
        const bool late =
            retry.total_ms && (since_queued(claim) + took + delay).count() > *retry.total_ms;
        if (!late && retry.tries_again(*failure, failures)) {
            end.again = NextAttempt{.delay = delay, .failure = std::move(*failure)};
            return end;
        }
    }
    end.answer = ActivityAnswer{.event = claim.task.key.event, .result = {}};
    if (claim.attempt > 1) {
        end.answer->attempt = claim.attempt;
    }
    if (failure == nullptr) {
        end.answer->last_failure = claim.last_failure;
    }
    end.answer->result = std::move(result);
    return end;
}

std::optional<FailureInfo> total_exceeded(const ClaimedActivity& claim) {
    const std::optional<ActivityRetry>& retry = claim.task.retry;
    const std::optional<std::int64_t> total_ms = retry ? retry->total_ms : std::nullopt;
    if (!total_ms) {
        return std::nullopt;
    }
    if (claim.attempt < 2 || since_queued(claim).count() <= *total_ms) {
        return std::nullopt;
    }
    return FailureInfo{.kind = FailureKind::timeout,
                       .type = "TimedOut",
                       .message = fmt::format("no attempt may begin after {} ms", *total_ms),
                       .retryable = false,
                       .cause = claim.last_failure ? claim.last_failure->text() : std::string{}};
}

}  // namespace holdfast::flow

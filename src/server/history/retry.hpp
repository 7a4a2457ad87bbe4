// Whether something that failed is tried again, and when: activities and workflows alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "history/times.hpp"
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/enums/v1/workflow.pb.h>
#include <temporal/api/failure/v1/message.pb.h>

namespace holdfast::server::history {

// Fills the fields that are 0 with the API's defaults: 1 s, doubling, at most 100 times the first
// interval, without a limit of attempts.
void fill_defaults(temporal::api::common::v1::RetryPolicy& policy);

// What is wrong with the policy, or nothing.
[[nodiscard]] std::optional<std::string> policy_problem(
    const temporal::api::common::v1::RetryPolicy& policy);

// Between the failure of this attempt and the next one; nothing if it outgrows every bound.
[[nodiscard]] std::optional<Span> retry_interval(
    const temporal::api::common::v1::RetryPolicy& policy, std::int32_t attempt);

struct RetryDecision {
    temporal::api::enums::v1::RetryState state{};  // IN_PROGRESS: it is tried again after `delay`.
    Span delay{};
};

// `attempt` is the one that failed; `deadline` is when no attempt may begin any more.
[[nodiscard]] RetryDecision decide_retry(const temporal::api::common::v1::RetryPolicy& policy,
                                         const temporal::api::failure::v1::Failure& failure,
                                         std::int32_t attempt,
                                         Time now,
                                         std::optional<Time> deadline);

}  // namespace holdfast::server::history

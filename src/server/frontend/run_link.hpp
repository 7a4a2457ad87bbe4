// Links that replies carry, to the event that a request made, and those that events carry.
#pragma once

#include <string>

#include "frontend/validate.hpp"
#include <temporal/api/common/v1/message.pb.h>

namespace holdfast::server::frontend {

// To event 1.
[[nodiscard]] temporal::api::common::v1::Link link_to_start(const std::string& namespace_name,
                                                            const std::string& workflow_id,
                                                            const std::string& run_id);

// To event 55, by the request that is attached.
[[nodiscard]] temporal::api::common::v1::Link link_to_attached(const std::string& namespace_name,
                                                               const std::string& workflow_id,
                                                               const std::string& run_id,
                                                               const std::string& request_id);

// By the request, for the event may be buffered and have no id yet.
[[nodiscard]] temporal::api::common::v1::Link link_to_signal(const std::string& namespace_name,
                                                             const std::string& workflow_id,
                                                             const std::string& run_id,
                                                             const std::string& request_id);

// To an update that was not rejected; `request_id` may be empty.
[[nodiscard]] temporal::api::common::v1::Link link_to_update(const std::string& namespace_name,
                                                             const std::string& workflow_id,
                                                             const std::string& run_id,
                                                             const std::string& request_id);

// To the run of an update that failed: a rejected one has no event.
[[nodiscard]] temporal::api::common::v1::Link link_to_failed_update(
    const std::string& namespace_name, const std::string& workflow_id, const std::string& run_id);

// Without repeats.
[[nodiscard]] Links distinct(const Links& links);

}  // namespace holdfast::server::frontend

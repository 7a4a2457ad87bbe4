// Links that replies carry: to the event that a request made.
#pragma once

#include <string>

#include <temporal/api/common/v1/message.pb.h>

namespace holdfast::server::frontend {

// To event 1.
[[nodiscard]] temporal::api::common::v1::Link link_to_start(const std::string& namespace_name,
                                                            const std::string& workflow_id,
                                                            const std::string& run_id);

// By the request, for the event may be buffered and have no id yet.
[[nodiscard]] temporal::api::common::v1::Link link_to_signal(const std::string& namespace_name,
                                                             const std::string& workflow_id,
                                                             const std::string& run_id,
                                                             const std::string& request_id);

}  // namespace holdfast::server::frontend

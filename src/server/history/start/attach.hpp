// What a start leaves at the run that it uses instead of starting one.
#pragma once

#include <optional>
#include <string>

#include "history/refusal.hpp"
#include "history/transition.hpp"
#include <temporal/api/common/v1/message.pb.h>

namespace temporal::api::workflowservice::v1 {
class StartWorkflowExecutionRequest;
}

namespace holdfast::server::history {

struct Attachment {
    std::string request_id;  // Empty: the run does not keep it.
    google::protobuf::RepeatedPtrField<temporal::api::common::v1::Callback> callbacks;
    google::protobuf::RepeatedPtrField<temporal::api::common::v1::Link> links;
};

// Nothing if the request's on-conflict options attach nothing. Refused if callbacks come without
// the request id, which is made for a request that has none.
[[nodiscard]] Or<std::optional<Attachment>> attachment_of(
    const temporal::api::workflowservice::v1::StartWorkflowExecutionRequest& request,
    const std::string& request_id);

// Event 55, which the workflow does not see: no workflow task follows. A request id that the run
// has already changes nothing.
[[nodiscard]] std::optional<Refusal> attach_to_run(Transition& transition,
                                                   const Attachment& attachment);

}  // namespace holdfast::server::history

// What a description of a run says.
#pragma once

#include <server/history/state.pb.h>

namespace temporal::api::workflowservice::v1 {
class DescribeWorkflowExecutionResponse;
}

namespace holdfast::server::frontend {

void fill_description(const history::state::Run& run,
                      temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse& reply);

}  // namespace holdfast::server::frontend

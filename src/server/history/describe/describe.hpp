// What DescribeWorkflowExecution tells of a run.
#pragma once

#include <server/history/state.pb.h>

namespace temporal::api::workflowservice::v1 {
class DescribeWorkflowExecutionResponse;
}

namespace holdfast::server::history {

// What the state knows. Events in the buffer do not count. A closed run still shows what was
// pending when it closed.
void describe(const state::Run& run,
              temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse& response);

}  // namespace holdfast::server::history

// The RPCs of workflows, activities and workers, added to the table of methods.
#pragma once

#include "frontend/parts.hpp"
#include "rpc/dispatch.hpp"

namespace holdfast::server::frontend {

// Requires: what `parts` names outlives the table. Added before the first call.
void add_workflow_service(rpc::Dispatch& dispatch, const FrontendParts& parts);

// Every other method of WorkflowService and OperatorService answers UNIMPLEMENTED, with a text that
// says so. The last to be added.
void add_unbuilt(rpc::Dispatch& dispatch);

// One group each.
void add_starts(rpc::Dispatch& dispatch, const Parts& parts);
void add_workflow_calls(rpc::Dispatch& dispatch, const Parts& parts);
void add_workflow_options(rpc::Dispatch& dispatch, const Parts& parts);
void add_workflow_reset(rpc::Dispatch& dispatch, const Parts& parts);
void add_workflow_reads(rpc::Dispatch& dispatch, const Parts& parts);
void add_history_reads(rpc::Dispatch& dispatch, const Parts& parts);
void add_polls(rpc::Dispatch& dispatch, const Parts& parts);
void add_workflow_tasks(rpc::Dispatch& dispatch, const Parts& parts);
void add_updates(rpc::Dispatch& dispatch, const Parts& parts);
void add_multi_operations(rpc::Dispatch& dispatch, const Parts& parts);
void add_activities(rpc::Dispatch& dispatch, const Parts& parts);
void add_activities_by_id(rpc::Dispatch& dispatch, const Parts& parts);
void add_activity_control(rpc::Dispatch& dispatch, const Parts& parts);
void add_task_queues(rpc::Dispatch& dispatch, const Parts& parts);
void add_queries(rpc::Dispatch& dispatch, const Parts& parts);
void add_worker_registry(rpc::Dispatch& dispatch, const Parts& parts);

}  // namespace holdfast::server::frontend

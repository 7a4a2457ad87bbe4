#include "frontend/frontend.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/empty.pb.h>

#include <holdfast/api/services.hpp>

namespace holdfast::server::frontend {

void add_workflow_service(rpc::Dispatch& dispatch, const FrontendParts& parts) {
    const auto shared = std::make_shared<const FrontendParts>(parts);
    add_starts(dispatch, shared);
    add_workflow_calls(dispatch, shared);
    add_workflow_options(dispatch, shared);
    add_workflow_reset(dispatch, shared);
    add_workflow_reads(dispatch, shared);
    add_history_reads(dispatch, shared);
    add_polls(dispatch, shared);
    add_workflow_tasks(dispatch, shared);
    add_updates(dispatch, shared);
    add_multi_operations(dispatch, shared);
    add_activities(dispatch, shared);
    add_activities_by_id(dispatch, shared);
    add_activity_control(dispatch, shared);
    add_task_queues(dispatch, shared);
    add_queries(dispatch, shared);
    add_worker_registry(dispatch, shared);
}

void add_unbuilt(rpc::Dispatch& dispatch) {
    using google::protobuf::Empty;
    const std::vector<std::string> methods = dispatch.methods();
    const std::set<std::string> added(methods.begin(), methods.end());
    for (const auto* service : holdfast::api::services()) {
        if (service->name() != "WorkflowService" && service->name() != "OperatorService") {
            continue;
        }
        for (int i = 0; i < service->method_count(); ++i) {
            const std::string name = service->method(i)->name();
            const std::string method = fmt::format("/{}/{}", service->full_name(), name);
            if (added.contains(method)) {
                continue;
            }
            // Any request decodes as a message without fields.
            dispatch.add<Empty, Empty>(method, [name](const Empty&, rpc::Reply<Empty> reply) {
                std::move(reply).refuse({rpc::StatusCode::unimplemented,
                                         fmt::format("{} is not built in this server yet", name)});
            });
        }
    }
}

}  // namespace holdfast::server::frontend

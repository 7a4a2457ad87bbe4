// Update-with-start: two requests that take effect together.
#include <array>
#include <memory>
#include <utility>

#include "frontend/frontend.hpp"
#include "frontend/run_link.hpp"
#include "frontend/start_request.hpp"
#include "frontend/update/await_update.hpp"
#include "frontend/update/update_request.hpp"
#include <temporal/api/errordetails/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;
namespace details = temporal::api::errordetails::v1;

using history::UpdateStage;
using BothCall = api::ExecuteMultiOperationRequest;
using BothResponse = api::ExecuteMultiOperationResponse;
using BothReply = rpc::Reply<BothResponse>;

// What is wrong with each of the two; a request that has no problem is aborted for the other's.
using Problems = std::array<Problem, 2>;

void fill_status(const Problem& problem,
                 details::MultiOperationExecutionFailure::OperationStatus& status) {
    if (!problem) {
        status.set_code(static_cast<int>(rpc::StatusCode::aborted));
        status.set_message("Operation was aborted.");
        status.add_details()->PackFrom(
            temporal::api::failure::v1::MultiOperationExecutionAborted());
        return;
    }
    status.set_code(static_cast<int>(problem->code));
    status.set_message(problem->message);
    if (!problem->detail_type.empty()) {
        auto& detail = *status.add_details();
        detail.set_type_url("type.googleapis.com/" + problem->detail_type);
        detail.set_value(problem->detail);
    }
}

// Requires: one of them has a problem.
rpc::Refusal both_failed(const Problems& problems) {
    details::MultiOperationExecutionFailure failure;
    for (const Problem& problem : problems) {
        fill_status(problem, *failure.add_statuses());
    }
    const rpc::StatusCode code = problems[0] ? problems[0]->code : problems[1]->code;
    return {code, "Update-with-Start could not be executed.", failure};
}

Problem first_problem(const FrontendParts& parts, const BothCall& both, const StartCall& start) {
    if (start.namespace_() != both.namespace_()) {
        return invalid("Operation namespace did not match request's namespace.");
    }
    if (!start.cron_schedule().empty()) {
        return invalid("CronSchedule is not allowed.");
    }
    if (start.request_eager_execution()) {
        return invalid("RequestEagerExecution is not supported.");
    }
    if (start.has_workflow_start_delay()) {
        return invalid("WorkflowStartDelay is not supported.");
    }
    return start_problem(parts, start);
}

Problem second_problem(const FrontendParts& parts,
                       const BothCall& both,
                       const UpdateRequestCall& update) {
    if (update.namespace_() != both.namespace_()) {
        return invalid("Operation namespace did not match request's namespace.");
    }
    if (!update.workflow_execution().run_id().empty()) {
        return invalid("RunId is not allowed.");
    }
    if (!update.first_execution_run_id().empty()) {
        return invalid("FirstExecutionRunId is not allowed.");
    }
    if (auto problem = update_problem(parts, update)) {
        return problem;
    }
    if (update.workflow_execution().workflow_id() !=
        both.operations(0).start_workflow().workflow_id()) {
        return invalid("WorkflowId is not consistent with previous operation(s).");
    }
    return std::nullopt;
}

// One call, from turn to turn.
struct Both {
    Parts parts;
    ResolvedNamespace in;
    engine::WorkflowKey workflow;
    const StartCall* start = nullptr;  // They live as long as the reply.
    const UpdateRequestCall* request = nullptr;
    temporal::api::update::v1::Request update;
    Steady until{};
    bool again = false;  // The run closed once under the update, or it was lost.
};

// The run that the update goes to.
struct UpdateTarget {
    std::string run_id;
    bool started_now = false;  // By this call.
    temporal::api::enums::v1::WorkflowExecutionStatus status{};
};

void run_both(const std::shared_ptr<const Both>& both, engine::Turn& turn, BothReply& reply);

void run_again(const Both& closed, BothReply reply) {
    auto both = std::make_shared<Both>(closed);
    both->again = true;
    closed.parts->turns.answer(
        closed.workflow, std::move(reply), [both](engine::Turn& turn, BothReply& kept) {
            run_both(both, turn, kept);
        });
}

void refuse_update(const Both& both,
                   const UpdateTarget& target,
                   const history::Refusal& refusal,
                   BothReply reply) {
    const bool closed =
        refusal.kind == history::Refused::not_found || refusal.kind == history::Refused::busy;
    const bool lost = refusal.kind == history::Refused::unavailable;
    if (!both.again && (lost || (closed && !target.started_now))) {
        run_again(both, std::move(reply));
        return;
    }
    rpc::Refusal problem = wire_refusal(refusal);
    if (closed && !target.started_now) {  // A later call may find another run.
        problem = {rpc::StatusCode::aborted, "workflow update was aborted by closing workflow"};
    }
    std::move(reply).refuse(both_failed({std::nullopt, std::move(problem)}));
}

void answer_both(const Both& both,
                 const UpdateTarget& target,
                 engine::UpdateNews news,
                 BothReply reply) {
    if (news.stage == UpdateStage::unknown && !news.refusal) {
        news.refusal = history::update_lost();
    }
    if (news.refusal) {
        refuse_update(both, target, *news.refusal, std::move(reply));
        return;
    }
    const std::string& workflow_id = both.workflow.workflow_id;
    auto& started = *reply.message().add_responses()->mutable_start_workflow();
    started.set_run_id(target.run_id);
    started.set_started(target.started_now);
    if (target.started_now) {
        started.set_first_execution_run_id(target.run_id);
    }
    started.set_status(target.status);
    *started.mutable_link() = link_to_start(both.in.name, workflow_id, target.run_id);
    fill_update({.namespace_name = both.in.name,
                 .workflow_id = workflow_id,
                 .run_id = target.run_id,
                 .update_id = both.update.meta().update_id(),
                 .request_id = both.update.request_id()},
                std::move(news),
                *reply.message().add_responses()->mutable_update_workflow());
    std::move(reply).send();
}

// The current run, if it knows the update already, whatever the policies say; and the id of any.
struct Existing {
    std::string run_id;
    std::optional<UpdateTarget> knows;
};

Existing existing_run(const Both& both, engine::Turn& turn) {
    const auto found = turn.find("");
    const auto* run = std::get_if<const history::state::Run*>(&found);
    if (run == nullptr) {
        return {};
    }
    const UpdateTarget target{.run_id = (*run)->run_id(), .status = (*run)->status()};
    const auto news = turn.update(target.run_id, both.update.meta().update_id());
    const bool known = news.stage != UpdateStage::unknown;
    return {.run_id = target.run_id, .knows = known ? std::optional(target) : std::nullopt};
}

std::variant<UpdateTarget, rpc::Refusal> start_with_update(const Both& both,
                                                           const std::string& existing,
                                                           engine::Turn& turn) {
    auto asked = start_request(Scene{*both.parts, both.in}, *both.start);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&asked)) {
        return both_failed({*refusal, std::nullopt});
    }
    auto& whole = std::get<engine::StartRequest>(asked);
    whole.update = both.update;
    const auto outcome = turn.start(std::move(whole));
    if (const auto* running = std::get_if<engine::AlreadyStarted>(&outcome)) {
        return both_failed({wire_refusal(*running), std::nullopt});
    }
    if (const auto* refusal = std::get_if<history::Refusal>(&outcome)) {
        return both_failed({std::nullopt, wire_refusal(*refusal)});
    }
    const auto& answer = std::get<engine::StartAnswer>(outcome);
    return UpdateTarget{
        .run_id = answer.run_id, .started_now = answer.run_id != existing, .status = answer.status};
}

void run_both(const std::shared_ptr<const Both>& both, engine::Turn& turn, BothReply& reply) {
    const Existing existing = existing_run(*both, turn);
    UpdateTarget target;
    if (existing.knows) {
        target = *existing.knows;
    } else {
        auto started = start_with_update(*both, existing.run_id, turn);
        if (auto* refusal = std::get_if<rpc::Refusal>(&started)) {
            std::move(reply).refuse(std::move(*refusal));
            return;
        }
        target = std::get<UpdateTarget>(std::move(started));
    }
    await_update<BothResponse>(
        {.parts = both->parts,
         .workflow = both->workflow,
         .run_id = target.run_id,
         .update_id = both->update.meta().update_id(),
         .stage = awaited_stage(both->request->wait_policy(), UpdateStage::completed),
         .until = both->until,
         .answer =
             [both, target](engine::UpdateNews news, BothReply kept) {
                 answer_both(*both, target, std::move(news), std::move(kept));
             }},
        turn,
        reply);
}

void execute_both(const Parts& parts, const BothCall& call, BothReply reply) {
    auto in = parts->namespaces.resolve(call.namespace_(), NamespaceUse::start);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        std::move(reply).refuse(*refusal);
        return;
    }
    if (call.operations_size() != 2 || !call.operations(0).has_start_workflow() ||
        !call.operations(1).has_update_workflow()) {
        std::move(reply).refuse(invalid("Operations have to be exactly [Start, Update]."));
        return;
    }
    const StartCall& start = call.operations(0).start_workflow();
    const UpdateRequestCall& update = call.operations(1).update_workflow();
    const Problems problems{first_problem(*parts, call, start),
                            second_problem(*parts, call, update)};
    if (problems[0] || problems[1]) {
        std::move(reply).refuse(both_failed(problems));
        return;
    }
    auto& found = std::get<ResolvedNamespace>(in);
    const engine::WorkflowKey workflow{.namespace_id = found.id,
                                       .workflow_id = start.workflow_id()};
    const auto both = std::make_shared<const Both>(Both{.parts = parts,
                                                        .in = std::move(found),
                                                        .workflow = workflow,
                                                        .start = &start,
                                                        .request = &update,
                                                        .update = asked_update(*parts, update),
                                                        .until = end_of_update_wait(*parts)});
    parts->turns.answer(workflow, std::move(reply), [both](engine::Turn& turn, BothReply& kept) {
        run_both(both, turn, kept);
    });
}

}  // namespace

void add_multi_operations(rpc::Dispatch& dispatch, const Parts& parts) {
    dispatch.add<BothCall, BothResponse>(workflow_service("ExecuteMultiOperation"),
                                         [parts](const BothCall& request, BothReply reply) {
                                             execute_both(parts, request, std::move(reply));
                                         });
}

}  // namespace holdfast::server::frontend

#include <memory>
#include <utility>

#include "frontend/frontend.hpp"
#include "frontend/update/await_update.hpp"
#include "frontend/update/update_request.hpp"
#include <fmt/format.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;

using history::UpdateStage;
using UpdateReply = rpc::Reply<UpdateResponse>;
using PollUpdateCall = api::PollWorkflowExecutionUpdateRequest;
using PollUpdateResponse = api::PollWorkflowExecutionUpdateResponse;
using PollUpdateReply = rpc::Reply<PollUpdateResponse>;

// One call, from turn to turn.
struct Asking {
    Parts parts;
    ResolvedNamespace in;
    engine::WorkflowKey workflow;
    const UpdateRequestCall* request = nullptr;  // Lives as long as the reply.
    temporal::api::update::v1::Request update;
    Steady until{};
    bool again = false;  // It was lost once with what was in memory.
};

void ask(const std::shared_ptr<const Asking>& asking, engine::Turn& turn, UpdateReply& reply);

void ask_again(const Asking& lost, UpdateReply reply) {
    auto asking = std::make_shared<Asking>(lost);
    asking->again = true;
    lost.parts->turns.answer(
        lost.workflow, std::move(reply), [asking](engine::Turn& turn, UpdateReply& kept) {
            ask(asking, turn, kept);
        });
}

void answer_update(const Asking& asking,
                   const std::string& run_id,
                   engine::UpdateNews news,
                   UpdateReply reply) {
    if (news.stage == UpdateStage::unknown && !news.refusal) {
        news.refusal = history::update_lost();
    }
    if (!news.refusal) {
        fill_update({.namespace_name = asking.in.name,
                     .workflow_id = asking.workflow.workflow_id,
                     .run_id = run_id,
                     .update_id = asking.update.meta().update_id(),
                     .request_id = asking.update.request_id()},
                    std::move(news),
                    reply.message());
        std::move(reply).send();
    } else if (news.refusal->kind == history::Refused::unavailable && !asking.again) {
        ask_again(asking, std::move(reply));
    } else {
        std::move(reply).refuse(wire_refusal(*news.refusal));
    }
}

// Which run is meant, and that it is of the chain that the caller means.
std::variant<std::string, history::Refusal> run_meant(const UpdateRequestCall& request,
                                                      engine::Turn& turn) {
    const auto found = turn.find(request.workflow_execution().run_id());
    if (const auto* refusal = std::get_if<history::Refusal>(&found)) {
        return *refusal;
    }
    const history::state::Run& run = *std::get<const history::state::Run*>(found);
    const std::string& chain = request.first_execution_run_id();
    if (!chain.empty() && run.started().first_execution_run_id() != chain) {
        return history::Refusal{history::Refused::not_found, "workflow execution not found"};
    }
    return run.run_id();
}

void ask(const std::shared_ptr<const Asking>& asking, engine::Turn& turn, UpdateReply& reply) {
    auto meant = run_meant(*asking->request, turn);
    if (const auto* refusal = std::get_if<history::Refusal>(&meant)) {
        std::move(reply).refuse(wire_refusal(*refusal));
        return;
    }
    const std::string run_id = std::get<std::string>(std::move(meant));
    const auto refusal = turn.change(run_id, [&](history::Transition& transition) {
        return history::ask_update(transition, asking->update);
    });
    if (refusal) {
        std::move(reply).refuse(wire_refusal(*refusal));
        return;
    }
    await_update<UpdateResponse>(
        {.parts = asking->parts,
         .workflow = asking->workflow,
         .run_id = run_id,
         .update_id = asking->update.meta().update_id(),
         .stage = awaited_stage(asking->request->wait_policy(), UpdateStage::completed),
         .until = asking->until,
         .answer =
             [asking, run_id](engine::UpdateNews news, UpdateReply kept) {
                 answer_update(*asking, run_id, std::move(news), std::move(kept));
             }},
        turn,
        reply);
}

void update_workflow(const Parts& parts, const UpdateRequestCall& request, UpdateReply reply) {
    auto in = parts->namespaces.resolve(request.namespace_(), NamespaceUse::ordinary);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        std::move(reply).refuse(*refusal);
        return;
    }
    if (auto problem = update_problem(*parts, request)) {
        std::move(reply).refuse(*std::move(problem));
        return;
    }
    auto& found = std::get<ResolvedNamespace>(in);
    const engine::WorkflowKey workflow{.namespace_id = found.id,
                                       .workflow_id = request.workflow_execution().workflow_id()};
    const auto asking =
        std::make_shared<const Asking>(Asking{.parts = parts,
                                              .in = std::move(found),
                                              .workflow = workflow,
                                              .request = &request,
                                              .update = asked_update(*parts, request),
                                              .until = end_of_update_wait(*parts)});
    parts->turns.answer(
        workflow, std::move(reply), [asking](engine::Turn& turn, UpdateReply& kept) {
            ask(asking, turn, kept);
        });
}

void answer_poll(const UpdatePlace& place, engine::UpdateNews news, PollUpdateReply reply) {
    if (news.refusal) {
        std::move(reply).refuse(wire_refusal(*news.refusal));
        return;
    }
    PollUpdateResponse& response = reply.message();
    fill_reference(place, *response.mutable_update_ref());
    response.set_stage(wire_stage(news.stage));
    if (news.outcome) {
        *response.mutable_outcome() = *std::move(news.outcome);
    }
    std::move(reply).send();
}

void poll_in_turn(const Parts& parts,
                  const engine::WorkflowKey& workflow,
                  const PollUpdateCall& request,
                  engine::Turn& turn,
                  PollUpdateReply& reply) {
    const std::string& update_id = request.update_ref().update_id();
    const auto found = turn.find(request.update_ref().workflow_execution().run_id());
    if (const auto* refusal = std::get_if<history::Refusal>(&found)) {
        std::move(reply).refuse(wire_refusal(*refusal));
        return;
    }
    const std::string run_id = std::get<const history::state::Run*>(found)->run_id();
    if (turn.update(run_id, update_id).stage == UpdateStage::unknown) {
        std::move(reply).refuse(wire_refusal(history::Refusal{
            history::Refused::not_found, fmt::format("update \"{}\" not found", update_id)}));
        return;
    }
    await_update<PollUpdateResponse>(
        {.parts = parts,
         .workflow = workflow,
         .run_id = run_id,
         .update_id = update_id,
         .stage = awaited_stage(request.wait_policy(), UpdateStage::unknown),
         .until = end_of_update_wait(*parts),
         .answer =
             [place = UpdatePlace{.namespace_name = "",
                                  .workflow_id = workflow.workflow_id,
                                  .run_id = run_id,
                                  .update_id = update_id,
                                  .request_id = ""}](engine::UpdateNews news,
                                                     PollUpdateReply kept) {
                 answer_poll(place, std::move(news), std::move(kept));
             }},
        turn,
        reply);
}

Problem poll_update_problem(const FrontendParts& parts, const PollUpdateCall& request) {
    if (!request.has_update_ref()) {
        return invalid("UpdateRef is not set on request.");
    }
    const auto& reference = request.update_ref();
    const auto* execution =
        reference.has_workflow_execution() ? &reference.workflow_execution() : nullptr;
    if (auto problem = execution_problem(execution, parts.limits)) {
        return problem;
    }
    if (auto problem = length_problem("UpdateId", reference.update_id(), parts.limits)) {
        return problem;
    }
    return stage_problem(request.wait_policy());
}

void poll_update(const Parts& parts, const PollUpdateCall& request, PollUpdateReply reply) {
    const auto in = parts->namespaces.resolve(request.namespace_(), NamespaceUse::ordinary);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        std::move(reply).refuse(*refusal);
        return;
    }
    if (auto problem = poll_update_problem(*parts, request)) {
        std::move(reply).refuse(*std::move(problem));
        return;
    }
    const engine::WorkflowKey workflow{
        .namespace_id = std::get<ResolvedNamespace>(in).id,
        .workflow_id = request.update_ref().workflow_execution().workflow_id()};
    parts->turns.answer(workflow,
                        std::move(reply),
                        [parts, workflow, &request](engine::Turn& turn, PollUpdateReply& kept) {
                            poll_in_turn(parts, workflow, request, turn, kept);
                        });
}

}  // namespace

void add_updates(rpc::Dispatch& dispatch, const Parts& parts) {
    dispatch.add<UpdateRequestCall, UpdateResponse>(
        workflow_service("UpdateWorkflowExecution"),
        [parts](const UpdateRequestCall& request, UpdateReply reply) {
            update_workflow(parts, request, std::move(reply));
        });
    dispatch.add<PollUpdateCall, PollUpdateResponse>(
        workflow_service("PollWorkflowExecutionUpdate"),
        [parts](const PollUpdateCall& request, PollUpdateReply reply) {
            poll_update(parts, request, std::move(reply));
        });
}

}  // namespace holdfast::server::frontend

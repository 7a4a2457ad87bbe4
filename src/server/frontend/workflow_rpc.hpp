// The frame of a call about one workflow: checked on the thread of the transport, answered in a
// turn of the workflow.
#pragma once

#include <string_view>
#include <utility>
#include <variant>

#include "frontend/parts.hpp"
#include "frontend/tokens.hpp"
#include "rpc/dispatch.hpp"

namespace holdfast::server::frontend {

// Where a call came to.
struct Scene {
    const FrontendParts& parts;
    const ResolvedNamespace& in;
};

template <class Response>
void finish(rpc::Reply<Response> reply, Problem problem) {
    if (problem) {
        std::move(reply).refuse(*std::move(problem));
    } else {
        std::move(reply).send();
    }
}

// Adds a method whose request names a workflow.
//
// `check(parts, request)` gives the workflow id, or what is wrong with the request; it does not
// block. `act(scene, turn, request, response)` fills the response, or says why not.
template <class Request, class Response, class Check, class Act>
void add_workflow_rpc(rpc::Dispatch& dispatch,
                      const Parts& parts,
                      std::string_view method,
                      NamespaceUse use,
                      Check check,
                      Act act) {
    dispatch.add<Request, Response>(
        workflow_service(method),
        [parts, use, check, act](const Request& request, rpc::Reply<Response> reply) {
            NamespaceAnswer in = parts->namespaces.resolve(request.namespace_(), use);
            if (auto* refusal = std::get_if<rpc::Refusal>(&in)) {
                std::move(reply).refuse(std::move(*refusal));
                return;
            }
            std::variant<std::string, rpc::Refusal> workflow = check(*parts, request);
            if (auto* refusal = std::get_if<rpc::Refusal>(&workflow)) {
                std::move(reply).refuse(std::move(*refusal));
                return;
            }
            auto& found = std::get<ResolvedNamespace>(in);
            const engine::WorkflowKey key{found.id, std::get<std::string>(std::move(workflow))};
            parts->turns.answer(
                key,
                std::move(reply),
                [parts, found = std::move(found), act, &request](engine::Turn& turn, auto& kept) {
                    Problem problem = act(Scene{*parts, found}, turn, request, kept.message());
                    finish(std::move(kept), std::move(problem));
                });
        });
}

// The namespace of a call that brings a token: the one it names, or that of the token.
template <class Token>
[[nodiscard]] NamespaceAnswer namespace_of_token(NamespaceGate& gate,
                                                 const std::string& name,
                                                 const Token& token) {
    if (name.empty()) {
        return gate.by_id(token.namespace_id(), NamespaceUse::ordinary);
    }
    NamespaceAnswer in = gate.resolve(name, NamespaceUse::ordinary);
    const auto* found = std::get_if<ResolvedNamespace>(&in);
    if (found != nullptr && found->id != token.namespace_id()) {
        return invalid("Operation requested with a token from a different namespace.");
    }
    return in;
}

// Adds a method whose request brings the token of a task.
//
// `check(parts, request)` says what is wrong with the rest of the request.
// `act(scene, turn, token, request, response)` as above.
template <class Token, class Request, class Response, class Check, class Act>
void add_task_rpc(
    rpc::Dispatch& dispatch, const Parts& parts, std::string_view method, Check check, Act act) {
    dispatch.add<Request, Response>(
        workflow_service(method),
        [parts, check, act](const Request& request, rpc::Reply<Response> reply) {
            auto decoded = task_token<Token>(request.task_token());
            if (auto* refusal = std::get_if<rpc::Refusal>(&decoded)) {
                std::move(reply).refuse(std::move(*refusal));
                return;
            }
            auto& token = std::get<Token>(decoded);
            NamespaceAnswer in = namespace_of_token(parts->namespaces, request.namespace_(), token);
            if (auto* refusal = std::get_if<rpc::Refusal>(&in)) {
                std::move(reply).refuse(std::move(*refusal));
                return;
            }
            if (Problem problem = check(*parts, request)) {
                std::move(reply).refuse(*std::move(problem));
                return;
            }
            const engine::WorkflowKey key{token.namespace_id(), token.workflow_id()};
            parts->turns.answer(key,
                                std::move(reply),
                                [parts,
                                 found = std::get<ResolvedNamespace>(std::move(in)),
                                 token = std::move(token),
                                 act,
                                 &request](engine::Turn& turn, auto& kept) {
                                    Problem problem = act(
                                        Scene{*parts, found}, turn, token, request, kept.message());
                                    finish(std::move(kept), std::move(problem));
                                });
        });
}

}  // namespace holdfast::server::frontend

// Namespaces in the commands of a completion.
#pragma once

#include <optional>

#include "frontend/namespace_gate.hpp"
#include "frontend/validate.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

using Completed = temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest;

// Why a command cannot act in the namespace that it names: there is none, or it is not the one of
// the workflow. Neither fails the workflow task.
[[nodiscard]] Problem command_namespace_problem(NamespaceGate& gate,
                                                const ResolvedNamespace& in,
                                                const Completed& request);

// The request with the namespace of the workflow in starts of children that name none; nothing if
// all of them do.
[[nodiscard]] std::optional<Completed> with_namespaces(const ResolvedNamespace& in,
                                                       const Completed& request);

}  // namespace holdfast::server::frontend

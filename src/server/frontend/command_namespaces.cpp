#include "frontend/command_namespaces.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holdfast::server::frontend {

namespace {

using temporal::api::command::v1::Command;

// Empty: the namespace of the workflow.
const std::string& named_namespace(const Command& command) {
    static const std::string none;
    if (command.has_start_child_workflow_execution_command_attributes()) {
        return command.start_child_workflow_execution_command_attributes().namespace_();
    }
    if (command.has_signal_external_workflow_execution_command_attributes()) {
        return command.signal_external_workflow_execution_command_attributes().namespace_();
    }
    return command.has_request_cancel_external_workflow_execution_command_attributes()
               ? command.request_cancel_external_workflow_execution_command_attributes()
                     .namespace_()
               : none;
}

bool starts_child_in_no_namespace(const Command& command) {
    return command.has_start_child_workflow_execution_command_attributes() &&
           named_namespace(command).empty();
}

}  // namespace

Problem command_namespace_problem(NamespaceGate& gate,
                                  const ResolvedNamespace& in,
                                  const Completed& request) {
    for (const Command& command : request.commands()) {
        const std::string& name = named_namespace(command);
        if (name.empty() || name == in.name) {
            continue;
        }
        const NamespaceAnswer other = gate.resolve(name, NamespaceUse::ordinary);
        if (const auto* refusal = std::get_if<rpc::Refusal>(&other)) {
            return *refusal;
        }
        return invalid(fmt::format(
            "unable to process cross namespace command between {} and {}", in.name, name));
    }
    return std::nullopt;
}

std::optional<Completed> with_namespaces(const ResolvedNamespace& in, const Completed& request) {
    if (std::ranges::none_of(request.commands(), starts_child_in_no_namespace)) {
        return std::nullopt;
    }
    Completed whole = request;
    for (Command& command : *whole.mutable_commands()) {
        if (starts_child_in_no_namespace(command)) {
            command.mutable_start_child_workflow_execution_command_attributes()->set_namespace_(
                in.name);
        }
    }
    return whole;
}

}  // namespace holdfast::server::frontend

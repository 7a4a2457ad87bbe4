// The options of a workflow that a request changes, by its mask.
#pragma once

#include <variant>

#include "history/start/options.hpp"
#include "rpc/refusal.hpp"
#include <google/protobuf/field_mask.pb.h>
#include <temporal/api/workflow/v1/message.pb.h>

namespace holdfast::server::frontend {

// Refused if the mask names what there is not, or what is not built.
[[nodiscard]] std::variant<history::OptionsChange, rpc::Refusal> options_change(
    const temporal::api::workflow::v1::WorkflowExecutionOptions& options,
    const google::protobuf::FieldMask& mask);

}  // namespace holdfast::server::frontend

// Tokens that clients hand back: of tasks, and of pages of history.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "rpc/refusal.hpp"
#include <server/engine/token.pb.h>

namespace holdfast::server::frontend {

// The token of one kind of task: engine::token::WorkflowTask, Activity or Query. Refused if it is
// empty, damaged, or of another kind.
template <class Kind>
[[nodiscard]] std::variant<Kind, rpc::Refusal> task_token(const std::string& bytes);

template <>
std::variant<engine::token::WorkflowTask, rpc::Refusal> task_token(const std::string& bytes);
template <>
std::variant<engine::token::Activity, rpc::Refusal> task_token(const std::string& bytes);
template <>
std::variant<engine::token::Query, rpc::Refusal> task_token(const std::string& bytes);

// Nothing for bytes that are not a page's token.
[[nodiscard]] std::optional<engine::token::HistoryPage> page_token(const std::string& bytes);

}  // namespace holdfast::server::frontend

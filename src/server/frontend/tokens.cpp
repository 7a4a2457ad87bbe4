#include "frontend/tokens.hpp"

#include "frontend/validate.hpp"

#include <holdfast/base/uuid.hpp>

namespace holdfast::server::frontend {

namespace {

std::variant<engine::token::Task, rpc::Refusal> decoded_task(const std::string& bytes) {
    if (bytes.empty()) {
        return invalid("Task token not set on request.");
    }
    engine::token::Task task;
    if (!task.ParseFromString(bytes)) {
        return invalid("Error deserializing task token.");
    }
    return task;
}

// What every token of a run has. Bytes that parse by chance do not have it.
template <class Token>
bool names_a_run(const Token& token) {
    return Uuid::parse(token.namespace_id()) && !token.workflow_id().empty() &&
           Uuid::parse(token.run_id()) && token.scheduled_event_id() > 0 && token.attempt() > 0;
}

}  // namespace

template <>
std::variant<engine::token::WorkflowTask, rpc::Refusal> task_token(const std::string& bytes) {
    auto task = decoded_task(bytes);
    if (auto* refusal = std::get_if<rpc::Refusal>(&task)) {
        return *std::move(refusal);
    }
    const auto& token = std::get<engine::token::Task>(task).workflow_task();
    if (!names_a_run(token)) {
        return invalid("Error deserializing task token.");
    }
    return token;
}

template <>
std::variant<engine::token::Activity, rpc::Refusal> task_token(const std::string& bytes) {
    auto task = decoded_task(bytes);
    if (auto* refusal = std::get_if<rpc::Refusal>(&task)) {
        return *std::move(refusal);
    }
    const auto& token = std::get<engine::token::Task>(task).activity();
    if (!names_a_run(token)) {
        return invalid("Error deserializing task token.");
    }
    return token;
}

template <>
std::variant<engine::token::Query, rpc::Refusal> task_token(const std::string& bytes) {
    auto task = decoded_task(bytes);
    if (auto* refusal = std::get_if<rpc::Refusal>(&task)) {
        return *std::move(refusal);
    }
    const auto& whole = std::get<engine::token::Task>(task);
    if (!whole.has_query()) {
        return invalid("Error deserializing task token.");
    }
    if (whole.query().queue().empty() || whole.query().id().empty()) {
        return invalid("Invalid TaskToken.");
    }
    return whole.query();
}

std::optional<engine::token::HistoryPage> page_token(const std::string& bytes) {
    engine::token::HistoryPage page;
    if (!page.ParseFromString(bytes) || !Uuid::parse(page.run_id()) || page.next_event_id() < 1) {
        return std::nullopt;
    }
    return page;
}

}  // namespace holdfast::server::frontend

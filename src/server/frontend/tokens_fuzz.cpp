// Any bytes are the token of a task or a page, or are refused; and a token that is taken has what
// its readers rely on.
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "frontend/tokens.hpp"

#include <holdfast/base/assert.hpp>
#include <holdfast/base/uuid.hpp>

namespace {

using namespace holdfast;
using namespace holdfast::server;

template <class Kind>
void expect_a_run(const std::string& bytes) {
    const auto read = frontend::task_token<Kind>(bytes);
    if (const auto* const token = std::get_if<Kind>(&read)) {
        HOLDFAST_ASSERT(Uuid::parse(token->run_id()).has_value());
        HOLDFAST_ASSERT(!token->workflow_id().empty());
        HOLDFAST_ASSERT(token->scheduled_event_id() > 0);
    } else {
        HOLDFAST_ASSERT(!std::get<rpc::Refusal>(read).message.empty());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    expect_a_run<engine::token::WorkflowTask>(bytes);
    expect_a_run<engine::token::Activity>(bytes);
    static_cast<void>(frontend::task_token<engine::token::Query>(bytes));
    if (const auto page = frontend::page_token(bytes)) {
        HOLDFAST_ASSERT(page->next_event_id() > 0);
    }
    return 0;
}

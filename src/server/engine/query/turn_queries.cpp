// What a turn does with queries. Nothing of it is committed.
#include <utility>

#include "engine/store_turn.hpp"
#include "history/query/query.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::engine {

namespace {

constexpr int batches_of_a_query = 256;

}  // namespace

std::optional<Refusal> StoreTurn::buffer_query(const std::string& run_id,
                                               std::shared_ptr<BufferedQuery> query) {
    const Or<CachedRun*> loaded = load(run_id);
    if (const auto* refusal = std::get_if<Refusal>(&loaded)) {
        return *refusal;
    }
    CachedRun& cached = *std::get<CachedRun*>(loaded);
    HOLDFAST_ASSERT(history::buffers_queries(cached.run));
    if (!cached.queries.add(source_.uuid(), std::move(query))) {
        return Refusal{history::Refused::busy,
                       "query buffer is full, cannot accept new consistent queries"};
    }
    return std::nullopt;
}

void StoreTurn::bring_query_results(const QueryResults& results) {
    query_results_ = &results;
}

// Before the next workflow task is delivered: what is answered does not ride with it.
void StoreTurn::tell_query_results(CachedRun& cached) {
    if (const QueryResults* results = std::exchange(query_results_, nullptr)) {
        cached.queries.answer(*results);
    }
}

// At the end of a turn.
void StoreTurn::settle_queries() {
    for (auto& [id, cached] : workflow_->runs) {
        cached.queries.sweep();
        if (!history::buffers_queries(cached.run)) {
            cached.queries.release();
        }
    }
}

std::optional<Refusal> StoreTurn::query_task_of(
    const std::string& run_id,
    const std::string& queue,
    temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) {
    const Or<CachedRun*> loaded = load(run_id);
    if (const auto* refusal = std::get_if<Refusal>(&loaded)) {
        return *refusal;
    }
    CachedRun& cached = *std::get<CachedRun*>(loaded);
    const history::state::Run& run = cached.run;
    const std::string& normal = run.started().task_queue().name();
    task.mutable_workflow_execution()->set_workflow_id(run.workflow_id());
    task.mutable_workflow_execution()->set_run_id(run.run_id());
    *task.mutable_workflow_type() = run.started().workflow_type();
    task.set_previous_started_event_id(run.last_completed_started_event_id());
    task.set_attempt(1);
    task.mutable_workflow_execution_task_queue()->set_name(normal);
    task.mutable_workflow_execution_task_queue()->set_kind(
        temporal::api::enums::v1::TASK_QUEUE_KIND_NORMAL);
    task.mutable_history();
    if (queue == normal) {
        HistoryPage page = read_run(cached, 1, batches_of_a_query);
        task.mutable_history()->Swap(&page.history);
        if (page.next_event_id != 0) {
            task.set_next_page_token(page_token_of(run.run_id(), page.next_event_id));
        }
    }
    return std::nullopt;
}

}  // namespace holdfast::server::engine

// One call of QueryWorkflow, from its turn until its answer.
//
// It is in one place at a time: buffered in its run, offered on a task queue, or with a worker.
// When it ends, by an answer, by its time or because its caller leaves, it leaves that place.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/query/buffered_queries.hpp"
#include "frontend/parked_reply.hpp"
#include "frontend/parts.hpp"
#include "frontend/query/query_answer.hpp"
#include "frontend/query/query_tasks.hpp"
#include <temporal/api/query/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

// What the caller asked.
struct AskedQuery {
    engine::WorkflowKey workflow;
    std::string run_id;  // Empty: the current run.
    temporal::api::query::v1::WorkflowQuery query;
    history::QueryTerms terms;
    Steady until{};  // When its time is over.
};

class LiveQuery final : public engine::BufferedQuery,
                        public std::enable_shared_from_this<LiveQuery> {
public:
    using Reply = rpc::Reply<temporal::api::workflowservice::v1::QueryWorkflowResponse>;

    LiveQuery(Parts parts,
              std::shared_ptr<QueryTasks> tasks,
              std::unique_ptr<QueryTasks::Place> place,
              AskedQuery asked);

    // In a turn of the workflow. Once.
    void begin(engine::Turn& turn, Reply reply);

    // By the worker that has it as a task.
    void answer(QueryAnswer answer);

    // engine::BufferedQuery
    [[nodiscard]] const temporal::api::query::v1::WorkflowQuery& query() const override;
    [[nodiscard]] bool over() const override;
    void answered(const temporal::api::query::v1::WorkflowQueryResult& result) override;
    void released() override;
    void cleared() override;

private:
    // Where it waits for a worker.
    struct Waiting {
        std::optional<matching::OfferId> offer;
        std::optional<AlarmId> alarm;
        std::string task_id;  // Not empty: a worker has it.
    };

    void refuse(rpc::Refusal refusal) { answer(std::move(refusal)); }
    void end(Woken why, std::optional<QueryAnswer> answer);
    void leave(const Waiting& waiting);
    void send(Reply reply);

    // What it does now, by the state of its run. Throws what a turn throws.
    void route(engine::Turn& turn, const history::QueryTerms& terms);
    void ask(const history::state::Run& run);
    void ask_normal();
    std::uint64_t offer(const std::string& queue);
    void sticky_is_slow(std::uint64_t round);
    void look_for_pollers(std::uint64_t round);
    [[nodiscard]] bool stands(std::uint64_t round) const;
    void keep_alarm(std::uint64_t round, AlarmId alarm);
    void taken(std::uint64_t round, matching::Reservation poller);
    void deliver(engine::Turn& turn, std::uint64_t round, matching::Reservation poller);
    // False if it is over, or somewhere else by now.
    [[nodiscard]] bool hand_to_worker(std::uint64_t round, const std::string& task_id);

    const Parts parts_;
    const std::shared_ptr<QueryTasks> tasks_;
    AskedQuery asked_;          // The run is known from the first turn on, and does not change.
    std::string normal_queue_;  // Of turns, until it is offered there.
    ParkedReply<temporal::api::workflowservice::v1::QueryWorkflowResponse> parked_;

    mutable std::mutex mutex_;
    bool over_ = false;
    std::optional<QueryAnswer> answer_;  // Does not change once it is over.
    std::uint64_t round_ = 0;            // Counts the offers; what belongs to older ones is void.
    Waiting waiting_;
    bool buffered_ = false;
    std::unique_ptr<QueryTasks::Place> place_;
};

}  // namespace holdfast::server::frontend

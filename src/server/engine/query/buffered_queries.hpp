// Queries that wait for a workflow task of their run.
//
// They are in memory only. What forgets the run forgets them, and says so to their callers; so a
// run that has some stays in the cache.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include <temporal/api/query/v1/message.pb.h>

namespace temporal::api::workflowservice::v1 {
class PollWorkflowTaskQueueResponse;
}

namespace holdfast::server::engine {

using QueryResults =
    google::protobuf::Map<std::string, temporal::api::query::v1::WorkflowQueryResult>;

// One of the last three is called, once. None of them blocks.
class BufferedQuery {
public:
    BufferedQuery() = default;
    BufferedQuery(const BufferedQuery&) = delete;
    BufferedQuery& operator=(const BufferedQuery&) = delete;
    virtual ~BufferedQuery() = default;

    [[nodiscard]] virtual const temporal::api::query::v1::WorkflowQuery& query() const = 0;
    // Its caller has its answer, or has left. Asked from any thread.
    [[nodiscard]] virtual bool over() const = 0;

    virtual void answered(const temporal::api::query::v1::WorkflowQueryResult& result) = 0;
    // No workflow task of the run is to come now.
    virtual void released() = 0;
    // The run is not in memory any more.
    virtual void cleared() = 0;
};

// Of one run. Belongs to the turns of its workflow, but for any().
class BufferedQueries {
public:
    static constexpr std::size_t of_a_run_max = 1;

    BufferedQueries() = default;
    ~BufferedQueries();
    BufferedQueries(const BufferedQueries&) = delete;
    BufferedQueries& operator=(const BufferedQueries&) = delete;

    // False if there are as many as there may be.
    [[nodiscard]] bool add(std::string id, std::shared_ptr<BufferedQuery> query);

    // Puts those that wait into the task that a worker gets.
    void ride(temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task);

    // Results of unknown ids are ignored; queries without a result wait on.
    void answer(const QueryResults& results);
    void release();

    // Forgets those that are over.
    void sweep();

    // Whether a caller waits. Requires: no other function runs at the same time.
    [[nodiscard]] bool any() const;

private:
    std::map<std::string, std::shared_ptr<BufferedQuery>> waiting_;  // By id.
};

}  // namespace holdfast::server::engine

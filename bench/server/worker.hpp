// A worker that polls one task queue, with a sticky queue of its own, as those of the SDKs do.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "link.hpp"
#include "plan.hpp"

namespace holdfast::server_bench {

struct WorkerPlace {
    std::string name_space;
    std::string task_queue;
};

class Worker {
public:
    // Keeps so many polls of each of its three queues open: workflow tasks, those of its sticky
    // queue, activities. Requires: `link` outlives the worker.
    Worker(Link& link, WorkerPlace place, const Plan& plan, int polls);

    void start();
    // No more polls; those that wait are cancelled. Blocks until they have ended.
    void stop(const std::stop_token& token);

    [[nodiscard]] std::int64_t completed() const noexcept { return completed_; }
    // Runs whose first task is done.
    [[nodiscard]] std::int64_t begun() const noexcept { return begun_; }

private:
    void poll_workflow(bool sticky);
    void poll_activity();
    void work(temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task);
    void respond(temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest request,
                 std::string run,
                 bool ends);

    Link& link_;
    const WorkerPlace place_;
    const Plan plan_;
    const int polls_;
    const std::string identity_ = "holdfast-bench";
    const std::string sticky_;
    std::unordered_map<std::string, Sight> runs_;  // By run id.
    std::int64_t completed_ = 0;
    std::int64_t begun_ = 0;
    bool stopping_ = false;
};

}  // namespace holdfast::server_bench

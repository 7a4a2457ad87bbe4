#include "metrics/server_metrics.hpp"

#include <string_view>
#include <utility>

#include <temporal/api/enums/v1/workflow.pb.h>

namespace holdfast::server {

namespace {

namespace enums = temporal::api::enums::v1;

constexpr std::size_t namespaces_max = 24;  // With a label of their own; see rpc::CallMeter.

struct RunEnd {
    int status;
    std::string_view name;
};

constexpr std::array<RunEnd, 6> outcomes{{
    {enums::WORKFLOW_EXECUTION_STATUS_COMPLETED, "workflow_success"},
    {enums::WORKFLOW_EXECUTION_STATUS_FAILED, "workflow_failed"},
    {enums::WORKFLOW_EXECUTION_STATUS_CANCELED, "workflow_cancel"},
    {enums::WORKFLOW_EXECUTION_STATUS_TERMINATED, "workflow_terminate"},
    {enums::WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, "workflow_continued_as_new"},
    {enums::WORKFLOW_EXECUTION_STATUS_TIMED_OUT, "workflow_timeout"},
}};

}  // namespace

ServerMetrics::ServerMetrics(Metrics& metrics,
                             std::function<ServerLevels()> levels,
                             std::function<std::string(const std::string&)> name_of)
    : metrics_(metrics),
      levels_(std::move(levels)),
      name_of_(std::move(name_of)),
      run_commits_(
          metrics.counter("holdfast_server_run_commits_total", "Transactions that wrote a run.")),
      other_commits_(metrics.counter("holdfast_server_other_commits_total",
                                     "Transactions that moved wake-ups or deleted rows.")),
      cached_workflows_(
          metrics.gauge("holdfast_server_cached_workflows", "Workflow ids held in memory.")),
      cached_bytes_(metrics.gauge("holdfast_server_cached_bytes",
                                  "Bytes of runs held in memory, by a guess.")),
      queues_(metrics.gauge("holdfast_server_task_queues", "Task queues in memory.")),
      parked_polls_(
          metrics.gauge("holdfast_server_parked_polls", "Polls of workers that wait for a task.")),
      backlog_(metrics.gauge("approximate_backlog_count",
                             "Tasks of all task queues that wait for a worker.")),
      backlog_age_(metrics.gauge("approximate_backlog_age_seconds",
                                 "Age of the oldest task that waits for a worker.")),
      long_http_calls_(
          metrics.gauge("holdfast_server_long_http_calls", "Calls over HTTP that wait.")),
      refresher_(metrics.refresh_with([this] { refresh(); })) {}

void ServerMetrics::count_closed(const std::string& namespace_id, int status) {
    Counter counter;
    {
        const std::lock_guard lock(mutex_);
        auto found = by_namespace_.find(namespace_id);
        if (found == by_namespace_.end()) {
            const bool full = by_namespace_.size() >= namespaces_max;
            const std::string name = full ? "_other_" : name_of_(namespace_id);
            Outcomes counters;
            for (const RunEnd& outcome : outcomes) {
                counters.at(static_cast<std::size_t>(outcome.status)) = metrics_.counter(
                    outcome.name, "Runs that ended this way.", {{"namespace", name}});
            }
            found = by_namespace_.emplace(full ? std::string() : namespace_id, counters).first;
        }
        counter = found->second.at(static_cast<std::size_t>(status));
    }
    counter.add();
}

void ServerMetrics::refresh() {
    const ServerLevels now = levels_();
    run_commits_.add(static_cast<double>(now.run_commits - before_.run_commits));
    other_commits_.add(static_cast<double>(now.other_commits - before_.other_commits));
    before_ = now;
    cached_workflows_.set(static_cast<double>(now.cached_workflows));
    cached_bytes_.set(static_cast<double>(now.cached_bytes));
    queues_.set(static_cast<double>(now.queues));
    parked_polls_.set(static_cast<double>(now.parked_polls));
    backlog_.set(static_cast<double>(now.backlog));
    backlog_age_.set(now.backlog_age_s);
    long_http_calls_.set(static_cast<double>(now.long_http_calls));
}

}  // namespace holdfast::server

#include "engine/query/buffered_queries.hpp"

#include <algorithm>
#include <utility>

#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::engine {

BufferedQueries::~BufferedQueries() {
    for (const auto& [id, query] : std::exchange(waiting_, {})) {
        query->cleared();
    }
}

bool BufferedQueries::add(std::string id, std::shared_ptr<BufferedQuery> query) {
    sweep();
    return waiting_.size() < of_a_run_max &&
           waiting_.emplace(std::move(id), std::move(query)).second;
}

void BufferedQueries::ride(
    temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task) {
    sweep();
    for (const auto& [id, query] : waiting_) {
        (*task.mutable_queries())[id] = query->query();
    }
}

void BufferedQueries::answer(const QueryResults& results) {
    for (const auto& [id, result] : results) {
        if (const auto found = waiting_.extract(id)) {
            found.mapped()->answered(result);
        }
    }
}

void BufferedQueries::release() {
    for (const auto& [id, query] : std::exchange(waiting_, {})) {
        query->released();
    }
}

bool BufferedQueries::any() const {
    return std::ranges::any_of(waiting_, [](const auto& each) { return !each.second->over(); });
}

void BufferedQueries::sweep() {
    std::erase_if(waiting_, [](const auto& each) { return each.second->over(); });
}

}  // namespace holdfast::server::engine

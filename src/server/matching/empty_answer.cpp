#include "matching/empty_answer.hpp"

#include <utility>

#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::matching {

void answer_empty(Poll& poll) {
    std::visit([](auto& reply) { std::move(reply).send(); }, poll.reply);
}

}  // namespace holdfast::server::matching

#include <holdfast/flow/activity.hpp>

#include <fmt/core.h>

namespace holdfast::flow {

std::string ActivityContext::idempotency_key() const {
    const ActivityKey& key = claim_.task.key;
    return fmt::format("{}/{}/{}", key.instance, key.execution, key.event);
}

}  // namespace holdfast::flow

// The answer of a poll that got no task.
#pragma once

#include "matching/task.hpp"

namespace holdfast::server::matching {

// An empty message with the status OK; nothing if the caller has left.
void answer_empty(Poll& poll);

}  // namespace holdfast::server::matching

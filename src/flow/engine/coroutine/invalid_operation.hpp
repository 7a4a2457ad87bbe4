// How the API refuses what a workflow's code asks for.
#pragma once

#include <string>
#include <utility>

#include <holdfast/flow_engine/failure.hpp>

namespace holdfast::flow::detail {

// A failure of the workflow's own code, which no retry can mend.
[[noreturn]] inline void throw_invalid_operation(std::string message) {
    throw Failure(FailureInfo{.kind = FailureKind::application,
                              .type = "InvalidOperation",
                              .message = std::move(message),
                              .retryable = false});
}

}  // namespace holdfast::flow::detail

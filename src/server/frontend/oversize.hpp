// What is recorded instead of something that a worker sent and that is too large to keep.
#pragma once

#include <string>

#include "history/limits.hpp"
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/failure/v1/message.pb.h>

namespace holdfast::server::frontend {

[[nodiscard]] bool too_large(const temporal::api::common::v1::Payloads& payloads,
                             const history::Limits& limits);

// A failure of the server that no retry can mend.
[[nodiscard]] temporal::api::failure::v1::Failure server_failure(const std::string& message);

// "Failure exceeds size limit.", with the beginning of the message of the failure it stands for.
[[nodiscard]] temporal::api::failure::v1::Failure replacement_of(
    const temporal::api::failure::v1::Failure& failure);

}  // namespace holdfast::server::frontend

// Checks that many requests share, with the texts that clients and suites know.
//
// Each looks at one thing and says what is wrong with it, or nothing. Handlers run them in the
// order in which the API's reference server does, for the first problem is the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "history/limits.hpp"
#include "rpc/refusal.hpp"
#include <temporal/api/common/v1/message.pb.h>

namespace temporal::api::taskqueue::v1 {
class TaskQueue;
}
namespace temporal::api::sdk::v1 {
class UserMetadata;
}

namespace holdfast::server::frontend {

using Problem = std::optional<rpc::Refusal>;

[[nodiscard]] rpc::Refusal invalid(std::string text);

// "X length exceeds limit."
[[nodiscard]] Problem length_problem(std::string_view name,
                                     const std::string& value,
                                     const history::Limits& limits);

// "X is not set on request.", or its length.
[[nodiscard]] Problem name_problem(std::string_view name,
                                   const std::string& value,
                                   const history::Limits& limits);

[[nodiscard]] Problem workflow_id_problem(const std::string& workflow_id,
                                          const history::Limits& limits);

// Empty is fine: it names the current run.
[[nodiscard]] Problem run_id_problem(const std::string& run_id);

// A null pointer is a message that is not set, here and below.
[[nodiscard]] Problem execution_problem(
    const temporal::api::common::v1::WorkflowExecution* execution, const history::Limits& limits);

[[nodiscard]] Problem queue_problem(const temporal::api::taskqueue::v1::TaskQueue* queue,
                                    const history::Limits& limits);
// Also refuses the queues of the server's own workers.
[[nodiscard]] Problem start_queue_problem(const temporal::api::taskqueue::v1::TaskQueue* queue,
                                          const history::Limits& limits);

// `name` as in "An invalid X is set on request.".
[[nodiscard]] Problem span_problem(std::string_view name,
                                   const google::protobuf::Duration& duration);

// Fills what the policy leaves open, then checks it.
[[nodiscard]] Problem fill_and_check(temporal::api::common::v1::RetryPolicy& policy);

[[nodiscard]] Problem priority_problem(const temporal::api::common::v1::Priority& priority);

using Links = google::protobuf::RepeatedPtrField<temporal::api::common::v1::Link>;
[[nodiscard]] Problem links_problem(const Links& links);

using Callbacks = google::protobuf::RepeatedPtrField<temporal::api::common::v1::Callback>;
// No address is allowed, so every callback to one is refused.
[[nodiscard]] Problem callbacks_problem(const Callbacks& callbacks);

[[nodiscard]] Problem user_metadata_problem(
    const temporal::api::sdk::v1::UserMetadata& user_metadata, const history::Limits& limits);

[[nodiscard]] Problem blob_problem(std::size_t bytes, const history::Limits& limits);
[[nodiscard]] Problem memo_problem(const temporal::api::common::v1::Memo& memo,
                                   const history::Limits& limits);

inline constexpr std::size_t build_id_bytes_max = 255;

// What a page may hold, of batches.
inline constexpr int history_page_max = 256;
[[nodiscard]] int history_page_size(std::int32_t asked);

}  // namespace holdfast::server::frontend

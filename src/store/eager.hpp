// How transactions of queues are repeated.
#pragma once

#include "transaction.hpp"

namespace holdfast::store {

// Where transactions conflict instead of waiting, all writers of one queue do: retry soon and
// often.
[[nodiscard]] inline sql::TxOptions eager(const Operation& operation, const Call& call) {
    sql::TxOptions options = options_of(operation, call);
    options.retry = sql::RetryPolicy{.max_retries = 50,
                                     .base_delay = std::chrono::milliseconds{5},
                                     .max_delay = std::chrono::milliseconds{100}};
    return options;
}

}  // namespace holdfast::store

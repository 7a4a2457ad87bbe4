// Options of a run that a client changes while it is open.
#pragma once

#include <optional>
#include <string>

#include "history/refusal.hpp"
#include "history/transition.hpp"
#include <temporal/api/common/v1/message.pb.h>

namespace holdfast::server::history {

// Which of the options a request names, with their new values.
struct OptionsChange {
    // Each part is set alone, or all of them by `whole`.
    bool whole = false;
    bool priority_key = false;
    bool fairness_key = false;
    bool fairness_weight = false;
    temporal::api::common::v1::Priority priority;
};

// Event 55, which the workflow does not see. Nothing is written if nothing changes.
[[nodiscard]] std::optional<Refusal> change_options(Transition& transition,
                                                    const OptionsChange& change,
                                                    const std::string& identity);

}  // namespace holdfast::server::history

// The last event of a closed run, as clients that only wait for the end get it.
#pragma once

#include <string_view>

#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::frontend {

// Whether the client looks for the next run of a chain itself, by what it says of its features.
[[nodiscard]] bool follows_next_run(std::string_view supported_features);

// For the other clients: an end that another run of the chain follows, by a retry or a schedule, as
// a ContinuedAsNew event that names this run. So they follow it. Any other event is as it was.
[[nodiscard]] temporal::api::history::v1::HistoryEvent as_continued(
    temporal::api::history::v1::HistoryEvent event);

}  // namespace holdfast::server::frontend

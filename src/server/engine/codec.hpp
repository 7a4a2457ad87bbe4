// A run's state, as the store keeps it.
//
// The store has one small blob that every write replaces, one that is written when it changes, and
// a row for each thing that is open, so that a run with many of them does not write all for one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <server/engine/stored.pb.h>
#include <server/history/state.pb.h>

#include <holdfast/store/execution.hpp>

namespace holdfast::server::engine {

// A run beside its state.
struct RunMeta {
    store::Branch branch{};
    std::int64_t last_txn_id = 0;
    std::int64_t version = 0;              // Of the stored record.
    std::optional<store::TaskKey> wake{};  // The row that wakes it.
};

struct StoredRun {
    history::state::Run run;
    RunMeta meta;
};

// Throws store::DamagedData for blobs that this build cannot read.
[[nodiscard]] StoredRun decode_run(const store::Execution& execution);

// `run` is as before when they return: its parts are moved apart meanwhile, not copied.
[[nodiscard]] store::Blob encode_state(history::state::Run& run, const RunMeta& meta);
[[nodiscard]] store::Blob encode_info(history::state::Run& run, const store::Branch& branch);
[[nodiscard]] store::OpenItems encode_items(const history::state::Run& run);

[[nodiscard]] bool info_differs(const history::state::Run& before,
                                const history::state::Run& after);

// Fills opened, closed, clear_buffered and buffered.
void encode_changes(const history::state::Run& before,
                    const history::state::Run& after,
                    store::Mutation& mutation);

// The row that names the current run of its workflow.
[[nodiscard]] store::CurrentRun current_row(const history::state::Run& run);

[[nodiscard]] store::Blob encode(const google::protobuf::Message& message);
// Throws store::DamagedData.
void decode(const store::Blob& blob, google::protobuf::Message& message);

// Requires: a UUID in text; ids are checked where they come in.
[[nodiscard]] Uuid uuid_of(const std::string& text);

}  // namespace holdfast::server::engine

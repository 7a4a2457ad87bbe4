#include "engine/codec.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "history/times.hpp"
#include <fmt/format.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::engine {

namespace {

namespace state = history::state;

constexpr int reader = 1;  // The newest format that this build reads.
constexpr const char* encoding = "proto3";

// Takes the parts that have a place of their own out of a run, and puts them back at the end.
class Apart {
public:
    explicit Apart(state::Run& run) : run_(run) { swap(); }
    ~Apart() { swap(); }
    Apart(const Apart&) = delete;
    Apart& operator=(const Apart&) = delete;

private:
    void swap() {
        run_.mutable_started()->Swap(parts_.mutable_started());
        run_.mutable_memo()->swap(*parts_.mutable_memo());
        run_.mutable_search_attributes()->swap(*parts_.mutable_search_attributes());
        run_.mutable_request_ids()->swap(*parts_.mutable_request_ids());
        run_.mutable_activities()->swap(*parts_.mutable_activities());
        run_.mutable_timers()->swap(*parts_.mutable_timers());
        run_.mutable_children()->swap(*parts_.mutable_children());
        run_.mutable_external_cancels()->swap(*parts_.mutable_external_cancels());
        run_.mutable_external_signals()->swap(*parts_.mutable_external_signals());
        run_.mutable_signal_request_ids()->swap(*parts_.mutable_signal_request_ids());
        run_.mutable_buffered()->Swap(parts_.mutable_buffered());
    }

    state::Run& run_;
    state::Run parts_;
};

// Takes what is in memory only out of a run, and puts it back at the end.
class MemoryOnly {
public:
    explicit MemoryOnly(state::Run& run) : run_(run), close_attempted_(run.close_attempted()) {
        run_.clear_close_attempted();
        pending_updates_.swap(*run_.mutable_pending_updates());
        for (const auto& [id, update] : pending_updates_) {
            if (update.admitted_event_id() != 0) {  // Its event admits it for good.
                (*run_.mutable_pending_updates())[id] = update;
            }
        }
    }
    ~MemoryOnly() {
        run_.set_close_attempted(close_attempted_);
        run_.mutable_pending_updates()->swap(pending_updates_);
    }
    MemoryOnly(const MemoryOnly&) = delete;
    MemoryOnly& operator=(const MemoryOnly&) = delete;

private:
    state::Run& run_;
    const bool close_attempted_;
    google::protobuf::Map<std::string, state::PendingUpdate> pending_updates_;
};

std::string text_of(const Uuid& id) {
    return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

Uuid uuid_of_bytes(const std::string& text) {
    const auto id = Uuid::from_bytes(std::as_bytes(std::span(text)));
    if (!id) {
        throw store::DamagedData("a stored id does not have 16 bytes");
    }
    return *id;
}

void require_reader(int min_reader) {
    if (min_reader > reader) {
        throw store::DamagedData(fmt::format(
            "a run was stored by a newer build (format {}, this build reads {}); run that build",
            min_reader,
            reader));
    }
}

bool same_bytes(const google::protobuf::Message& one, const google::protobuf::Message& other) {
    return one.ByteSizeLong() == other.ByteSizeLong() &&
           one.SerializeAsString() == other.SerializeAsString();
}

template <class Map>
bool same_map(const Map& one, const Map& other) {
    return one.size() == other.size() && std::ranges::all_of(one, [&](const auto& item) {
               const auto found = other.find(item.first);
               return found != other.end() && same_bytes(item.second, found->second);
           });
}

template <class Map, class Opened, class Closed>
void compare(const Map& before, const Map& after, Opened& opened, Closed& closed) {
    for (const auto& [key, item] : after) {
        const auto found = before.find(key);
        if (found == before.end() || !same_bytes(found->second, item)) {
            opened.emplace(key, encode(item));
        }
    }
    for (const auto& [key, item] : before) {
        if (!after.contains(key)) {
            closed.insert(key);
        }
    }
}

template <class Map, class Opened>
void open_all(const Map& items, Opened& opened) {
    for (const auto& [key, item] : items) {
        opened.emplace(key, encode(item));
    }
}

template <class Map, class Stored>
void decode_all(const Stored& stored, Map& items) {
    for (const auto& [key, blob] : stored) {
        decode(blob, items[key]);
    }
}

store::Blob encode_buffered(const state::Run& run, int from) {
    temporal::api::history::v1::History history;
    for (int i = from; i < run.buffered_size(); ++i) {
        *history.add_events() = run.buffered(i);
    }
    return encode(history);
}

// Most transitions append to the buffer, or empty it.
void compare_buffered(const state::Run& before,
                      const state::Run& after,
                      store::Mutation& mutation) {
    const int kept = before.buffered_size();
    const bool grows =
        after.buffered_size() >= kept &&
        std::equal(before.buffered().begin(),
                   before.buffered().end(),
                   after.buffered().begin(),
                   [](const auto& one, const auto& other) { return same_bytes(one, other); });
    if (grows && after.buffered_size() > kept) {
        mutation.buffered = encode_buffered(after, kept);
    }
    if (!grows) {
        mutation.clear_buffered = true;
        if (after.buffered_size() > 0) {
            mutation.buffered = encode_buffered(after, 0);
        }
    }
}

store::Branch branch_of(const stored::Info& info) {
    store::Branch branch{.tree = store::TreeId{uuid_of_bytes(info.tree_id())},
                         .id = store::BranchId{uuid_of_bytes(info.branch_id())}};
    for (const auto& range : info.ancestors()) {
        branch.ancestors.push_back({.branch = store::BranchId{uuid_of_bytes(range.branch_id())},
                                    .begin = range.begin(),
                                    .end = range.end()});
    }
    return branch;
}

void decode_items(const store::Execution& execution, state::Run& run) {
    decode_all(execution.items.activities, *run.mutable_activities());
    decode_all(execution.items.timers, *run.mutable_timers());
    decode_all(execution.items.children, *run.mutable_children());
    decode_all(execution.items.request_cancels, *run.mutable_external_cancels());
    decode_all(execution.items.signals, *run.mutable_external_signals());
    for (const std::string& id : execution.items.signals_requested) {
        (*run.mutable_signal_request_ids())[id] = true;
    }
    for (const store::Blob& blob : execution.buffered) {
        temporal::api::history::v1::History history;
        decode(blob, history);
        run.mutable_buffered()->MergeFrom(history.events());
    }
}

store::RunState state_of(state::Phase phase) {
    switch (phase) {
        case state::PHASE_CREATED:
            return store::RunState::created;
        case state::PHASE_COMPLETED:
            return store::RunState::completed;
        default:
            return store::RunState::running;
    }
}

}  // namespace

store::Blob encode(const google::protobuf::Message& message) {
    store::Blob blob{.data = sql::Bytes(message.ByteSizeLong()), .encoding = encoding};
    const bool written =
        message.SerializeToArray(blob.data.data(), static_cast<int>(blob.data.size()));
    HOLDFAST_ASSERT(written);
    return blob;
}

void decode(const store::Blob& blob, google::protobuf::Message& message) {
    if (blob.encoding != encoding ||
        !message.ParseFromArray(blob.data.data(), static_cast<int>(blob.data.size()))) {
        throw store::DamagedData(fmt::format("a stored {} cannot be read", message.GetTypeName()));
    }
}

Uuid uuid_of(const std::string& text) {
    const auto id = Uuid::parse(text);
    HOLDFAST_ASSERT(id.has_value());
    return *id;
}

StoredRun decode_run(const store::Execution& execution) {
    stored::State kept;
    decode(execution.record.state, kept);
    require_reader(kept.min_reader());
    stored::Info info;
    decode(execution.info, info);
    require_reader(info.min_reader());

    StoredRun result{.run = std::move(*kept.mutable_run()),
                     .meta = {.branch = branch_of(info),
                              .last_txn_id = kept.last_txn_id(),
                              .version = execution.record.db_record_version}};
    if (kept.has_wake()) {
        result.meta.wake =
            store::TaskKey{.fire = sql::Timestamp{std::chrono::microseconds{kept.wake().fire_us()}},
                           .id = kept.wake().id()};
    }
    result.run.mutable_started()->Swap(info.mutable_started());
    result.run.mutable_memo()->swap(*info.mutable_memo());
    result.run.mutable_search_attributes()->swap(*info.mutable_search_attributes());
    result.run.mutable_request_ids()->swap(*info.mutable_request_ids());
    decode_items(execution, result.run);
    return result;
}

store::Blob encode_state(state::Run& run, const RunMeta& meta) {
    const Apart apart(run);
    const MemoryOnly memory(run);
    stored::State kept;
    kept.set_min_reader(1);
    kept.mutable_run()->Swap(&run);
    kept.set_last_txn_id(meta.last_txn_id);
    if (meta.wake) {
        kept.mutable_wake()->set_fire_us(meta.wake->fire.time_since_epoch().count());
        kept.mutable_wake()->set_id(meta.wake->id);
    }
    store::Blob blob = encode(kept);
    kept.mutable_run()->Swap(&run);
    return blob;
}

store::Blob encode_info(state::Run& run, const store::Branch& branch) {
    stored::Info info;
    info.set_min_reader(1);
    info.set_tree_id(text_of(branch.tree.value));
    info.set_branch_id(text_of(branch.id.value));
    for (const store::BranchRange& range : branch.ancestors) {
        stored::BranchRange& kept = *info.add_ancestors();
        kept.set_branch_id(text_of(range.branch.value));
        kept.set_begin(range.begin);
        kept.set_end(range.end);
    }
    info.mutable_started()->Swap(run.mutable_started());
    info.mutable_memo()->swap(*run.mutable_memo());
    info.mutable_search_attributes()->swap(*run.mutable_search_attributes());
    info.mutable_request_ids()->swap(*run.mutable_request_ids());
    store::Blob blob = encode(info);
    info.mutable_started()->Swap(run.mutable_started());
    info.mutable_memo()->swap(*run.mutable_memo());
    info.mutable_search_attributes()->swap(*run.mutable_search_attributes());
    info.mutable_request_ids()->swap(*run.mutable_request_ids());
    return blob;
}

store::OpenItems encode_items(const state::Run& run) {
    store::OpenItems items;
    open_all(run.activities(), items.activities);
    open_all(run.timers(), items.timers);
    open_all(run.children(), items.children);
    open_all(run.external_cancels(), items.request_cancels);
    open_all(run.external_signals(), items.signals);
    for (const auto& [id, seen] : run.signal_request_ids()) {
        items.signals_requested.insert(id);
    }
    return items;
}

bool info_differs(const state::Run& before, const state::Run& after) {
    return !same_map(before.memo(), after.memo()) ||
           !same_map(before.search_attributes(), after.search_attributes()) ||
           !same_map(before.request_ids(), after.request_ids());
}

void encode_changes(const state::Run& before, const state::Run& after, store::Mutation& mutation) {
    compare(before.activities(),
            after.activities(),
            mutation.opened.activities,
            mutation.closed.activities);
    compare(before.timers(), after.timers(), mutation.opened.timers, mutation.closed.timers);
    compare(
        before.children(), after.children(), mutation.opened.children, mutation.closed.children);
    compare(before.external_cancels(),
            after.external_cancels(),
            mutation.opened.request_cancels,
            mutation.closed.request_cancels);
    compare(before.external_signals(),
            after.external_signals(),
            mutation.opened.signals,
            mutation.closed.signals);
    for (const auto& [id, seen] : after.signal_request_ids()) {
        if (!before.signal_request_ids().contains(id)) {
            mutation.opened.signals_requested.insert(id);
        }
    }
    for (const auto& [id, seen] : before.signal_request_ids()) {
        if (!after.signal_request_ids().contains(id)) {
            mutation.closed.signals_requested.insert(id);
        }
    }
    compare_buffered(before, after, mutation);
}

store::CurrentRun current_row(const state::Run& run) {
    store::CurrentRun row{.run = store::RunId{uuid_of(run.run_id())},
                          .state = state_of(run.phase()),
                          .status = static_cast<store::RunStatus>(run.status())};
    row.start_time =
        std::chrono::floor<std::chrono::microseconds>(history::time_of(run.start_time()));
    for (const auto& [id, info] : run.request_ids()) {
        row.request_ids[id] = {.event_type = static_cast<std::int32_t>(info.event_type()),
                               .event_id = info.event_id()};
        if (info.event_id() == 1) {
            row.create_request_id = id;
        }
    }
    if (!run.started().first_execution_run_id().empty()) {
        row.first_run = store::RunId{uuid_of(run.started().first_execution_run_id())};
    }
    return row;
}

}  // namespace holdfast::server::engine

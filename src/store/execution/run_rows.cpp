#include "execution/run_rows.hpp"

#include "execution/statements_execution.hpp"
#include "execution/statements_maps.hpp"
#include "execution/task_rows.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

template <class... A>
void exec(sql::Tx& tx, const sql::Statement& statement, const RunKey& key, const A&... args) {
    tx.exec(statement, number(key.shard), key.ns, key.workflow_id, key.run, args...);
}
sql::Answer ask(sql::Tx& tx, const sql::Statement& statement, const RunKey& key) {
    return tx.ask(statement, number(key.shard), key.ns, key.workflow_id, key.run);
}

const sql::Bytes& checked(sql::Tx& tx, const Blob& blob) {
    require_blob(tx.dialect(), blob);
    return blob.data;
}

// ---- What is open -------------------------------------------------------------------------------

void require_key(std::int64_t, std::size_t = 0) noexcept {}
void require_key(const std::string& key, std::size_t bytes_max = name_bytes_max) {
    require_name("the key of an open item", key, bytes_max);
}

template <class Key>
void put(sql::Tx& tx,
         const sql::Statement& statement,
         const RunKey& key,
         const std::map<Key, Blob>& items) {
    for (const auto& [item, blob] : items) {
        require_key(item);
        exec(tx, statement, key, item, checked(tx, blob), blob.encoding);
    }
}

template <class Key>
void drop(sql::Tx& tx,
          const sql::Statement& statement,
          const RunKey& key,
          const std::set<Key>& items,
          std::size_t bytes_max = name_bytes_max) {
    for (const Key& item : items) {
        require_key(item, bytes_max);
        exec(tx, statement, key, item);
    }
}

void put_items(sql::Tx& tx, const RunKey& key, const OpenItems& items) {
    put(tx, statements::put_activity, key, items.activities);
    put(tx, statements::put_timer, key, items.timers);
    put(tx, statements::put_child, key, items.children);
    put(tx, statements::put_request_cancel, key, items.request_cancels);
    put(tx, statements::put_signal, key, items.signals);
    for (const std::string& signal : items.signals_requested) {
        require_key(signal);
        exec(tx, statements::put_signal_requested, key, signal);
    }
    for (const auto& [path, node] : items.chasm) {
        require_key(path, chasm_path_bytes_max);
        const Blob none;
        const Blob& data = node.data ? *node.data : none;
        exec(tx,
             statements::put_chasm,
             key,
             path,
             checked(tx, node.metadata),
             node.metadata.encoding,
             node.data ? sql::Param(checked(tx, data)) : sql::Param(std::optional<sql::Bytes>{}),
             node.data ? sql::Param(data.encoding) : sql::Param(sql::null));
    }
}

void drop_items(sql::Tx& tx, const RunKey& key, const ClosedItems& items) {
    drop(tx, statements::drop_activity, key, items.activities);
    drop(tx, statements::drop_timer, key, items.timers);
    drop(tx, statements::drop_child, key, items.children);
    drop(tx, statements::drop_request_cancel, key, items.request_cancels);
    drop(tx, statements::drop_signal, key, items.signals);
    drop(tx, statements::drop_signal_requested, key, items.signals_requested);
    drop(tx, statements::drop_chasm, key, items.chasm, chasm_path_bytes_max);
}

void clear_items(sql::Tx& tx, const RunKey& key) {
    exec(tx, statements::clear_activity, key);
    exec(tx, statements::clear_timer, key);
    exec(tx, statements::clear_child, key);
    exec(tx, statements::clear_request_cancel, key);
    exec(tx, statements::clear_signal, key);
    exec(tx, statements::clear_signal_requested, key);
    exec(tx, statements::clear_chasm, key);
    exec(tx, statements::delete_buffered_events, key);
}

Blob blob_at(const sql::Row& row, std::size_t column) {
    return {.data = row.get<sql::Bytes>(column), .encoding = row.get<std::string>(column + 1)};
}

template <class Key>
std::map<Key, Blob> read_map(sql::Answer& answer) {
    std::map<Key, Blob> items;
    for (const sql::Row row : answer.rows()) {
        items.emplace(row.get<Key>(0), blob_at(row, 1));
    }
    return items;
}

std::map<std::string, ChasmNode> read_chasm(sql::Answer& answer) {
    std::map<std::string, ChasmNode> nodes;
    for (const sql::Row row : answer.rows()) {
        ChasmNode node{.metadata = blob_at(row, 1), .data = {}};
        if (auto data = row.get<std::optional<sql::Bytes>>(3)) {
            node.data = Blob{.data = *std::move(data),
                             .encoding = row.get<std::optional<std::string>>(4).value_or("")};
        }
        nodes.emplace(row.get<std::string>(0), std::move(node));
    }
    return nodes;
}

// ---- The row itself ---------------------------------------------------------------------------

void update_record(sql::Tx& tx, const RunRecord& record, const sql::Guard& guard) {
    tx.fenced(guard,
              statements::update_execution,
              record.next_event_id,
              record.last_write_version,
              checked(tx, record.info),
              record.info.encoding,
              checked(tx, record.state),
              record.state.encoding,
              record.db_record_version);
}

std::string name_of(const Uuid& run, const std::string& workflow_id) {
    return fmt::format("run {} of workflow \"{}\"", run.text(), workflow_id);
}
std::string name_of(const RunWrite& write) {
    return name_of(write.current.run.value, write.workflow.workflow_id);
}

}  // namespace

RunKey key_of(ShardId shard, const RunWrite& write) {
    return {.shard = shard,
            .ns = write.workflow.ns.value,
            .workflow_id = write.workflow.workflow_id,
            .run = write.current.run.value};
}

sql::LockedRow ask_run(sql::Tx& tx, const RunKey& key) {
    return tx.ask_locked(name_of(key.run, key.workflow_id),
                         {std::int64_t{number(key.shard)}, key.ns, key.workflow_id, key.run},
                         statements::lock_execution);
}

std::optional<RunTokens> read_run(const sql::Rows& rows) {
    const auto row = rows.single();
    if (!row) {
        return std::nullopt;
    }
    return RunTokens{.db_record_version = row->get<std::int64_t>(0),
                     .next_event_id = row->get<std::int64_t>(1),
                     .last_write_version = row->get<std::int64_t>(2)};
}

sql::Guard require_tokens(const RunWrite& write, sql::LockedRow& locked) {
    const std::optional<RunTokens> found = read_run(locked.rows());
    if (!found) {
        throw ConditionFailed(
            fmt::format("there is no {}; load the workflow again", name_of(write)));
    }
    const bool by_version = write.record.db_record_version != 0;
    const std::int64_t expected =
        by_version ? write.record.db_record_version - 1 : write.expected_next_event_id;
    const std::int64_t actual = by_version ? found->db_record_version : found->next_event_id;
    if (actual != expected) {
        throw WorkflowConditionFailed(
            fmt::format("{} has {} {}, not {}; load it again",
                        name_of(write),
                        by_version ? "db_record_version" : "next_event_id",
                        actual,
                        expected),
            found->next_event_id,
            found->db_record_version);
    }
    return locked.verify({found->db_record_version, found->next_event_id});
}

void require_absent(const RunWrite& write, const std::optional<RunTokens>& found) {
    if (found) {
        throw WorkflowConditionFailed(fmt::format("{} is there already", name_of(write)), 0, 0);
    }
}

void insert_run(sql::Tx& tx, ShardId shard, const Snapshot& snapshot) {
    const RunKey key = key_of(shard, snapshot);
    const RunRecord& record = snapshot.record;
    exec(tx,
         statements::insert_execution,
         key,
         record.next_event_id,
         record.last_write_version,
         checked(tx, record.info),
         record.info.encoding,
         checked(tx, record.state),
         record.state.encoding,
         record.db_record_version);
    insert_tasks(tx, shard, snapshot.tasks);
    put_items(tx, key, snapshot.items);
}

void replace_run(sql::Tx& tx, ShardId shard, const Snapshot& snapshot, const sql::Guard& guard) {
    const RunKey key = key_of(shard, snapshot);
    update_record(tx, snapshot.record, guard);
    insert_tasks(tx, shard, snapshot.tasks);
    clear_items(tx, key);
    put_items(tx, key, snapshot.items);
}

void change_run(sql::Tx& tx, ShardId shard, const Mutation& mutation, const sql::Guard& guard) {
    const RunKey key = key_of(shard, mutation);
    update_record(tx, mutation.record, guard);
    insert_tasks(tx, shard, mutation.tasks);
    put_items(tx, key, mutation.opened);
    drop_items(tx, key, mutation.closed);
    if (mutation.clear_buffered) {
        exec(tx, statements::delete_buffered_events, key);
    }
    if (const auto& events = mutation.buffered) {
        exec(tx, statements::insert_buffered_event, key, checked(tx, *events), events->encoding);
    }
}

void delete_run(sql::Tx& tx, const RunKey& key) {
    clear_items(tx, key);
    exec(tx, statements::delete_execution, key);
}

void delete_run_in_chunks(sql::Database& db, const RunKey& key, const Call& call) {
    const auto with_key = [&](const sql::Statement& statement, const auto&... more) {
        return run(db,
                   operation::delete_run,
                   call,
                   statement,
                   number(key.shard),
                   key.ns,
                   key.workflow_id,
                   key.run,
                   more...)
            .changed;
    };
    (void)with_key(statements::delete_execution);
    for (const sql::Statement* shed : {&statements::shed_activity,
                                       &statements::shed_timer,
                                       &statements::shed_child,
                                       &statements::shed_request_cancel,
                                       &statements::shed_signal,
                                       &statements::shed_signal_requested,
                                       &statements::shed_chasm,
                                       &statements::shed_buffered}) {
        in_chunks([&] { return with_key(*shed, chunk_rows); });
    }
}

std::optional<Execution> read_execution(sql::Tx& tx, const RunKey& key) {
    sql::Answer row = ask(tx, statements::select_execution, key);
    sql::Answer activities = ask(tx, statements::all_activity, key);
    sql::Answer timers = ask(tx, statements::all_timer, key);
    sql::Answer children = ask(tx, statements::all_child, key);
    sql::Answer request_cancels = ask(tx, statements::all_request_cancel, key);
    sql::Answer signals = ask(tx, statements::all_signal, key);
    sql::Answer signals_requested = ask(tx, statements::all_signal_requested, key);
    sql::Answer chasm = ask(tx, statements::all_chasm, key);
    sql::Answer buffered = ask(tx, statements::select_buffered_events, key);

    const sql::Rows rows = row.rows();
    const auto found = rows.single();
    if (!found) {
        return std::nullopt;
    }
    Execution execution{.record = {.next_event_id = found->get<std::int64_t>(0),
                                   .last_write_version = found->get<std::int64_t>(1),
                                   .db_record_version = found->get<std::int64_t>(6),
                                   .info = blob_at(*found, 2),
                                   .state = blob_at(*found, 4)},
                        .items = {.activities = read_map<std::int64_t>(activities),
                                  .timers = read_map<std::string>(timers),
                                  .children = read_map<std::int64_t>(children),
                                  .request_cancels = read_map<std::int64_t>(request_cancels),
                                  .signals = read_map<std::int64_t>(signals),
                                  .signals_requested = {},
                                  .chasm = read_chasm(chasm)},
                        .buffered = {}};
    for (const sql::Row signal : signals_requested.rows()) {
        execution.items.signals_requested.insert(signal.get<std::string>(0));
    }
    for (const sql::Row events : buffered.rows()) {
        execution.buffered.push_back(blob_at(events, 0));
    }
    return execution;
}

}  // namespace holdfast::store

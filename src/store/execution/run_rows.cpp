#include "execution/run_rows.hpp"

#include <array>

#include "execution/statements_execution.hpp"
#include "execution/statements_maps.hpp"
#include "execution/task_rows.hpp"
#include "id_digest.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

template <class... A>
void exec(sql::Tx& tx, const sql::Statement& statement, const RunKey& key, const A&... args) {
    tx.exec(statement, number(key.shard), key.run, args...);
}
sql::Answer ask(sql::Tx& tx, const sql::Statement& statement, const RunKey& key) {
    return tx.ask(statement, number(key.shard), key.run);
}

const sql::Bytes& checked(sql::Tx& tx, const Blob& blob) {
    require_blob(tx.dialect(), blob);
    return blob.data;
}

// ---- What is open -------------------------------------------------------------------------------

void require_id(const std::string& id) {
    require_name("the id of an open item", id, id_bytes_max);
}
void require_path(const std::string& path) {
    require_name("the path of an open item", path, chasm_path_bytes_max);
}

void put(sql::Tx& tx,
         const sql::Statement& statement,
         const RunKey& key,
         const std::map<std::int64_t, Blob>& items) {
    for (const auto& [item, blob] : items) {
        exec(tx, statement, key, item, checked(tx, blob), blob.encoding);
    }
}

void drop(sql::Tx& tx,
          const sql::Statement& statement,
          const RunKey& key,
          const std::set<std::int64_t>& items) {
    for (const std::int64_t item : items) {
        exec(tx, statement, key, item);
    }
}
// The same for ids that stand beside their digests.
void drop(sql::Tx& tx,
          const sql::Statement& statement,
          const RunKey& key,
          const std::set<std::string>& items) {
    for (const std::string& item : items) {
        require_id(item);
        exec(tx, statement, key, key_digest(item), item);
    }
}

void put_items(sql::Tx& tx, const RunKey& key, const OpenItems& items) {
    put(tx, statements::put_activity, key, items.activities);
    for (const auto& [timer, blob] : items.timers) {
        require_id(timer);
        exec(tx,
             statements::put_timer,
             key,
             key_digest(timer),
             timer,
             checked(tx, blob),
             blob.encoding);
    }
    put(tx, statements::put_child, key, items.children);
    put(tx, statements::put_request_cancel, key, items.request_cancels);
    put(tx, statements::put_signal, key, items.signals);
    for (const std::string& signal : items.signals_requested) {
        require_id(signal);
        exec(tx, statements::put_signal_requested, key, key_digest(signal), signal);
    }
    for (const auto& [path, node] : items.chasm) {
        require_path(path);
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
    for (const std::string& path : items.chasm) {
        require_path(path);
        exec(tx, statements::drop_chasm, key, path);
    }
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

void update_record(sql::Tx& tx,
                   const RunRecord& record,
                   const Blob& info,
                   const sql::Guard& guard) {
    tx.fenced(guard,
              statements::update_execution,
              record.next_event_id,
              record.last_write_version,
              checked(tx, info),
              info.encoding,
              checked(tx, record.state),
              record.state.encoding,
              record.db_record_version);
}
void update_state(sql::Tx& tx, const RunRecord& record, const sql::Guard& guard) {
    tx.fenced(guard,
              statements::update_execution_state,
              record.next_event_id,
              record.last_write_version,
              checked(tx, record.state),
              record.state.encoding,
              record.db_record_version);
}

void write_tasks(sql::Tx& tx, ShardId shard, const RunWrite& write) {
    change_tasks(tx, shard, write.done);
    if (write.wake.remove) {
        const TaskChange woken{.category = Category::timer, .key = *write.wake.remove};
        change_tasks(tx, shard, {&woken, 1});
    }
    if (write.wake.insert) {
        insert_tasks(tx, shard, {{Category::timer, {*write.wake.insert}}});
    }
    insert_tasks(tx, shard, write.tasks);
}

std::string name_of(const Uuid& run, const std::string& workflow_id) {
    return fmt::format("run {} of workflow \"{}\"", run.text(), workflow_id);
}
std::string name_of(const RunWrite& write) {
    return name_of(write.current.run.value, write.workflow.workflow_id);
}

}  // namespace

RunKey key_of(ShardId shard, const WorkflowKey& workflow, RunId run) {
    return {.shard = shard,
            .ns = workflow.ns.value,
            .workflow_id = workflow.workflow_id,
            .run = run.value};
}
RunKey key_of(ShardId shard, const RunWrite& write) {
    return key_of(shard, write.workflow, write.current.run);
}

sql::LockedRow ask_run(sql::Tx& tx, const RunKey& key) {
    return tx.ask_locked(name_of(key.run, key.workflow_id),
                         {std::int64_t{number(key.shard)}, key.run},
                         statements::lock_execution);
}

std::optional<RunTokens> read_run(const sql::Rows& rows, const WorkflowKey& workflow) {
    const auto row = rows.single();
    if (!row) {
        return std::nullopt;
    }
    return RunTokens{.db_record_version = row->get<std::int64_t>(0),
                     .next_event_id = row->get<std::int64_t>(1),
                     .last_write_version = row->get<std::int64_t>(2),
                     .is_of_workflow = row->get<Uuid>(3) == workflow.ns.value &&
                                       row->get<std::string>(4) == workflow.workflow_id};
}

sql::Guard require_tokens(const RunWrite& write, sql::LockedRow& locked) {
    const std::optional<RunTokens> found = read_run(locked.rows(), write.workflow);
    if (!found || !found->is_of_workflow) {
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
         key.ns,
         key.workflow_id,
         record.next_event_id,
         record.last_write_version,
         checked(tx, snapshot.info),
         snapshot.info.encoding,
         checked(tx, record.state),
         record.state.encoding,
         record.db_record_version);
    write_tasks(tx, shard, snapshot);
    put_items(tx, key, snapshot.items);
}

void replace_run(sql::Tx& tx, ShardId shard, const Snapshot& snapshot, const sql::Guard& guard) {
    const RunKey key = key_of(shard, snapshot);
    update_record(tx, snapshot.record, snapshot.info, guard);
    write_tasks(tx, shard, snapshot);
    clear_items(tx, key);
    put_items(tx, key, snapshot.items);
}

void change_run(sql::Tx& tx, ShardId shard, const Mutation& mutation, const sql::Guard& guard) {
    const RunKey key = key_of(shard, mutation);
    if (mutation.info) {
        update_record(tx, mutation.record, *mutation.info, guard);
    } else {
        update_state(tx, mutation.record, guard);
    }
    write_tasks(tx, shard, mutation);
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
    exec(tx, statements::delete_execution, key, key.ns, key.workflow_id);
}

void delete_items(sql::Tx& tx, const RunKey& key) {
    clear_items(tx, key);
}

std::span<const sql::Statement* const> item_sheds() noexcept {
    static constexpr auto all = std::to_array<const sql::Statement*>({
        &statements::shed_activity,
        &statements::shed_timer,
        &statements::shed_child,
        &statements::shed_request_cancel,
        &statements::shed_signal,
        &statements::shed_signal_requested,
        &statements::shed_chasm,
        &statements::shed_buffered,
    });
    return all;
}

std::int64_t shed_items(sql::Tx& tx, const sql::Statement& shed, const RunKey& key) {
    return tx.count(shed, number(key.shard), key.run, chunk_rows);
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
    if (!found || found->get<Uuid>(7) != key.ns || found->get<std::string>(8) != key.workflow_id) {
        return std::nullopt;
    }
    Execution execution{.record = {.next_event_id = found->get<std::int64_t>(0),
                                   .last_write_version = found->get<std::int64_t>(1),
                                   .db_record_version = found->get<std::int64_t>(6),
                                   .state = blob_at(*found, 4)},
                        .info = blob_at(*found, 2),
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

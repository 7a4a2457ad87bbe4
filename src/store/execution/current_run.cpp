#include "execution/current_run.hpp"

#include "codec.hpp"
#include "execution/statements_execution.hpp"
#include "id_digest.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

using nlohmann::json;

// Workflows and all other kinds have a table each; the key of the others ends with the kind.
struct Tables {
    const sql::Statement& insert;
    const sql::FencedStatement& update;
    const sql::Statement& select;
    const sql::Statement& lock;
    const sql::FencedStatement& remove;
};

constexpr Tables workflows{statements::insert_current,
                           statements::update_current,
                           statements::select_current,
                           statements::lock_current,
                           statements::delete_current};
constexpr Tables others{statements::insert_current_chasm,
                        statements::update_current_chasm,
                        statements::select_current_chasm,
                        statements::lock_current_chasm,
                        statements::delete_current_chasm};

const Tables& tables_of(const WorkflowKey& key) {
    return key.archetype == workflow_archetype ? workflows : others;
}

// Calls `use(key..., args...)`.
template <class Use, class... A>
auto with_key(ShardId shard, const WorkflowKey& key, const Use& use, const A&... args) {
    const Uuid digest = key_digest(key.workflow_id);
    if (key.archetype == workflow_archetype) {
        return use(number(shard), key.ns.value, digest, args...);
    }
    return use(
        number(shard), key.ns.value, digest, static_cast<std::uint32_t>(key.archetype), args...);
}

std::string name_of(const WorkflowKey& workflow) {
    return fmt::format("the current run of workflow \"{}\"", workflow.workflow_id);
}

std::vector<sql::Owned> guard_key(ShardId shard, const WorkflowKey& key) {
    std::vector<sql::Owned> values{
        std::int64_t{number(shard)}, key.ns.value, key_digest(key.workflow_id)};
    if (key.archetype != workflow_archetype) {
        values.emplace_back(static_cast<std::int64_t>(key.archetype));
    }
    return values;
}

Blob encode(const CurrentRun& current) {
    json requests = json::object();
    for (const auto& [id, event] : current.request_ids) {
        requests[id] = {event.event_type, event.event_id};
    }
    json value{{"request_ids", std::move(requests)}};
    if (current.first_run) {
        value["first_run"] = current.first_run->text();
    }
    return to_blob(value);
}

void decode_into(CurrentRun& current, const Blob& blob) {
    constexpr std::string_view what = "a current run";
    decode(blob, what, [&](const json& value) {
        for (const auto& [id, event] : value.at("request_ids").items()) {
            current.request_ids[id] = {.event_type = event.at(0).get<std::int32_t>(),
                                       .event_id = event.at(1).get<std::int64_t>()};
        }
        if (value.contains("first_run")) {
            current.first_run = RunId{uuid_of(value.at("first_run"), what)};
        }
    });
}

// Calls `use(columns...)` with what the row holds besides its key.
template <class Use>
auto with_columns(const sql::Dialect& dialect, const CurrentRun& current, const Use& use) {
    const Blob blob = encode(current);
    require_blob(dialect, blob);
    return use(current.run.value,
               current.create_request_id,
               static_cast<std::int32_t>(current.state),
               static_cast<std::int32_t>(current.status),
               current.start_time,
               current.last_write_version,
               blob.data,
               blob.encoding);
}

}  // namespace

void require_workflow(const WorkflowKey& workflow) {
    require_name("the workflow's id", workflow.workflow_id, id_bytes_max);
    if (workflow.archetype == Archetype{0}) {
        throw InvalidArgument("archetype 0 is reserved; name the kind of the execution");
    }
}

void require_run(const RunWrite& write) {
    require_workflow(write.workflow);
    if (!write.current.create_request_id.empty()) {
        require_name("the id of the request that creates a run",
                     write.current.create_request_id,
                     id_bytes_max);
    }
    if (write.current.start_time) {
        require_time("the start of a run", *write.current.start_time);
    }
}

sql::LockedRow ask_current_run(sql::Tx& tx, ShardId shard, const WorkflowKey& workflow) {
    return tx.ask_locked(name_of(workflow), guard_key(shard, workflow), tables_of(workflow).lock);
}

std::optional<CurrentRun> read_current_run(const sql::Rows& rows, const WorkflowKey& workflow) {
    const auto row = rows.single();
    if (!row) {
        return std::nullopt;
    }
    require_same_id("the workflow", row->get<std::string>(8), workflow.workflow_id);
    CurrentRun current{.run = RunId{row->get<Uuid>(0)},
                       .create_request_id = row->get<std::string>(1),
                       .state = RunState{row->get<std::int32_t>(2)},
                       .status = RunStatus{row->get<std::int32_t>(3)},
                       .start_time = row->get<std::optional<sql::Timestamp>>(4),
                       .last_write_version = row->get<std::int64_t>(5),
                       .request_ids = {},
                       .first_run = {}};
    if (auto data = row->get<std::optional<sql::Bytes>>(6)) {
        decode_into(current, {.data = *std::move(data), .encoding = row->get<std::string>(7)});
    } else {
        current.request_ids[current.create_request_id] = started_event;  // An older row.
    }
    return current;
}

void insert_current_run(sql::Tx& tx,
                        ShardId shard,
                        const WorkflowKey& workflow,
                        const CurrentRun& current) {
    with_columns(tx.dialect(), current, [&](const auto&... columns) {
        with_key(
            shard,
            workflow,
            [&](const auto&... args) { tx.exec(tables_of(workflow).insert, args...); },
            workflow.workflow_id,
            columns...);
    });
}

void move_current_run(sql::Tx& tx,
                      sql::LockedRow& locked,
                      const WorkflowKey& workflow,
                      RunId previous,
                      const CurrentRun& current) {
    with_columns(tx.dialect(), current, [&](const auto&... columns) {
        tx.fenced(locked.verify({previous.value}), tables_of(workflow).update, columns...);
    });
}

std::optional<CurrentRun> find_current_run(sql::Database& db,
                                           ShardId shard,
                                           const WorkflowKey& workflow,
                                           const Call& call) {
    const sql::Result found = with_key(shard, workflow, [&](const auto&... key) {
        return run(db, operation::get_current_run, call, tables_of(workflow).select, key...);
    });
    return read_current_run(found.rows, workflow);
}

void remove_current_run(sql::Tx& tx,
                        sql::LockedRow& locked,
                        const WorkflowKey& workflow,
                        RunId run) {
    const std::optional<CurrentRun> found = read_current_run(locked.rows(), workflow);
    if (found && found->run == run) {
        tx.fenced(locked.verify({run.value}), tables_of(workflow).remove);
    }
}

}  // namespace holdfast::store

#include "execution/current_run.hpp"

#include "codec.hpp"
#include "execution/statements_execution.hpp"
#include "transaction.hpp"

namespace holdfast::store {
namespace {

using nlohmann::json;

// Workflows and all other kinds have a table each; the key of the others ends with the kind.
struct InTwoTables {
    const sql::Statement& workflows;
    const sql::Statement& others;
};

// Calls `use(statement, key..., args...)`.
template <class Use, class... A>
auto with(const InTwoTables& tables,
          ShardId shard,
          const WorkflowKey& key,
          const Use& use,
          const A&... args) {
    if (key.archetype == workflow_archetype) {
        return use(tables.workflows, number(shard), key.ns.value, key.workflow_id, args...);
    }
    return use(tables.others,
               number(shard),
               key.ns.value,
               key.workflow_id,
               static_cast<std::uint32_t>(key.archetype),
               args...);
}

constexpr InTwoTables insert{statements::insert_current, statements::insert_current_chasm};
constexpr InTwoTables update{statements::update_current.write(),
                             statements::update_current_chasm.write()};
constexpr InTwoTables select{statements::select_current, statements::select_current_chasm};
constexpr InTwoTables lock{statements::lock_current, statements::lock_current_chasm};
constexpr InTwoTables remove{statements::delete_current.write(),
                             statements::delete_current_chasm.write()};

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

// `use` gets the columns of the current_run_row after its own arguments.
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
    require_name("the workflow's id", workflow.workflow_id, name_bytes_max);
    if (workflow.archetype == Archetype{0}) {
        throw InvalidArgument("archetype 0 is reserved; name the kind of the execution");
    }
}

void require_run(const RunWrite& write) {
    require_workflow(write.workflow);
    if (!write.current.create_request_id.empty()) {
        require_name("the id of the request that creates a run",
                     write.current.create_request_id,
                     name_bytes_max);
    }
    if (write.current.start_time) {
        require_time("the start of a run", *write.current.start_time);
    }
}

sql::Answer ask_current_run(sql::Tx& tx, ShardId shard, const WorkflowKey& workflow) {
    return with(lock, shard, workflow, [&tx](const sql::Statement& statement, const auto&... args) {
        return tx.ask(statement, args...);
    });
}

std::optional<CurrentRun> read_current_run(const sql::Rows& rows) {
    const auto row = rows.single();
    if (!row) {
        return std::nullopt;
    }
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
        current.request_ids[current.create_request_id] = started_event;  // A row of old.
    }
    return current;
}

void insert_current_run(sql::Tx& tx,
                        ShardId shard,
                        const WorkflowKey& workflow,
                        const CurrentRun& current) {
    with_columns(tx.dialect(), current, [&](const auto&... columns) {
        with(
            insert,
            shard,
            workflow,
            [&tx](const sql::Statement& statement, const auto&... args) {
                tx.exec(statement, args...);
            },
            columns...);
    });
}

void move_current_run(sql::Tx& tx,
                      ShardId shard,
                      const WorkflowKey& workflow,
                      RunId previous,
                      const CurrentRun& current) {
    with_columns(tx.dialect(), current, [&](const auto&... columns) {
        with(
            update,
            shard,
            workflow,
            [&tx](const sql::Statement& statement, const auto&... args) {
                tx.exec(statement, args...);
            },
            previous.value,
            columns...);
    });
}

std::optional<CurrentRun> find_current_run(sql::Database& db,
                                           ShardId shard,
                                           const WorkflowKey& workflow,
                                           const Call& call) {
    const sql::Result found =
        with(select, shard, workflow, [&](const sql::Statement& statement, const auto&... args) {
            return run(db, operation::get_current_run, call, statement, args...);
        });
    return read_current_run(found.rows);
}

void delete_current_run(
    sql::Database& db, ShardId shard, const WorkflowKey& workflow, RunId run_id, const Call& call) {
    with(
        remove,
        shard,
        workflow,
        [&](const sql::Statement& statement, const auto&... args) {
            (void)run(db, operation::delete_current_run, call, statement, args...);
        },
        run_id.value);
}

}  // namespace holdfast::store

// The state of runs, and which run of a workflow is the current one.
//
// Every write names what its writer believes: the lease of the shard, the run that is current, and
// the version of the run. All of it is proved in the transaction that writes, which is then applied
// as a whole or not at all. What was not so throws, and the error carries what was found:
// ShardOwnershipLost, CurrentWorkflowConditionFailed, WorkflowConditionFailed, in this order.
//
// History is appended with the write of its run: in the same transaction, if the request brings it,
// or before, by History. What a failed write leaves there is harmless: no run points to it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <holdfast/store/error.hpp>
#include <holdfast/store/history.hpp>
#include <holdfast/store/history_tasks.hpp>
#include <holdfast/store/shard.hpp>
#include <holdfast/store/types.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::store {

// The kind of an execution. Ids of different kinds never meet. 0 is reserved and refused.
enum class Archetype : std::uint32_t {};
inline constexpr Archetype workflow_archetype{1};

struct WorkflowKey {
    NamespaceId ns{};
    std::string workflow_id{};  // 1 to id_bytes_max bytes.
    Archetype archetype = workflow_archetype;

    friend bool operator==(const WorkflowKey&, const WorkflowKey&) = default;
};

// What every write of a run replaces.
struct RunRecord {
    std::int64_t next_event_id = 0;
    std::int64_t last_write_version = 0;
    std::int64_t db_record_version = 0;
    Blob state{};  // Small, and sent with every write.

    friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

struct ChasmNode {
    Blob metadata{};
    std::optional<Blob> data{};

    friend bool operator==(const ChasmNode&, const ChasmNode&) = default;
};

// What a run has open.
struct OpenItems {
    std::map<std::int64_t, Blob> activities{};
    std::map<std::string, Blob> timers{};
    std::map<std::int64_t, Blob> children{};
    std::map<std::int64_t, Blob> request_cancels{};
    std::map<std::int64_t, Blob> signals{};
    std::set<std::string> signals_requested{};
    std::map<std::string, ChasmNode> chasm{};

    friend bool operator==(const OpenItems&, const OpenItems&) = default;
};
struct ClosedItems {
    std::set<std::int64_t> activities{};
    std::set<std::string> timers{};
    std::set<std::int64_t> children{};
    std::set<std::int64_t> request_cancels{};
    std::set<std::int64_t> signals{};
    std::set<std::string> signals_requested{};
    std::set<std::string> chasm{};
};

// A run as it is stored.
struct Execution {
    RunRecord record{};
    Blob info{};
    OpenItems items{};
    std::vector<Blob> buffered{};  // In the order in which they came.

    friend bool operator==(const Execution&, const Execution&) = default;
};

// The one task of Category::timer that says when a run is to be looked at again. The row that
// `remove` names gives way to the one of `insert`; either may be missing.
struct Wake {
    std::optional<TaskKey> remove{};
    std::optional<Task> insert{};

    friend bool operator==(const Wake&, const Wake&) = default;
};

// What all writes of a run have. `current` becomes the current_run_row, where the mode says that it
// does; its `run` is the run that is written.
struct RunWrite {
    WorkflowKey workflow{};
    CurrentRun current{};
    // The version is the new one, and the stored one must be one less. 0 is a writer from before
    // there were versions: the stored next_event_id must be `expected_next_event_id`.
    RunRecord record{};
    std::int64_t expected_next_event_id = 0;
    // In the transaction of the run, in this order: what is done goes, the wake-up row is replaced,
    // the tasks come.
    std::vector<TaskChange> done{};
    Wake wake{};
    Tasks tasks{};
    // The run's row in visibility, whatever it held before: the run's own row is the fence. Its
    // version becomes that of `record`. Its namespace, workflow and run must be those of this
    // write, else InvalidPersistenceRequest.
    std::optional<VisibilityRecord> visibility{};
};
// All that a run has, in place of what it had.
struct Snapshot : RunWrite {
    Blob info{};
    OpenItems items{};
};
// What changes. What is closed is closed after what is opened was opened.
struct Mutation : RunWrite {
    std::optional<Blob> info{};  // Empty: it stays as it is.
    OpenItems opened{};
    ClosedItems closed{};
    bool clear_buffered = false;
    std::optional<Blob> buffered{};  // Appended.
};

enum class CreateMode : std::uint8_t {
    brand_new,       // There must be no current run; the new one becomes it.
    update_current,  // The current run must be `previous_run`, with that version, and completed.
    bypass_current,  // Another run is the current one, and stays it.
};
struct CreateRequest {
    ShardLease lease{};
    CreateMode mode = CreateMode::brand_new;
    std::optional<RunId> previous_run{};
    std::int64_t previous_last_write_version = 0;
    Snapshot snapshot{};
    std::vector<AppendRequest> history{};
};

enum class UpdateMode : std::uint8_t {
    update_current,  // The run must be the current one; so is the new run then, if there is one.
    bypass_current,  // The run must not be the current one.
    ignore_current,  // Whatever the current run is: this one is closed.
};
struct UpdateRequest {
    ShardLease lease{};
    UpdateMode mode = UpdateMode::update_current;
    Mutation mutation{};
    std::optional<Snapshot> new_run{};  // Of the same workflow.
    std::vector<AppendRequest> history{};
};

enum class ResolveMode : std::uint8_t { update_current, bypass_current };
// Replaces a run by another history of itself. With update_current the current run must be that of
// `current`, which is not the reset one, or else the reset one.
struct ResolveRequest {
    ShardLease lease{};
    ResolveMode mode = ResolveMode::update_current;
    Snapshot reset{};
    std::optional<Mutation> current{};
    std::optional<Snapshot> new_run{};
    std::vector<AppendRequest> history{};
};

// Ends the current run, if it is open, and continues from a point of `base` by a new run, which
// becomes the current one. `base` may be the current run or an earlier one.
struct ResetRequest {
    ShardLease lease{};
    // Else CurrentWorkflowConditionFailed. Empty: there is none, because it was removed.
    std::optional<RunId> expected_current{};
    Mutation base{};
    // The current run's, where that is another than `base`. Without it the current run must be
    // completed, or be `base`. The write of the run that gives way completes it, else
    // InvalidPersistenceRequest.
    std::optional<Mutation> current{};
    Snapshot new_run{};                    // Of the same workflow.
    std::vector<AppendRequest> history{};  // A fork of `base`'s branch among them, forked_from it.
};

// What is deleted of a run at once. What it has open, and its history, is deleted afterwards: by a
// task among `tasks`, so that it is not forgotten.
struct RemoveRequest {
    ShardLease lease{};
    WorkflowKey workflow{};
    RunId run{};
    std::vector<TaskChange> done{};
    Tasks tasks{};
};

// Safe to share between threads. On PostgreSQL every call makes two round trips at most, but
// remove_items where the run had more rows than one transaction may change.
class Executions {
public:
    // Requires: `shards` outlives this object.
    explicit Executions(Shards& shards) noexcept : shards_(shards) {}
    Executions(const Executions&) = delete;
    Executions& operator=(const Executions&) = delete;

    void create(const CreateRequest& request, const Call& call = {});
    void update(const UpdateRequest& request, const Call& call = {});
    void resolve_conflict(const ResolveRequest& request, const Call& call = {});
    // Replaces a run and leaves the current_run_row. A run that is not there is ConditionFailed.
    void set(const ShardLease& lease, const Snapshot& snapshot, const Call& call = {});

    void reset(const ResetRequest& request, const Call& call = {});

    // The run's row, its row in visibility, and the current_run_row if it names this run. A run
    // that is gone already is removed, and its tasks are written nevertheless.
    void remove(const RemoveRequest& request, const Call& call = {});
    // All that a run had open. If it was interrupted, call it again.
    // Requires: the run was removed. Else ConditionFailed.
    void remove_items(const ShardLease& lease,
                      const WorkflowKey& workflow,
                      RunId run,
                      const Call& call = {});
    // The current_run_row, if it names this run; else nothing is done.
    void remove_current(const ShardLease& lease,
                        const WorkflowKey& workflow,
                        RunId run,
                        const Call& call = {});

    // One snapshot of all that the run has.
    [[nodiscard]] std::optional<Execution> find(ShardId shard,
                                                const WorkflowKey& workflow,
                                                RunId run,
                                                const Call& call = {}) const;
    [[nodiscard]] std::optional<CurrentRun> find_current(ShardId shard,
                                                         const WorkflowKey& workflow,
                                                         const Call& call = {}) const;
    // The same; throws NotFound.
    [[nodiscard]] Execution get(ShardId shard,
                                const WorkflowKey& workflow,
                                RunId run,
                                const Call& call = {}) const;
    [[nodiscard]] CurrentRun get_current(ShardId shard,
                                         const WorkflowKey& workflow,
                                         const Call& call = {}) const;
    // Throws Unimplemented: runs cannot be listed in the order of a hash. Visibility lists them.
    [[noreturn]] static void list_concrete(ShardId shard);

private:
    Shards& shards_;
};

}  // namespace holdfast::store

// Every transaction of the store, and why it is right under snapshot isolation.
#pragma once

#include <holdfast/store/catalogue.hpp>

namespace holdfast::store::operation {

using enum Isolation;

// ---- Shards -----------------------------------------------------------------------------------

inline constexpr Operation get_shard{"GetShard", read_only, "one row"};
inline constexpr Operation create_shard{"CreateShard", one_statement, "its key"};
inline constexpr Operation update_shard{"UpdateShard", locks_what_it_reads, "shard"};
inline constexpr Operation assert_shard{"AssertShardOwnership", read_only, "one row"};

// ---- Runs -------------------------------------------------------------------------------------

// A row that does not exist cannot be locked: two transactions that create it meet at its key.
inline constexpr Operation create_run{"CreateWorkflowExecution",
                                      locks_what_it_reads,
                                      "shard, current run row, previous run; new run by key"};
inline constexpr Operation update_run{
    "UpdateWorkflowExecution", locks_what_it_reads, "shard, current run row, run; new run by key"};
inline constexpr Operation resolve_run{
    "ConflictResolveWorkflowExecution",
    locks_what_it_reads,
    "shard, current run row, reset run, current run; new run by key"};
inline constexpr Operation set_run{"SetWorkflowExecution", locks_what_it_reads, "shard, run"};
inline constexpr Operation reset_run{
    "ResetWorkflowExecution",
    locks_what_it_reads,
    "shard, current run row, base run, current run, base's branch; new run by key"};
inline constexpr Operation delete_run{
    "DeleteWorkflowExecution", locks_what_it_reads, "shard, current run row"};
inline constexpr Operation delete_items{
    "DeleteWorkflowExecutionItems", locks_what_it_reads, "shard, run, which must be gone"};
inline constexpr Operation delete_current_run{
    "DeleteCurrentWorkflowExecution", locks_what_it_reads, "shard, current run row"};
inline constexpr Operation get_current_run{"GetCurrentExecution", read_only, "one row"};
inline constexpr Operation get_run{"GetWorkflowExecution", read_only, "one snapshot of nine reads"};

// ---- History tasks ----------------------------------------------------------------------------

inline constexpr Operation add_tasks{"AddHistoryTasks", locks_what_it_reads, "shard"};
inline constexpr Operation get_tasks{"GetHistoryTasks", read_only, "one read"};
inline constexpr Operation complete_task{"CompleteHistoryTask", locks_what_it_reads, "shard"};
inline constexpr Operation complete_tasks{
    "RangeCompleteHistoryTasks", locks_what_it_reads, "shard, in every chunk"};
inline constexpr Operation put_dlq_task{
    "PutReplicationTaskToDLQ", locks_what_it_reads, "shard; of a task the first one stays"};
inline constexpr Operation get_dlq_tasks{"GetReplicationTasksFromDLQ", read_only, "one read"};
inline constexpr Operation delete_dlq_task{
    "DeleteReplicationTaskFromDLQ", locks_what_it_reads, "shard"};
inline constexpr Operation delete_dlq_tasks{
    "RangeDeleteReplicationTaskFromDLQ", locks_what_it_reads, "shard, in every chunk"};

// ---- History ----------------------------------------------------------------------------------

inline constexpr Operation append_nodes{
    "AppendHistoryNodes",
    locks_what_it_reads,
    "shard, the branch that a new one is forked from; node and branch by their keys"};
inline constexpr Operation delete_nodes{"DeleteHistoryNodes", locks_what_it_reads, "shard"};
inline constexpr Operation read_branch{"ReadHistoryBranch", read_only, "one snapshot"};
inline constexpr Operation fork_branch{"ForkHistoryBranch",
                                       locks_what_it_reads,
                                       "shard, parent's branch, which must not be on its way out"};
// What others need is read after the mark is committed, so of two deletions of branches that share
// nodes one at least sees the other's mark. A mark stays: such a branch cannot be forked any more.
inline constexpr Operation mark_branch{
    "DeleteHistoryBranch", locks_what_it_reads, "shard, branch; forks of it meet there"};
inline constexpr Operation delete_branch{
    "DeleteHistoryBranchRows", locks_what_it_reads, "shard; what a marked branch left, in chunks"};
inline constexpr Operation get_tree{"GetHistoryTreeContainingBranch", read_only, "one read"};
inline constexpr Operation scan_trees{"GetAllHistoryTreeBranches", read_only, "one read"};

// ---- Matching ---------------------------------------------------------------------------------

inline constexpr Operation create_task_queue{"CreateTaskQueue", one_statement, "its key"};
inline constexpr Operation get_task_queue{"GetTaskQueue", read_only, "one row"};
inline constexpr Operation update_task_queue{"UpdateTaskQueue", locks_what_it_reads, "queue"};
inline constexpr Operation delete_task_queue{
    "DeleteTaskQueue", one_statement, "queue, if it has the range"};
inline constexpr Operation list_task_queues{"ListTaskQueue", read_only, "one read"};
inline constexpr Operation add_queue_tasks{"CreateTasks", locks_what_it_reads, "queue"};
inline constexpr Operation get_queue_tasks{"GetTasks", read_only, "one read"};
inline constexpr Operation complete_queue_tasks{
    "CompleteTasksLessThan", locks_what_it_reads, "queue, in every chunk"};
inline constexpr Operation get_user_data{"GetTaskQueueUserData", read_only, "one row"};
inline constexpr Operation update_user_data{
    "UpdateTaskQueueUserData", locks_what_it_reads, "user data of all queues, each written"};
inline constexpr Operation list_user_data{"ListTaskQueueUserDataEntries", read_only, "one read"};
inline constexpr Operation get_builds{"GetTaskQueuesByBuildId", read_only, "one read"};

// ---- Namespaces -------------------------------------------------------------------------------

// The counter is the fence of all namespaces: every change and every deletion locks it.
inline constexpr Operation create_namespace{"CreateNamespace", locks_what_it_reads, "counter"};
inline constexpr Operation update_namespace{"UpdateNamespace", locks_what_it_reads, "counter"};
inline constexpr Operation delete_namespace{"DeleteNamespace", locks_what_it_reads, "counter"};
inline constexpr Operation get_namespace{"GetNamespace", read_only, "one row"};
inline constexpr Operation list_namespaces{"ListNamespaces", read_only, "one read"};
inline constexpr Operation get_namespace_metadata{"GetMetadata", read_only, "one row"};

// ---- The cluster ------------------------------------------------------------------------------

inline constexpr Operation save_cluster{"SaveClusterMetadata", locks_what_it_reads, "cluster"};
inline constexpr Operation get_cluster{"GetClusterMetadata", read_only, "one row"};
inline constexpr Operation list_clusters{"ListClusterMetadata", read_only, "one read"};
inline constexpr Operation delete_cluster{"DeleteClusterMetadata", idempotent, "deletes by key"};
inline constexpr Operation upsert_member{
    "UpsertClusterMembership", idempotent, "a host's own row, which it alone writes"};
inline constexpr Operation get_members{"GetClusterMembers", read_only, "one read"};
inline constexpr Operation prune_members{
    "PruneClusterMembership", idempotent, "deletes what has expired by the database's clock"};

// ---- Nexus ------------------------------------------------------------------------------------

inline constexpr Operation put_endpoint{
    "CreateOrUpdateNexusEndpoint", locks_what_it_reads, "table's version, endpoint"};
inline constexpr Operation delete_endpoint{
    "DeleteNexusEndpoint", locks_what_it_reads, "table's version, endpoint"};
inline constexpr Operation get_endpoint{"GetNexusEndpoint", read_only, "one row"};
inline constexpr Operation list_endpoints{"ListNexusEndpoints", read_only, "one snapshot"};

// ---- Queues -----------------------------------------------------------------------------------

inline constexpr Operation init_queue{"InitQueue", idempotent, "the first one's rows stay"};
inline constexpr Operation enqueue{"EnqueueMessage", locks_what_it_reads, "queue's metadata"};
inline constexpr Operation read_queue{"ReadMessages", read_only, "one read"};
inline constexpr Operation delete_message{"DeleteMessage", idempotent, "deletes by key"};
inline constexpr Operation delete_messages{
    "DeleteMessagesBefore", locks_what_it_reads, "queue's metadata"};
inline constexpr Operation update_acks{"UpdateAckLevel", locks_what_it_reads, "queue's metadata"};
inline constexpr Operation get_acks{"GetAckLevels", read_only, "one row"};

inline constexpr Operation create_named_queue{"CreateQueue", one_statement, "its key"};
inline constexpr Operation enqueue_named{
    "EnqueueNamedMessage", locks_what_it_reads, "queue's metadata"};
inline constexpr Operation read_named_queue{"ReadNamedMessages", read_only, "one snapshot"};
inline constexpr Operation delete_named_messages{
    "RangeDeleteMessages", locks_what_it_reads, "queue's metadata"};
inline constexpr Operation delete_named_rows{
    "RangeDeleteMessageRows", idempotent, "deletes in chunks what is not read any more"};
inline constexpr Operation list_named_queues{"ListQueues", read_only, "one snapshot"};

// ---- Visibility -------------------------------------------------------------------------------

// Attributes belong to the row: the transaction that writes the row writes them.
inline constexpr Operation insert_visibility{
    "InsertVisibility", locks_what_it_reads, "run's row, written if there is none"};
inline constexpr Operation replace_visibility{
    "ReplaceVisibility", locks_what_it_reads, "run's row, written if it is older"};
inline constexpr Operation delete_visibility{
    "DeleteVisibility", locks_what_it_reads, "run's row, deleted"};
inline constexpr Operation get_visibility{"GetVisibility", read_only, "one row"};
inline constexpr Operation list_visibility{"ListVisibility", read_only, "one read"};
inline constexpr Operation count_visibility{"CountVisibility", read_only, "one read"};

}  // namespace holdfast::store::operation

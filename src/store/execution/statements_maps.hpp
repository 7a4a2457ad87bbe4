// What a run has open, a table for each kind, with the same four statements: put, all, drop, clear.
// Timers and requests of signals are called by their users: a digest of the id stands in the key.
//
// The first two parameters are always the run's key, the third is the key within the map. Rows are
// put and dropped one by one: the statements of a transaction travel together, so a row costs no
// round trip, and one prepared statement serves any number of them.
#pragma once

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::Statement;

// ---- HistoryExecutionActivity

inline constexpr Statement put_activity{
    "store.put_activity",
    "INSERT INTO activity_info_maps (shard_id, run_id, schedule_id, "
    "data, data_encoding) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (shard_id, run_id, schedule_id) "
    "DO UPDATE SET data = excluded.data, data_encoding = excluded.data_encoding"};
inline constexpr Statement all_activity{
    "store.all_activity",
    "SELECT schedule_id, data, data_encoding FROM activity_info_maps "
    "WHERE shard_id = $1 AND run_id = $2"};
inline constexpr Statement drop_activity{"store.drop_activity",
                                         "DELETE FROM activity_info_maps "
                                         "WHERE shard_id = $1 AND run_id = $2 "
                                         "AND schedule_id = $3"};
inline constexpr Statement clear_activity{"store.clear_activity",
                                          "DELETE FROM activity_info_maps "
                                          "WHERE shard_id = $1 AND run_id = $2"};

// ---- HistoryExecutionTimer

inline constexpr Statement put_timer{
    "store.put_timer",
    "INSERT INTO timer_info_maps (shard_id, run_id, timer_digest, timer_id, data, data_encoding) "
    "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (shard_id, run_id, timer_digest) "
    "DO UPDATE SET data = excluded.data, data_encoding = excluded.data_encoding"};
inline constexpr Statement all_timer{"store.all_timer",
                                     "SELECT timer_id, data, data_encoding FROM timer_info_maps "
                                     "WHERE shard_id = $1 AND run_id = $2"};
inline constexpr Statement drop_timer{
    "store.drop_timer",
    "DELETE FROM timer_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 AND timer_digest = $3 AND timer_id = $4"};
inline constexpr Statement clear_timer{"store.clear_timer",
                                       "DELETE FROM timer_info_maps "
                                       "WHERE shard_id = $1 AND run_id = $2"};

// ---- HistoryExecutionChildWorkflow

inline constexpr Statement put_child{
    "store.put_child",
    "INSERT INTO child_execution_info_maps (shard_id, run_id, "
    "initiated_id, "
    "data, data_encoding) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (shard_id, run_id, initiated_id) "
    "DO UPDATE SET data = excluded.data, data_encoding = excluded.data_encoding"};
inline constexpr Statement all_child{
    "store.all_child",
    "SELECT initiated_id, data, data_encoding FROM child_execution_info_maps "
    "WHERE shard_id = $1 AND run_id = $2"};
inline constexpr Statement drop_child{"store.drop_child",
                                      "DELETE FROM child_execution_info_maps "
                                      "WHERE shard_id = $1 AND run_id = $2 "
                                      "AND initiated_id = $3"};
inline constexpr Statement clear_child{"store.clear_child",
                                       "DELETE FROM child_execution_info_maps "
                                       "WHERE shard_id = $1 AND run_id = $2"};

// ---- HistoryExecutionRequestCancel

inline constexpr Statement put_request_cancel{
    "store.put_request_cancel",
    "INSERT INTO request_cancel_info_maps (shard_id, run_id, "
    "initiated_id, "
    "data, data_encoding) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (shard_id, run_id, initiated_id) "
    "DO UPDATE SET data = excluded.data, data_encoding = excluded.data_encoding"};
inline constexpr Statement all_request_cancel{
    "store.all_request_cancel",
    "SELECT initiated_id, data, data_encoding FROM request_cancel_info_maps "
    "WHERE shard_id = $1 AND run_id = $2"};
inline constexpr Statement drop_request_cancel{"store.drop_request_cancel",
                                               "DELETE FROM request_cancel_info_maps "
                                               "WHERE shard_id = $1 AND run_id = $2 "
                                               "AND initiated_id = $3"};
inline constexpr Statement clear_request_cancel{"store.clear_request_cancel",
                                                "DELETE FROM request_cancel_info_maps "
                                                "WHERE shard_id = $1 AND run_id = $2"};

// ---- HistoryExecutionSignal

inline constexpr Statement put_signal{
    "store.put_signal",
    "INSERT INTO signal_info_maps (shard_id, run_id, initiated_id, "
    "data, data_encoding) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (shard_id, run_id, initiated_id) "
    "DO UPDATE SET data = excluded.data, data_encoding = excluded.data_encoding"};
inline constexpr Statement all_signal{
    "store.all_signal",
    "SELECT initiated_id, data, data_encoding FROM signal_info_maps "
    "WHERE shard_id = $1 AND run_id = $2"};
inline constexpr Statement drop_signal{"store.drop_signal",
                                       "DELETE FROM signal_info_maps "
                                       "WHERE shard_id = $1 AND run_id = $2 "
                                       "AND initiated_id = $3"};
inline constexpr Statement clear_signal{"store.clear_signal",
                                        "DELETE FROM signal_info_maps "
                                        "WHERE shard_id = $1 AND run_id = $2"};

// ---- HistoryExecutionSignalRequest

inline constexpr Statement put_signal_requested{
    "store.put_signal_requested",
    "INSERT INTO signals_requested_sets (shard_id, run_id, signal_digest, signal_id) "
    "VALUES ($1, $2, $3, $4) ON CONFLICT (shard_id, run_id, signal_digest) DO NOTHING"};
inline constexpr Statement all_signal_requested{"store.all_signal_requested",
                                                "SELECT signal_id FROM signals_requested_sets "
                                                "WHERE shard_id = $1 AND run_id = $2"};
inline constexpr Statement drop_signal_requested{
    "store.drop_signal_requested",
    "DELETE FROM signals_requested_sets "
    "WHERE shard_id = $1 AND run_id = $2 AND signal_digest = $3 AND signal_id = $4"};
inline constexpr Statement clear_signal_requested{"store.clear_signal_requested",
                                                  "DELETE FROM signals_requested_sets "
                                                  "WHERE shard_id = $1 AND run_id = $2"};

// ---- HistoryExecutionChasm

inline constexpr Statement put_chasm{
    "store.put_chasm",
    "INSERT INTO chasm_node_maps (shard_id, run_id, chasm_path, "
    "metadata, metadata_encoding, data, data_encoding) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7) "
    "ON CONFLICT (shard_id, run_id, chasm_path) "
    "DO UPDATE SET metadata = excluded.metadata, metadata_encoding = excluded.metadata_encoding, "
    "data = excluded.data, data_encoding = excluded.data_encoding"};
inline constexpr Statement all_chasm{
    "store.all_chasm",
    "SELECT chasm_path, metadata, metadata_encoding, data, data_encoding "
    "FROM chasm_node_maps "
    "WHERE shard_id = $1 AND run_id = $2"};
inline constexpr Statement drop_chasm{"store.drop_chasm",
                                      "DELETE FROM chasm_node_maps "
                                      "WHERE shard_id = $1 AND run_id = $2 "
                                      "AND chasm_path = $3"};
inline constexpr Statement clear_chasm{"store.clear_chasm",
                                       "DELETE FROM chasm_node_maps "
                                       "WHERE shard_id = $1 AND run_id = $2"};

// ---- What is left of a run that is gone: $3 rows at most, the first first

inline constexpr Statement shed_activity{
    "store.shed_activity",
    "DELETE FROM activity_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "AND schedule_id <= coalesce((SELECT schedule_id FROM activity_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "ORDER BY schedule_id LIMIT 1 OFFSET $3 - 1), (SELECT max(schedule_id) FROM activity_info_maps "
    "WHERE shard_id = $1 AND run_id = $2))"};
inline constexpr Statement shed_timer{
    "store.shed_timer",
    "DELETE FROM timer_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "AND timer_digest <= coalesce((SELECT timer_digest FROM timer_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "ORDER BY timer_digest LIMIT 1 OFFSET $3 - 1), "
    "(SELECT timer_digest FROM timer_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 ORDER BY timer_digest DESC LIMIT 1))"};
inline constexpr Statement shed_child{
    "store.shed_child",
    "DELETE FROM child_execution_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "AND initiated_id <= coalesce((SELECT initiated_id FROM child_execution_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "ORDER BY initiated_id LIMIT 1 OFFSET $3 - 1), (SELECT max(initiated_id) FROM "
    "child_execution_info_maps "
    "WHERE shard_id = $1 AND run_id = $2))"};
inline constexpr Statement shed_request_cancel{
    "store.shed_request_cancel",
    "DELETE FROM request_cancel_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "AND initiated_id <= coalesce((SELECT initiated_id FROM request_cancel_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "ORDER BY initiated_id LIMIT 1 OFFSET $3 - 1), (SELECT max(initiated_id) FROM "
    "request_cancel_info_maps "
    "WHERE shard_id = $1 AND run_id = $2))"};
inline constexpr Statement shed_signal{
    "store.shed_signal",
    "DELETE FROM signal_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "AND initiated_id <= coalesce((SELECT initiated_id FROM signal_info_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "ORDER BY initiated_id LIMIT 1 OFFSET $3 - 1), (SELECT max(initiated_id) FROM signal_info_maps "
    "WHERE shard_id = $1 AND run_id = $2))"};
inline constexpr Statement shed_signal_requested{
    "store.shed_signal_requested",
    "DELETE FROM signals_requested_sets "
    "WHERE shard_id = $1 AND run_id = $2 "
    "AND signal_digest <= coalesce((SELECT signal_digest FROM signals_requested_sets "
    "WHERE shard_id = $1 AND run_id = $2 "
    "ORDER BY signal_digest LIMIT 1 OFFSET $3 - 1), "
    "(SELECT signal_digest FROM signals_requested_sets "
    "WHERE shard_id = $1 AND run_id = $2 ORDER BY signal_digest DESC LIMIT 1))"};
inline constexpr Statement shed_chasm{
    "store.shed_chasm",
    "DELETE FROM chasm_node_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "AND chasm_path <= coalesce((SELECT chasm_path FROM chasm_node_maps "
    "WHERE shard_id = $1 AND run_id = $2 "
    "ORDER BY chasm_path LIMIT 1 OFFSET $3 - 1), (SELECT max(chasm_path) FROM chasm_node_maps "
    "WHERE shard_id = $1 AND run_id = $2))"};
inline constexpr Statement shed_buffered{
    "store.shed_buffered",
    "DELETE FROM buffered_events "
    "WHERE shard_id = $1 AND run_id = $2 "
    "AND id <= coalesce((SELECT id FROM buffered_events "
    "WHERE shard_id = $1 AND run_id = $2 "
    "ORDER BY id LIMIT 1 OFFSET $3 - 1), (SELECT max(id) FROM buffered_events "
    "WHERE shard_id = $1 AND run_id = $2))"};

}  // namespace holdfast::store::statements

// The demo's statements.
#pragma once

#include <holdfast/sql/statement.hpp>

namespace holdfast::app::ledger {

inline constexpr sql::Statement insert_entry{
    "demo.insert_entry",
    "INSERT INTO holdfast_demo_ledger (entry_id, run_id, kill_number, writer, transfer, amount) "
    "VALUES ($1, $2, $3, $4, $5, $6)"};

// One row per transfer: how many entries it has, and whether they balance.
inline constexpr sql::Statement read_transfers{
    "demo.read_transfers",
    "SELECT writer, transfer, COUNT(*), CAST(SUM(amount) AS BIGINT) FROM holdfast_demo_ledger "
    "WHERE run_id = $1 AND kill_number = $2 GROUP BY writer, transfer"};

inline constexpr sql::Statement delete_run{"demo.delete_run",
                                           "DELETE FROM holdfast_demo_ledger WHERE run_id = $1"};

}  // namespace holdfast::app::ledger

// The demo's shop: what a user's own program would hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/base/uuid.hpp>
#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>
#include <holdfast/sql/statement.hpp>

namespace holdfast::app::shop {

struct Order {
    std::string run;  // A UUID: whose ledger entries these are.
    std::string id;
    std::int64_t cents = 0;
    bool courier_fails = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Order, run, id, cents, courier_fails)

// What a person decides about an order.
inline constexpr flow::Channel<bool> approvals{"approval"};
// The workflow's status while it waits for that.
inline constexpr std::string_view waiting = "waiting for approval";

// The tracking number. Fails with "Declined", or with "NotShipped" after everything was undone.
flow::Workflow<std::string> checkout(flow::Context& ctx, Order order);

// Everything above, by name.
[[nodiscard]] flow::Registry registry();

// Called at the moments in which a process may be killed: "reserve", "charge", "refund".
using MomentHook = void (*)(std::string_view moment, const std::string& order);
// Which process this is, for the ledger. Before the first activity runs.
void begin_work(int worker, MomentHook hook);

inline constexpr sql::Statement insert_entry{
    "demo.insert_entry",
    "INSERT INTO holdfast_demo_ledger (entry_id, run_id, order_id, kind, cents, worker) "
    "VALUES ($1, $2, $3, $4, $5, $6)"};

inline constexpr sql::Statement read_ledger{
    "demo.read_ledger",
    "SELECT order_id, kind, COUNT(*), CAST(SUM(cents) AS BIGINT), MAX(worker) "
    "FROM holdfast_demo_ledger WHERE run_id = $1 GROUP BY order_id, kind"};

inline constexpr sql::Statement delete_run{"demo.delete_run",
                                           "DELETE FROM holdfast_demo_ledger WHERE run_id = $1"};

}  // namespace holdfast::app::shop

HOLDFAST_NAME(holdfast::app::shop::checkout, "shop.checkout");

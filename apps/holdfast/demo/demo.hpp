// holdfast demo: a shop's orders as workflows, a kill -9 at the worst moments, and a ledger that
// proves that every charge and every refund happened exactly once.
#pragma once

#include <string>

#include "command.hpp"

namespace holdfast::app {

struct DemoRequest {
    int orders = 6;
    bool keep = false;  // Keep the orders and the ledger.
};

// Returns exit_refused if the ledger shows otherwise.
int demo(const Context& context, const DemoRequest& request);

struct DemoWorkerRequest {
    int number = 0;
    // Where it shall wait to be killed: "charge" for the order `hold_order`; empty: nowhere.
    std::string hold_at;
    std::string hold_order;
};

// The process that is killed: runs the shop's workflows and activities until then, and prints
// "at MOMENT" once it has come to where it shall wait.
int demo_worker(const Context& context, const DemoWorkerRequest& request);

}  // namespace holdfast::app

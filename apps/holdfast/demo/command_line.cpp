// Command line of `holdfast demo`.
#include "demo/command_line.hpp"

namespace holdfast::app {
namespace {

constexpr int orders_min = 3;
constexpr int orders_max = 100;

}  // namespace

void add_demo(CommandParser& to, CLI::App& root, DemoRequests& into) {
    CLI::App* noun = to.add(root,
                            "demo",
                            "Process orders, kill the workers at the worst moments, and show that "
                            "every charge happens once.",
                            [&into](const Context& context) { return demo(context, into.demo); });
    noun->add_option("--orders", into.demo.orders, "Number of orders")
        ->check(CLI::Range(orders_min, orders_max))
        ->capture_default_str();
    noun->add_flag("--keep", into.demo.keep, "Orders and ledger stay in the database");

    // The process that the demo kills.
    CLI::App* worker = to.add(root, "demo-worker", "", [&into](const Context& context) {
        return demo_worker(context, into.worker);
    });
    worker->group("");
    worker->add_option("--number", into.worker.number)->required();
    worker->add_option("--hold-at", into.worker.hold_at);
    worker->add_option("--hold-order", into.worker.hold_order);
}

}  // namespace holdfast::app

// An actor: one workflow per charging station, which takes orders until it is told to stop, hears
// nothing for too long, or is cancelled. Whatever ends it, the current is switched off.
//
//   charger                       in memory
//   charger sqlite:grid.db        in a file
//
// All activities of one session run on the same worker, which may therefore keep a connection to
// the device.
#include <chrono>
#include <iostream>
#include <string>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>

namespace flow = holdfast::flow;
using namespace std::chrono_literals;

namespace {

struct Order {
    std::string verb;
    int amps = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Order, verb, amps)

struct Tally {
    int orders = 0;
    bool cancelled = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Tally, orders, cancelled)

inline constexpr flow::Channel<Order> inbox{"inbox"};
// A question that a running workflow answers from its memory.
inline constexpr flow::Query<int()> orders_so_far{"orders_so_far"};

void set_current(std::string station, int amps) {
    std::cout << station << ": " << amps << " A\n";
}

}  // namespace

HOLDFAST_NAME(set_current, "grid.set_current");

namespace {

flow::Workflow<Tally> charger(flow::Context& ctx, std::string station) {
    Tally tally;
    ctx.on(orders_so_far, [&tally] { return tally.orders; });
    bool stop = false;
    try {
        while (!stop) {
            auto event = co_await flow::any(ctx.receive(inbox), ctx.sleep(15min));
            const Order* order = std::get_if<0>(&event);
            stop = order == nullptr || order->verb == "stop";
            const int amps = stop ? 0 : order->amps;
            co_await ctx.activity<&set_current>(station, amps).session(station);
            ++tally.orders;
        }
    } catch (const flow::Cancelled&) {
        tally.cancelled = true;
    }
    if (tally.cancelled) {
        const flow::Shield shield = ctx.shield();  // Cancellation does not pierce this scope.
        co_await ctx.activity<&set_current>(station, 0).session(station);
    }
    co_return tally;
}

}  // namespace

HOLDFAST_NAME(charger, "grid.charger");

namespace {

void report(flow::Client& client, const std::string& station) {
    const auto tally = client.result<&charger>(station, 30s);
    std::cout << station << ": " << tally->orders << " orders"
              << (tally->cancelled ? ", then cancelled" : "") << '\n';
}

void run(const std::string& url) {
    auto store = flow::open(url);
    flow::Registry registry;
    registry.activity<&set_current>().workflow<&charger>();
    flow::Runtime runtime{store, registry};
    flow::Client client{store};
    const flow::StartOptions once{.duplicate = flow::DuplicatePolicy::use_existing};

    client.start_with<&charger>(once, "station-1", "station-1");
    client.signal("station-1", inbox, {.verb = "charge", .amps = 16});
    client.signal("station-1", inbox, {.verb = "charge", .amps = 32});
    client.signal("station-1", inbox, {.verb = "stop"});
    report(client, "station-1");

    if (client.start_with<&charger>(once, "station-2", "station-2")) {
        std::cout << "station-2 has had " << client.query("station-2", 30s, orders_so_far)
                  << " orders\n";
    }
    client.cancel("station-2", "the grid is overloaded");
    report(client, "station-2");
    runtime.drain(10s);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(argc > 1 ? argv[1] : "sqlite::memory:");
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "charger: " << error.what() << '\n';
        return 1;
    }
}

#include "demo/shop.hpp"

#include <chrono>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/sql/tx.hpp>

namespace holdfast::app::shop {
namespace {

using namespace std::chrono_literals;

constexpr auto approval_wait = 10min;  // Longer than the demo, so that it never ends.
constexpr auto second_thoughts = 400ms;

// Activities are plain functions, so what they know about their process is global.
int worker = 0;
MomentHook at_moment = [](std::string_view, const std::string&) {};

void take_time(const flow::ActivityContext& ctx, std::chrono::milliseconds time) {
    system_clock().sleep_until(std::chrono::steady_clock::now() + time, ctx.stop_token());
}

void book(sql::Tx& tx, const Order& order, std::string_view kind) {
    const auto run = Uuid::parse(order.run);
    if (!run) {
        throw flow::permanent("BadOrder", "the run is not a UUID");
    }
    // A count, not an exec: the row is written, and not committed, when the moment comes.
    (void)tx.count(insert_entry, Uuid::v4(), *run, order.id, kind, order.cents, worker);
    at_moment(kind, order.id);
}

}  // namespace

std::string reserve_stock(flow::ActivityContext& ctx, Order order) {
    at_moment("reserve", order.id);
    take_time(ctx, 150ms);
    return "hold for " + order.id;
}

int check_fraud(flow::ActivityContext& ctx, Order order) {
    take_time(ctx, 250ms);
    return static_cast<int>(order.cents % 10);
}

// In the same transaction as the activity's answer: with the ledger in the same database it
// happens exactly once.
void charge(sql::Tx& tx, Order order) {
    book(tx, order, "charge");
}

void refund(sql::Tx& tx, Order order) {
    book(tx, order, "refund");
}

std::string ship(flow::ActivityContext& ctx, Order order) {
    take_time(ctx, 200ms);
    if (order.courier_fails) {
        throw flow::Failure("NoCourier", "no courier is available");
    }
    return "parcel of " + order.id;
}

void release_stock(flow::ActivityContext& ctx, std::string) {
    take_time(ctx, 50ms);
}

}  // namespace holdfast::app::shop

HOLDFAST_NAME(holdfast::app::shop::reserve_stock, "shop.reserve_stock");
HOLDFAST_NAME(holdfast::app::shop::check_fraud, "shop.check_fraud");
HOLDFAST_NAME(holdfast::app::shop::charge, "shop.charge");
HOLDFAST_NAME(holdfast::app::shop::refund, "shop.refund");
HOLDFAST_NAME(holdfast::app::shop::ship, "shop.ship");
HOLDFAST_NAME(holdfast::app::shop::release_stock, "shop.release_stock");

namespace holdfast::app::shop {

flow::Workflow<std::string> checkout(flow::Context& ctx, Order order) {
    flow::Saga undo{ctx};
    const auto checks =
        co_await flow::all(ctx.activity<&reserve_stock>(order), ctx.activity<&check_fraud>(order));
    undo.push<&release_stock>(std::get<0>(checks));

    ctx.status(waiting.data());
    const auto decision = co_await flow::any(ctx.receive(approvals), ctx.sleep(approval_wait));
    if (decision.index() != 0 || !std::get<0>(decision)) {
        co_await undo.unwind();
        throw flow::permanent("Declined", "the order was not approved");
    }
    ctx.status("approved");
    co_await ctx.sleep(second_thoughts);

    co_await ctx.activity<&charge>(order);
    undo.push<&refund>(order);
    ctx.status("paid");
    const auto parcel =
        co_await ctx.activity<&ship>(order).retry({.attempts = 2, .first = 200ms}).outcome();
    if (!parcel) {
        ctx.status("undoing");
        co_await undo.unwind();
        ctx.status("refunded");
        throw flow::permanent("NotShipped", parcel.failure().text());
    }
    co_return *parcel;
}

flow::Registry registry() {
    flow::Registry registry;
    registry.workflow<&checkout>()
        .activity<&reserve_stock>()
        .activity<&check_fraud>()
        .activity<&charge>()
        .activity<&refund>()
        .activity<&ship>()
        .activity<&release_stock>();
    return registry;
}

void begin_work(int number, MomentHook hook) {
    worker = number;
    at_moment = hook;
}

}  // namespace holdfast::app::shop

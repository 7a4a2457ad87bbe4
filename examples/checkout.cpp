// An order: stock is held, money is taken, a courier is booked. If a step fails for good, the ones
// before it are undone, newest first.
//
//   checkout                      in memory
//   checkout sqlite:shop.db       in a file; run it twice, and the second run finds it all done
//
// The money is a row in the program's own table, written by an activity that takes a sql::Tx&: the
// row and the fact that the activity has run commit together, so it is written exactly once, even
// if the process is killed at the worst moment.
#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/schema.hpp>

namespace flow = holdfast::flow;
namespace sql = holdfast::sql;
using namespace std::chrono_literals;

namespace {

struct Basket {
    std::string order;
    std::string city;
    std::int64_t cents = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Basket, order, city, cents)

struct Receipt {
    std::string order;
    std::int64_t cents = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Receipt, order, cents)

constexpr std::array<sql::MigrationFile, 1> schema_files{{{"0001_payments", R"sql(
    CREATE TABLE example_payments (
        order_id TEXT NOT NULL PRIMARY KEY,
        cents {bigint} NOT NULL
    ) {strict};
)sql"}}};
constexpr sql::SchemaPart schema{.name = "example_payments", .files = schema_files};

constexpr sql::Statement insert_payment{
    "shop.insert_payment", "INSERT INTO example_payments (order_id, cents) VALUES ($1, $2)"};
constexpr sql::Statement delete_payment{"shop.delete_payment",
                                        "DELETE FROM example_payments WHERE order_id = $1"};
constexpr sql::Statement list_payments{
    "shop.list_payments", "SELECT order_id, cents FROM example_payments ORDER BY order_id"};

// --- activities: ordinary functions that do something in the world

std::string reserve_stock(flow::ActivityContext& ctx, Basket basket) {
    if (ctx.attempt() == 1 && ctx.event() == 2) {
        throw flow::Failure("WarehouseBusy", "the warehouse does not answer");  // Tried again.
    }
    std::cout << basket.order << ": stock is held\n";
    return "hold-" + basket.order;
}
void release_stock(std::string hold) {
    std::cout << hold << ": stock is free again\n";
}

// In one transaction with its own answer. It must do nothing but this: it may run again.
Receipt capture(sql::Tx& tx, Basket basket) {
    tx.exec(insert_payment, basket.order, basket.cents);
    return {.order = basket.order, .cents = basket.cents};
}
void refund(sql::Tx& tx, Receipt receipt) {
    tx.exec(delete_payment, receipt.order);
}

void book_courier(Basket basket, Receipt receipt) {
    if (basket.city == "Atlantis") {
        throw flow::permanent("NoRoute",
                              "no courier delivers to " + basket.city);  // Never tried again.
    }
    std::cout << receipt.order << ": the courier is booked\n";
}

}  // namespace

HOLDFAST_NAME(reserve_stock, "shop.reserve_stock");
HOLDFAST_NAME(release_stock, "shop.release_stock");
HOLDFAST_NAME(capture, "shop.capture");
HOLDFAST_NAME(refund, "shop.refund");
HOLDFAST_NAME(book_courier, "shop.book_courier");

namespace {

// --- the workflow: what happens, in which order, whatever happens to the process

flow::Workflow<Receipt> checkout(flow::Context& ctx, Basket basket) {
    flow::Saga undo{ctx};
    std::exception_ptr failed;
    Receipt receipt;
    try {
        std::string hold =
            co_await ctx.activity<&reserve_stock>(basket).retry({.attempts = 4, .first = 5ms});
        undo.push<&release_stock>(hold);
        Receipt paid = co_await ctx.activity<&capture>(basket);
        undo.push<&refund>(paid);
        co_await ctx.activity<&book_courier>(basket, paid).timeout(2min);
        undo.dismiss();
        receipt = paid;
    } catch (const flow::Failure&) {
        failed = std::current_exception();  // A handler cannot await; so the undoing waits below.
    }
    if (failed) {
        co_await undo.unwind();
        std::rethrow_exception(failed);
    }
    co_return receipt;
}

}  // namespace

HOLDFAST_NAME(checkout, "shop.checkout");

namespace {

void tell(flow::Client& client, const Basket& basket) {
    // A second start gets the same instance: the order's number is its id.
    const flow::StartOptions once{.duplicate = flow::DuplicatePolicy::use_existing};
    client.start_with<&checkout>(once, basket.order, basket);
    const auto receipt = client.result<&checkout>(basket.order, 30s);
    if (receipt) {
        std::cout << basket.order << ": paid " << receipt->cents << " cents\n";
    } else {
        std::cout << basket.order << ": failed, " << receipt.failure().message << '\n';
    }
}

void run(const std::string& url) {
    auto store = flow::open(url);
    sql::schema_apply(store->database(), schema, {});
    flow::Registry registry;
    registry.activity<&reserve_stock>()
        .activity<&release_stock>()
        .activity<&capture>()
        .activity<&refund>()
        .activity<&book_courier>()
        .workflow<&checkout>("1.0.0");
    flow::Runtime runtime{store, registry};
    flow::Client client{store};

    tell(client, {.order = "order-41", .city = "Ulm", .cents = 1999});
    tell(client, {.order = "order-42", .city = "Atlantis", .cents = 4200});

    const auto payments = store->database().transact(
        "shop.look", {.read_only = true}, [](sql::Tx& tx) { return tx.query(list_payments); });
    for (const sql::Row payment : payments) {
        const auto [order, cents] = payment.as<std::string, std::int64_t>();
        std::cout << "in the ledger: " << order << ' ' << cents << '\n';
    }
    runtime.drain(10s);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(argc > 1 ? argv[1] : "sqlite::memory:");
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "checkout: " << error.what() << '\n';
        return 1;
    }
}

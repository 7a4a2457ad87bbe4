// The steps of the demo; demo.cpp prints them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.hpp"
#include "command.hpp"
#include "demo/shop.hpp"

#include <holdfast/base/subprocess.hpp>
#include <holdfast/flow/client.hpp>
#include <holdfast/flow/store.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::app {

// One kill -9, and when it was: since the story began, and by the wall clock.
struct Kill {
    int worker = 0;
    std::string_view moment;  // "reserve", "approval", "charge", "refund"
    std::chrono::milliseconds at{};
    flow::Moment when{};
};

// What became of one order, by its workflow and by the ledger.
struct OrderEnd {
    shop::Order order;
    bool approved = true;
    flow::InstanceInfo info;
    std::int64_t charges = 0;
    std::int64_t refunds = 0;
    std::int64_t charged_cents = 0;
    std::int64_t refunded_cents = 0;
    std::int64_t charged_by = 0;  // Number of the worker; 0: none.
    std::int64_t refunded_by = 0;

    // Paid once if it was approved, paid back once if the courier failed, and never else.
    [[nodiscard]] bool clean() const;
};

class Story {
public:
    // `prefix` goes before the ids of the orders. Requires: the tables are there.
    Story(const Context& context, const std::string& url, int orders, std::string prefix);

    [[nodiscard]] const std::vector<shop::Order>& orders() const noexcept { return orders_; }
    // The order that is in the middle of something at every kill, and whose courier fails.
    [[nodiscard]] const shop::Order& hero() const noexcept { return orders_[1]; }
    [[nodiscard]] flow::Client& client() noexcept { return client_; }

    void place_orders();
    // Starts a worker and kills it when it comes to that moment of the hero's order.
    Kill kill_at(std::string_view moment, Progress& progress);
    // Starts a worker, kills it when all orders wait for approval, and decides about them while no
    // worker runs.
    Kill kill_while_all_wait(Progress& progress);
    // A last worker, until every order has ended.
    std::chrono::milliseconds finish(Progress& progress);

    [[nodiscard]] std::vector<OrderEnd> ends();
    void clean_up();

private:
    [[nodiscard]] bool approves(std::size_t order) const noexcept;
    [[nodiscard]] SubprocessOptions worker(std::string_view hold_at);
    // Looks at the orders again and again until all are as `done` says.
    void watch(Subprocess& child,
               std::string_view what,
               Progress& progress,
               bool (*done)(const flow::InstanceInfo&));
    // Of an order that was placed.
    [[nodiscard]] flow::InstanceInfo info_of(const shop::Order& order);
    [[nodiscard]] std::chrono::milliseconds age() const;
    [[nodiscard]] Kill kill(Subprocess& child, std::string_view moment) const;
    [[noreturn]] void throw_ended() const;

    const Context& context_;
    std::string url_;
    sql::Database db_;
    flow::Store store_;
    flow::Client client_;
    Uuid run_ = Uuid::v4();
    std::vector<shop::Order> orders_;
    int workers_ = 0;
    Steady began_ = std::chrono::steady_clock::now();
};

}  // namespace holdfast::app

// A loop without an end: page after page of accounts is settled, each account by a child workflow
// of its own. Every few pages the workflow begins anew with what it has to remember, so that its
// history never grows long.
//
//   settlement                      in memory
//   settlement sqlite:books.db      in a file
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>

namespace flow = holdfast::flow;
using namespace std::chrono_literals;

namespace {

struct Page {
    std::vector<std::string> accounts;
    std::string next;
    bool last = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Page, accounts, next, last)

constexpr int pages_count = 7;
constexpr int accounts_per_page = 3;
constexpr int pages_per_execution = 3;

Page read_page(std::string cursor) {
    const int number = cursor.empty() ? 0 : std::stoi(cursor);
    Page page;
    page.next = std::to_string(number + 1);
    page.last = number + 1 == pages_count;
    for (int i = 0; i < accounts_per_page; ++i) {
        page.accounts.push_back(std::to_string(number * accounts_per_page + i));
    }
    return page;
}

// What an account brings in, in cents.
std::int64_t book(std::string account) {
    return 100 + std::stoi(account);
}

}  // namespace

HOLDFAST_NAME(read_page, "books.read_page");
HOLDFAST_NAME(book, "books.book");

namespace {

flow::Workflow<std::int64_t> settle(flow::Context& ctx, std::string account) {
    std::int64_t cents = co_await ctx.activity<&book>(account).retry({.attempts = 5});
    co_return cents;
}

}  // namespace

HOLDFAST_NAME(settle, "books.settle");

namespace {

flow::Workflow<std::int64_t> settlement(flow::Context& ctx,
                                        std::string cursor,
                                        std::int64_t settled) {
    for (int i = 0; i < pages_per_execution; ++i) {
        Page page = co_await ctx.activity<&read_page>(cursor);
        std::vector<flow::Op<std::int64_t>> children;
        for (const std::string& account : page.accounts) {
            children.push_back(ctx.child<&settle>(account).id("settle/" + account));
        }
        for (std::int64_t cents : co_await flow::all(std::move(children))) {
            settled += cents;
        }
        ctx.kv().set("settled", settled);  // Others can read it at any time.
        cursor = page.next;
        if (page.last) {
            co_return settled;  // A real one would sleep for five minutes and look again.
        }
    }
    co_return flow::again(cursor, settled);  // Checked against the parameters above.
}

}  // namespace

HOLDFAST_NAME(settlement, "books.settlement");

namespace {

void run(const std::string& url) {
    auto store = flow::open(url);
    flow::Registry registry;
    registry.activity<&read_page>().activity<&book>().workflow<&settle>().workflow<&settlement>();
    flow::Runtime runtime{store, registry};
    flow::Client client{store};

    const flow::StartOptions once{.duplicate = flow::DuplicatePolicy::use_existing};
    client.start_with<&settlement>(once, "settlement", std::string(), 0);
    const auto total = client.result<&settlement>("settlement", 60s);
    std::cout << "settled " << total.value() << " cents";
    std::cout << " in " << client.executions("settlement").size() << " executions";
    std::cout << " with " << client.tree("settlement").size() - 1 << " children\n";
    std::cout << "kept: " << client.kv<std::int64_t>("settlement", "settled").value() << '\n';
    runtime.drain(10s);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(argc > 1 ? argv[1] : "sqlite::memory:");
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "settlement: " << error.what() << '\n';
        return 1;
    }
}

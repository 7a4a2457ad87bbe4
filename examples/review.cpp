// A human decision, with reminders and one deadline for the whole.
//
//   review                       in memory
//   review sqlite:review.db      in a file
//
// Three loans: one is granted at once, one after a reminder, and one without a decision expires.
// A workflow that waits costs a row in the database; days here are milliseconds.
#include <chrono>
#include <iostream>
#include <string>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>

namespace flow = holdfast::flow;
using namespace std::chrono_literals;

namespace {

constexpr auto day = 40ms;

struct Loan {
    std::string id;
    std::string officer;
    int days = 0;  // To decide.
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Loan, id, officer, days)

struct Decision {
    bool granted = false;
    std::string by;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Decision, granted, by)

// A mailbox: messages wait in it, also those that come before anybody asks.
inline constexpr flow::Channel<Decision> decisions{"decision"};

// Here a mail would be sent.
void nudge(std::string /*officer*/) {}

}  // namespace

HOLDFAST_NAME(nudge, "review.nudge");

namespace {

flow::Workflow<std::string> review(flow::Context& ctx, Loan loan) {
    auto deadline = ctx.start(ctx.sleep(loan.days * day));  // One timer for the whole loop.
    for (int reminders = 1;; ++reminders) {
        auto first = co_await flow::any(ctx.receive(decisions), deadline.ref(), ctx.sleep(day));
        if (const Decision* decision = std::get_if<0>(&first)) {
            co_return decision->granted ? "granted by " + decision->by : "declined";
        }
        if (first.index() == 1) {
            co_return "expired";
        }
        co_await ctx.activity<&nudge>(loan.officer);
        ctx.status({{"reminders", reminders}});
    }
}

}  // namespace

HOLDFAST_NAME(review, "review.loan");

namespace {

void submit(flow::Client& client, const Loan& loan) {
    const flow::StartOptions once{.duplicate = flow::DuplicatePolicy::use_existing};
    client.start_with<&review>(once, loan.id, loan);
}

void run(const std::string& url) {
    auto store = flow::open(url);
    flow::Registry registry;
    registry.activity<&nudge>().workflow<&review>();
    flow::Runtime runtime{store, registry};
    flow::Client client{store};

    submit(client, {.id = "loan-1", .officer = "ann", .days = 1'000});
    submit(client, {.id = "loan-2", .officer = "ann", .days = 1'000});
    submit(client, {.id = "loan-3", .officer = "ann", .days = 3});
    client.signal("loan-1", decisions, {.granted = true, .by = "bob"});
    (void)client.wait_for_status("loan-2", 0, 30s);  // The reminder was sent.
    client.signal("loan-2", decisions, {.granted = true, .by = "ann"});

    for (const char* id : {"loan-1", "loan-2", "loan-3"}) {
        const auto verdict = client.result<&review>(id, 30s);
        std::cout << id << ": " << verdict.value() << '\n';
    }
    runtime.drain(10s);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(argc > 1 ? argv[1] : "sqlite::memory:");
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "review: " << error.what() << '\n';
        return 1;
    }
}

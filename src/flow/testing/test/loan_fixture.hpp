// The workflows of the kit's tests: a loan that waits for a decision.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>

namespace holdfast::flow::tests {

using namespace std::chrono_literals;

struct Loan {
    std::string id;
    std::string officer;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Loan, id, officer)

inline constexpr Channel<std::string> decisions{"decision"};
inline constexpr Query<int()> reminders_so_far{"reminders_so_far"};
inline constexpr Update<int(int)> set_patience{"set_patience"};

inline void nudge(const std::string& /*officer*/) {}
inline int quote(const std::string& bank) {
    return static_cast<int>(bank.size());
}

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::nudge, "test.nudge");
HOLDFAST_NAME(holdfast::flow::tests::quote, "test.quote");

namespace holdfast::flow::tests {

// Reminds an officer every day, for three days.
inline Workflow<std::string> review(Context& ctx, Loan loan) {
    int reminders = 0;
    ctx.on(reminders_so_far, [&reminders] { return reminders; });
    auto deadline = ctx.start(ctx.sleep(72h));
    for (;;) {
        auto first = co_await any(ctx.receive(decisions), deadline.ref(), ctx.sleep(24h));
        if (const std::string* decision = std::get_if<0>(&first)) {
            co_return *decision;
        }
        if (first.index() == 1) {
            co_return "expired";
        }
        co_await ctx.activity<&nudge>(loan.officer);
        ++reminders;
    }
}

// The best of three offers.
inline Workflow<int> tender(Context& ctx, std::string prefix) {
    std::vector<Op<int>> offers;
    for (const char* bank : {"a", "bb", "ccc"}) {
        offers.push_back(ctx.activity<&quote>(prefix + bank));
    }
    int best = 0;
    for (const int offer : co_await all(std::move(offers))) {
        best = std::max(best, offer);
    }
    co_return best;
}

// One offer, in time or not at all.
inline Workflow<std::string> hurry(Context& ctx, std::string bank) {
    auto offer = co_await ctx.activity<&quote>(bank).timeout(2min).outcome();
    co_return offer ? std::to_string(*offer) : offer.failure().text();
}

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::review, "test.review");
HOLDFAST_NAME(holdfast::flow::tests::tender, "test.tender");
HOLDFAST_NAME(holdfast::flow::tests::hurry, "test.hurry");

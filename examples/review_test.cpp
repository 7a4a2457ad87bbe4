// A test of a workflow that takes three days, in a few milliseconds: no database, no threads, no
// sleeping. The workflow is that of review.cpp with real days; activities are played by the test,
// and the clock moves by itself.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>
#include <holdfast/flow_testing/run.hpp>

namespace flow = holdfast::flow;
using namespace std::chrono_literals;

namespace {

struct Decision {
    bool granted = false;
    std::string by;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Decision, granted, by)

inline constexpr flow::Channel<Decision> decisions{"decision"};

void nudge(std::string /*officer*/) {}

}  // namespace

HOLDFAST_NAME(nudge, "review.nudge");

namespace {

flow::Workflow<std::string> review(flow::Context& ctx, std::string officer) {
    auto deadline = ctx.start(ctx.sleep(72h));  // One timer for the whole loop.
    for (;;) {
        auto first = co_await flow::any(ctx.receive(decisions), deadline.ref(), ctx.sleep(24h));
        if (const Decision* decision = std::get_if<0>(&first)) {
            co_return decision->granted ? "granted by " + decision->by : "declined";
        }
        if (first.index() == 1) {
            co_return "expired";
        }
        co_await ctx.activity<&nudge>(officer);
    }
}

}  // namespace

HOLDFAST_NAME(review, "review.loan");

namespace {

TEST(Review, IsGrantedByWhoeverDecides) {
    const Decision decision{.granted = true, .by = "bob"};
    EXPECT_EQ(flow::test::run<&review>("ann").signal(decisions, decision).result(),
              "granted by bob");
}

TEST(Review, RemindsEveryDayUntilSomebodyDecides) {
    std::vector<std::string> nudged;
    const std::string end = flow::test::run<&review>("ann")
                                .on<&nudge>([&](std::string who) { nudged.push_back(who); })
                                .after(30h)
                                .signal(decisions, {.granted = false, .by = "ann"})
                                .result();
    EXPECT_EQ(end, "declined");
    EXPECT_EQ(nudged, std::vector<std::string>{"ann"});
}

TEST(Review, ExpiresIfNobodyDecides) {
    auto story = flow::test::run<&review>("ann").on<&nudge>();
    EXPECT_EQ(story.result(), "expired");
    EXPECT_EQ(story.world().calls<&nudge>(), 2);
}

// The mail server is down: the workflow fails with what the activity said.
TEST(Review, FailsIfNobodyCanBeReminded) {
    const auto outcome = flow::test::run<&review>("ann")
                             .on<&nudge>([](std::string) { throw flow::Failure("Mail", "down"); })
                             .outcome();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.failure().type, "Mail");
}

}  // namespace

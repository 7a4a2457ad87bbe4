// A crowd of messages that comes while turns run, from several threads, and runtimes that die on
// the way.
#include <cstdlib>
#include <thread>

#include "behaviour/test/behaviour_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

constexpr Channel<std::int64_t> crowd{"crowd"};
constexpr Channel<std::string> opening{"opening"};
constexpr std::int64_t senders = 4;

// Reads what comes; each sender's numbers rise. A message is sender + senders * n. Behind a gate
// the messages pile up until it opens.
Workflow<std::string> sums(Context& ctx, std::int64_t count, bool gated) {
    if (gated) {
        co_await ctx.receive(opening);
    }
    std::vector<std::int64_t> next(senders, 0);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t number = co_await ctx.receive(crowd);
        const auto sender = static_cast<std::size_t>(number % senders);
        if (number / senders != next[sender]++) {
            co_return "out of order";
        }
        ctx.status(i + 1);
    }
    co_return "read " + std::to_string(count);
}

}  // namespace
}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::sums, "test.sums");

namespace holdfast::flow::tests {
namespace {

// Sends `count` messages from each sender while runtimes come and go, and reads them all.
void send_and_read(std::int64_t count) {
    StoreFixture place(test::Backend::sqlite);
    Client client(*place.store);
    Registry registry = test_registry();
    registry.workflow<&sums>();
    RuntimeOptions options;
    options.shadow_replay_every = 8;
    client.start<&sums>("w", senders * count, false);
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(senders));
    for (std::int64_t sender = 0; sender < senders; ++sender) {
        threads.emplace_back([&place, sender, count] {
            Client mine(*place.store);
            for (std::int64_t n = 0; n < count; ++n) {
                mine.signal("w", crowd, sender + senders * n);
            }
        });
    }
    for (std::int64_t seen_version = 0; !is_final(client.info("w")->status);) {
        const Runtime runtime(*place.store, registry, options);
        seen_version = client.wait_for_status("w", seen_version, 60s).status_version;
        seen_version = client.wait_for_status("w", seen_version, 60s).status_version;
    }
    EXPECT_EQ(client.result<&sums>("w", 0ms).value(), "read " + std::to_string(senders * count));
    EXPECT_EQ(client.stats().messages, 0);
}

TEST(CrowdThreads, TenThousandMessagesThatComeWhileTurnsRunAreAllRead) {
    send_and_read(2'500);
}

TEST(CrowdThreads, MessagesThatPiledUpAreReadInSeveralTurns) {
    constexpr std::int64_t count = 600;
    StoreFixture place(test::Backend::sqlite);
    Client client(*place.store);
    Registry registry = test_registry();
    registry.workflow<&sums>();
    client.start<&sums>("w", senders * count, true);
    for (std::int64_t i = 0; i < senders * count; ++i) {
        client.signal("w", crowd, i);
    }
    {
        const Runtime runtime(*place.store, registry);
        client.signal("w", opening, "open");
        (void)client.wait_for_status("w", 0, 60s);
    }
    const Runtime runtime(*place.store, registry);  // From the history, with its portions.
    EXPECT_EQ(client.result<&sums>("w", 60s).value(), "read 2400");
    std::size_t continued = 0;
    for (const Event& event : client.history("w")) {
        continued += std::holds_alternative<TurnContinued>(event.body) ? 1 : 0;
    }
    EXPECT_GE(continued, 8U);
    EXPECT_EQ(check_replay("w", &detail::run_program<&sums>, client.history("w")), std::nullopt);
}

TEST(CrowdThreads, SoakForAMinute) {
    if (std::getenv("HOLDFAST_SOAK") == nullptr) {  // NOLINT(concurrency-mt-unsafe)
        send_and_read(300);
        return;
    }
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < until) {
        send_and_read(3'500);
    }
}

}  // namespace
}  // namespace holdfast::flow::tests

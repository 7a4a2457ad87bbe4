// A morning in the life of a pool, in a moment: nothing leaks, and no borrower finds it empty.
#include <algorithm>
#include <deque>

#include <gtest/gtest.h>

#include <holdfast/pool/machine.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

// 200 connections that live for a minute, for four hours.
TEST(MachineDay, ReplacesManyThousandConnectionsAndKeepsNone) {
    Config config = reservoir(200);
    config.life = 60s;
    config.life_jitter = 6s;
    config.guard = 5s;
    config.lead = 5s;
    config.limits.spread_margin = 10s;
    Machine machine(config, 1);

    Steady now{1h};
    const Steady noon = now + 4h;
    constexpr auto opening_takes = 50ms;
    std::deque<std::pair<Steady, ConnectionId>> opening;
    Actions actions;
    std::uint64_t opened = 0;
    std::uint32_t highest = 0;
    bool filled = false;
    machine.step(now, Tick{}, actions);
    while (now < noon) {
        for (std::size_t i = 0; i < actions.size(); ++i) {  // Closing one can open another.
            const Action action = actions[i];
            if (const auto* open = std::get_if<Open>(&action)) {
                opening.emplace_back(now + opening_takes, open->connection);
                highest = std::max(highest, open->connection.slot);
            } else if (const auto* close = std::get_if<Close>(&action)) {
                ASSERT_EQ(close->reason, Reason::expired);
                machine.step(now, Closed{close->connection}, actions);
            }
        }
        actions.clear();
        const Counts counts = machine.counts();
        filled = filled || counts.ready == config.target;
        ASSERT_LE(counts.total(), config.target + config.overshoot);
        ASSERT_TRUE(!filled || counts.ready >= config.target * 9 / 10) << "it never runs low";

        const Steady next = opening.empty() ? Steady::max() : opening.front().first;
        now = std::max(now, std::min(next, machine.next_wake()));
        if (now == next) {
            machine.step(now, Opened{opening.front().second}, actions);
            opening.pop_front();
            ++opened;
        } else {
            machine.step(now, Tick{}, actions);
        }
    }
    EXPECT_GT(opened, 40'000U);
    EXPECT_LT(highest, static_cast<std::uint32_t>(config.target + config.overshoot))
        << "places are used again";
}

// 50 connections with the usual lives, for a day in which there are no tokens for a minute, again
// and again. Some lives end in just that minute.
TEST(MachineDay, AMinuteWithoutCredentialsHurtsNobodyWhoBorrows) {
    Config config = reservoir(50);
    config.lead = 30s;
    Machine machine(config, 1);
    const Steady begin{1h};
    Steady now = begin;
    constexpr auto opening_takes = 50ms;
    const auto outage = [&] { return (now - begin) % 7min >= 6min; };
    std::deque<std::pair<Steady, ConnectionId>> opening;
    std::deque<ConnectionId> lent;
    Actions actions;
    int failed = 0;
    bool filled = false;
    Steady next_borrow = begin;
    machine.step(now, Tick{}, actions);
    while (now < begin + 24h) {
        for (std::size_t i = 0; i < actions.size(); ++i) {  // Closing one can open another.
            const Action action = actions[i];
            if (const auto* open = std::get_if<Open>(&action)) {
                opening.emplace_back(now + opening_takes, open->connection);
            } else if (const auto* close = std::get_if<Close>(&action)) {
                ASSERT_EQ(close->reason, Reason::expired);
                ASSERT_EQ(std::count(lent.begin(), lent.end(), close->connection), 0);
                machine.step(now, Closed{close->connection}, actions);
            } else if (const auto* lend = std::get_if<Lend>(&action)) {
                lent.push_back(lend->connection);
            } else {
                ASSERT_FALSE(filled) << "somebody was refused";
            }
        }
        actions.clear();
        const Counts counts = machine.counts();
        filled = filled || counts.ready == config.target;
        ASSERT_TRUE(!filled || counts.ready + counts.in_use >= config.target * 9 / 10);

        const Steady opened = opening.empty() ? Steady::max() : opening.front().first;
        now = std::max(now, std::min({opened, machine.next_wake(), next_borrow}));
        if (now == opened) {
            const ConnectionId connection = opening.front().second;
            opening.pop_front();
            if (outage()) {
                ++failed;
                machine.step(now,
                             OpenFailed{.connection = connection, .failure = FailureClass::auth},
                             actions);
            } else {
                machine.step(now, Opened{connection}, actions);
            }
        } else if (now == next_borrow) {  // Ten are lent at any time, each for five seconds.
            next_borrow += 500ms;
            if (lent.size() >= 10) {
                machine.step(now, GiveBack{.connection = lent.front()}, actions);
                lent.pop_front();
            }
            machine.step(now, Borrow{.waiter = WaiterId{1}, .deadline = now}, actions);
        } else {
            machine.step(now, Tick{}, actions);
        }
    }
    EXPECT_GT(failed, 24) << "else nobody tried in those minutes";
}

}  // namespace
}  // namespace holdfast::pool

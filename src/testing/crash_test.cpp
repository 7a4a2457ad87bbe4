#include <holdfast/testing/crash.hpp>

#include <array>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;
using Ids = std::vector<std::int64_t>;

TEST(Victim, IsKilledInTheMiddleOfItsWork) {
    Victim victim([](Witness& witness) {
        for (std::int64_t id = 0;; ++id) {
            witness.acknowledged(id);
        }
    });
    const Ids ids = victim.kill_after(100, Deadline::after(20s));
    ASSERT_GE(ids.size(), 100U);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(ids[i], static_cast<std::int64_t>(i));
    }
}

TEST(Victim, MayUseThreadsOfItsOwn) {
    constexpr std::size_t writers = 4;
    Victim victim([](Witness& witness) {
        std::vector<std::jthread> threads;
        for (std::int64_t id = 0; id < static_cast<std::int64_t>(writers); ++id) {
            threads.emplace_back([&witness, id] { witness.acknowledged(id); });
        }
    });
    EXPECT_EQ(victim.join(Deadline::after(20s)).size(), writers);
}

TEST(Victim, ThatFailsOrEndsTooEarlyIsAnError) {
    Victim failing([](Witness&) { throw std::runtime_error("as expected"); });
    EXPECT_EQ(code_of([&] { (void)failing.join(Deadline::after(20s)); }), Code::internal);
    Victim hasty([](Witness& witness) { witness.acknowledged(1); });
    EXPECT_EQ(code_of([&] { (void)hasty.kill_after(2, Deadline::after(20s)); }), Code::internal);
}

TEST(Victim, IsRefusedToATestThatHasThreads) {
    std::jthread other([](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock lock(mutex);
        never.wait(lock, stop, [] { return false; });
    });
    EXPECT_EQ(code_of([] { Victim victim([](Witness&) {}); }), Code::internal);
}

TEST(StatementRules, NamesWhatWasLostAndWhatWasDoubled) {
    EXPECT_EQ(check_statements(Ids{1, 2}, Ids{3, 2, 1}), Verdict{})
        << "3 was in doubt, and may be there";
    EXPECT_EQ(check_statements(Ids{1, 2, 3}, Ids{2}), (Verdict{.lost = {1, 3}}));
    EXPECT_EQ(check_statements(Ids{1}, Ids{5, 1, 5, 1}), (Verdict{.doubled = {1, 5}}));
}

}  // namespace

}  // namespace holdfast::test

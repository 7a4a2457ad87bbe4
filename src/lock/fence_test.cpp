#include <holdfast/lock/fence.hpp>

#include <algorithm>

#include "test/fake_backend.hpp"
#include <gtest/gtest.h>

#include <holdfast/lock/backend.hpp>
#include <holdfast/lock/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::lock::tests {
namespace {

using namespace std::chrono_literals;

std::string refusal_of_number(std::int64_t number) {
    const auto error = lock_error_of([&] { (void)format_fence(number); });
    return error && error->lock_code() == LockCode::invalid_argument ? error->what() : "";
}

bool refused(std::string_view text) {
    const auto error = lock_error_of([&] { (void)parse_fence(text); });
    return error && error->lock_code() == LockCode::invalid_argument;
}

TEST(FenceTest, HasFifteenDigits) {
    HOLDFAST_CHECK("locks U-P 45");
    HOLDFAST_CHECK("locks U-P 46");
    HOLDFAST_CHECK("locks U-P 47");
    HOLDFAST_CHECK("locks U-P 48");
    HOLDFAST_CHECK("locks U-P 60");
    HOLDFAST_CHECK("locks U-P 61");
    EXPECT_EQ(format_fence(1), "000000000000001");
    EXPECT_EQ(format_fence(42), "000000000000042");
    EXPECT_EQ(format_fence(123'456'789), "000000123456789");
    EXPECT_EQ(format_fence(5'000'000'000), "000005000000000");
    EXPECT_EQ(format_fence(0), "000000000000000");
    EXPECT_EQ(format_fence(999'999'999'999'999), "999999999999999");
    EXPECT_EQ(format_fence(fence_max), "900000000000000");
    EXPECT_EQ(format_fence(fence_warn), "090000000000000");
    EXPECT_EQ(to_string(Fence{7}), "000000000000007");
    EXPECT_EQ(value_of(Fence{7}), 7U);
}

TEST(FenceTest, RefusesNumbersItCannotWrite) {
    HOLDFAST_CHECK("locks U-P 50");
    HOLDFAST_CHECK("locks U-P 51");
    EXPECT_EQ(refusal_of_number(-1), "Fence must be non-negative");
    EXPECT_NE(refusal_of_number(1'000'000'000'000'000).find("exceeds 15-digit limit"),
              std::string::npos);
    EXPECT_NE(refusal_of_number(INT64_MAX), "");
    EXPECT_NE(refusal_of_number(INT64_MIN), "");
}

TEST(FenceTest, SortsAsTextAsItDoesAsNumber) {
    HOLDFAST_CHECK("locks U-P 52");
    HOLDFAST_CHECK("locks U-P 53");
    HOLDFAST_CHECK("locks U-P 55");
    HOLDFAST_CHECK("locks U-P 56");
    const std::vector<std::int64_t> numbers{
        0, 1, 9, 10, 99, 100, 4'294'967'296, fence_warn, fence_max - 1, fence_max};
    for (std::size_t i = 1; i < numbers.size(); ++i) {
        EXPECT_LT(format_fence(numbers[i - 1]), format_fence(numbers[i]));
        EXPECT_LT(parse_fence(format_fence(numbers[i - 1])), parse_fence(format_fence(numbers[i])));
        EXPECT_EQ(value_of(parse_fence(format_fence(numbers[i]))),
                  static_cast<std::uint64_t>(numbers[i]));
    }
    EXPECT_EQ(Fence{5}, Fence{5});
    EXPECT_GT(Fence{6}, Fence{5});
}

TEST(FenceTest, IsReadOnlyInItsOneForm) {
    HOLDFAST_CHECK("locks U-P 54");
    HOLDFAST_CHECK("locks U-P 58");
    HOLDFAST_CHECK("locks U-P 62");
    HOLDFAST_CHECK("locks U-P 63");
    HOLDFAST_CHECK("locks U-H 9");
    EXPECT_EQ(parse_fence("000000000000001"), Fence{1});
    for (const std::string_view bad : {"",
                                       "1",
                                       "00000000000001",
                                       "0000000000000001",
                                       "00000000000000a",
                                       "-00000000000001",
                                       "+00000000000001",
                                       " 00000000000001",
                                       "00000000000001 ",
                                       "0x0000000000001",
                                       "1.0000000000000"}) {
        EXPECT_TRUE(refused(bad)) << bad;
    }
}

template <class Answer>
constexpr bool has_fence = requires(Answer answer) { answer.fence; };

// Which answers have a fence is in the types: all of them, and nothing else.
TEST(FenceTest, AGrantHasOneAndBusyHasNone) {
    HOLDFAST_CHECK("locks U-P 57");
    HOLDFAST_CHECK("locks U-H 2");
    static_assert(has_fence<Grant> && has_fence<LockInfo> && !has_fence<Busy>);
    FakeBackend backend;
    const Acquired granted = backend.acquire("k", 1s, {});
    ASSERT_NE(std::get_if<Grant>(&granted), nullptr);
    EXPECT_EQ(to_string(std::get<Grant>(granted).fence), "000000000000001");
    backend.on_acquire = [](int, const AcquireCall&) { return Acquired{Busy{}}; };
    const Acquired refused_answer = backend.acquire("k", 1s, {});
    EXPECT_EQ(std::get_if<Grant>(&refused_answer), nullptr);
}

constexpr ServerTime noon{std::chrono::hours{12}};

TEST(Liveness, HasOneToleranceAndOneRule) {
    HOLDFAST_CHECK("locks U-P 104");
    HOLDFAST_CHECK("locks U-P 105");
    HOLDFAST_CHECK("locks U-P 106");
    HOLDFAST_CHECK("locks U-P 107");
    HOLDFAST_CHECK("locks U-P 108");
    static_assert(time_tolerance == 1000ms);
    EXPECT_TRUE(is_live(noon + 5s, noon));
    EXPECT_FALSE(is_live(noon - 5s, noon));
    EXPECT_TRUE(is_live(noon - 500ms, noon));
    EXPECT_TRUE(is_live(noon - 999ms, noon));
    EXPECT_FALSE(is_live(noon - 1000ms, noon));
    EXPECT_FALSE(is_live(noon - 1001ms, noon));
    EXPECT_TRUE(is_live(noon, noon));
    for (const auto late : {998ms, 999ms, 1000ms, 1001ms}) {
        EXPECT_EQ(is_live(noon - late, noon), is_live(noon - late, noon, time_tolerance));
    }
    EXPECT_FALSE(is_live(noon, noon, 0ms)) << "strict";
}

}  // namespace
}  // namespace holdfast::lock::tests

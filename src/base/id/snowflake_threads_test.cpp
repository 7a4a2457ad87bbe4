#include <algorithm>
#include <future>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/manual_clock.hpp>
#include <holdfast/base/snowflake.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::soon;

struct Parts {
    std::int64_t ms;
    std::int64_t node;
    std::int64_t sequence;
    friend bool operator==(const Parts&, const Parts&) = default;
};

Parts parts_of(std::int64_t id) {
    return {id >> 22, (id >> 12) & 1023, id & 4095};
}

std::int64_t ms_of(Wall wall) {
    return std::chrono::floor<std::chrono::milliseconds>(wall - Snowflake::epoch).count();
}

class SnowflakeStory : public testing::Test {
protected:
    void make(int count) {
        for (int i = 0; i < count; ++i) {
            last = ids.next();
        }
    }

    ManualClock clock;
    Snowflake ids{clock, {.node = 5, .skew_max = 10ms, .wait_max = 1000ms}};
    std::int64_t last = 0;
};

TEST_F(SnowflakeStory, AnIdHoldsTimeNodeAndSequence) {
    EXPECT_EQ(parts_of(ids.next()), (Parts{ms_of(clock.wall_now()), 5, 0}));
    EXPECT_EQ(parts_of(ids.next()), (Parts{ms_of(clock.wall_now()), 5, 1}));
    clock.advance(1ms);
    EXPECT_EQ(parts_of(ids.next()), (Parts{ms_of(clock.wall_now()), 5, 0}));
}

TEST(Snowflake, ANodeOutsideItsTenBitsIsRefused) {
    HOLDFAST_CHECK("store 213");
    const ManualClock clock;
    for (const int node : {-1, 1024, 1'000'000}) {
        EXPECT_THROW(Snowflake(clock, {.node = node}), InvalidArgument) << node;
    }
    for (const int node : {0, 1023}) {
        Snowflake ids(clock, {.node = node});
        EXPECT_EQ(parts_of(ids.next()).node, node);
    }
}

TEST(Snowflake, DurationsThatMakeNoSenseAreRefused) {
    const ManualClock clock;
    EXPECT_THROW(Snowflake(clock, {.skew_max = -1ms}), InvalidArgument);
    EXPECT_THROW(Snowflake(clock, {.wait_max = -1ms}), InvalidArgument);
    EXPECT_THROW(Snowflake(clock, {.skew_max = std::chrono::milliseconds::max()}), InvalidArgument);
}

// Computed by another program, as hosts that exist already are numbered.
TEST(Snowflake, AHostsNodeIsTheHashOfItsName) {
    HOLDFAST_CHECK("store 213");
    EXPECT_EQ(node_from_host("a"), 97);
    EXPECT_EQ(node_from_host("localhost"), 915);
    EXPECT_EQ(node_from_host("worker-7.eu.example.com"), 965);
    EXPECT_EQ(node_from_host("caf\xc3\xa9-host-with-a-long-name"), 689);
}

TEST(Snowflake, AHostWithoutANameGetsARandomNode) {
    HOLDFAST_CHECK("store 213");
    std::set<int> nodes;
    for (int i = 0; i < 100; ++i) {
        const int node = node_from_host("");
        ASSERT_GE(node, 0);
        ASSERT_LE(node, Snowflake::node_max);
        nodes.insert(node);
    }
    EXPECT_GT(nodes.size(), 50U);
}

TEST(Snowflake, TenThousandIdsOfARunningClockGrow) {
    HOLDFAST_CHECK("store 214");
    Snowflake ids(system_clock(), {.node = 1});
    std::int64_t last = 0;
    for (int i = 0; i < 10'000; ++i) {
        const std::int64_t id = ids.next();
        ASSERT_GT(id, last);
        last = id;
    }
}

TEST(Snowflake, ThreadsNeverShareAnIdAndEachSeesItsOwnGrow) {
    HOLDFAST_CHECK("store 214");
    HOLDFAST_CHECK("store 216");
    Snowflake ids(system_clock(), {.node = 1});
    constexpr int threads = 4;
    constexpr int each = 5'000;
    std::vector<std::future<std::vector<std::int64_t>>> makers;
    for (int t = 0; t < threads; ++t) {
        makers.push_back(std::async(std::launch::async, [&ids] {
            std::vector<std::int64_t> made;
            for (int i = 0; i < each; ++i) {
                made.push_back(ids.next());
            }
            return made;
        }));
    }
    std::set<std::int64_t> all;
    for (auto& maker : makers) {
        const auto made = maker.get();
        EXPECT_TRUE(std::is_sorted(made.begin(), made.end()));
        all.insert(made.begin(), made.end());
    }
    EXPECT_EQ(all.size(), static_cast<std::size_t>(threads * each));
}

TEST_F(SnowflakeStory, AFullMillisecondRunsOverIntoTheNext) {
    HOLDFAST_CHECK("store 215");
    make(4096);
    EXPECT_EQ(parts_of(last), (Parts{ms_of(clock.wall_now()), 5, 4095}));
    make(1);
    EXPECT_EQ(parts_of(last), (Parts{ms_of(clock.wall_now()) + 1, 5, 0}));
    clock.advance(1ms);  // The clock reaches the millisecond that is already begun.
    make(1);
    EXPECT_EQ(parts_of(last), (Parts{ms_of(clock.wall_now()), 5, 1}));
}

// Ahead of the clock by as much as it may be, the generator waits for the clock.
TEST_F(SnowflakeStory, IdsRunNoFurtherAheadOfTheClockThanTheSkew) {
    HOLDFAST_CHECK("store 215");
    make(4096 * 11);
    EXPECT_EQ(parts_of(last), (Parts{ms_of(clock.wall_now()) + 10, 5, 4095}));
    auto next = std::async(std::launch::async, [this] { return ids.next(); });
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(1ms);
    EXPECT_EQ(parts_of(next.get()), (Parts{ms_of(clock.wall_now()) + 10, 5, 0}));
}

TEST_F(SnowflakeStory, AClockALittleBackIsOverlooked) {
    HOLDFAST_CHECK("store 216");
    make(3);
    const Wall before = clock.wall_now();
    clock.set_wall(before - 10ms);
    const std::int64_t previous = last;
    make(1);
    EXPECT_GT(last, previous);
    EXPECT_EQ(parts_of(last), (Parts{ms_of(before), 5, 3}));
}

TEST_F(SnowflakeStory, AClockFarBackIsWaitedFor) {
    HOLDFAST_CHECK("store 216");
    make(1);
    const Wall before = clock.wall_now();
    clock.set_wall(before - 500ms);
    auto next = std::async(std::launch::async, [this] { return ids.next(); });
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(490ms);
    EXPECT_EQ(parts_of(next.get()), (Parts{ms_of(before), 5, 1}));
}

TEST_F(SnowflakeStory, AClockThatStaysBackIsAnErrorAfterTheBound) {
    HOLDFAST_CHECK("store 216");
    make(1);
    clock.set_wall(clock.wall_now() - 1h);
    auto next = std::async(std::launch::async, [this] {
        return test::code_of([this] { static_cast<void>(ids.next()); });
    });
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(999ms);
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon())) << "gave up before its bound";
    clock.advance(1ms);
    EXPECT_EQ(next.get(), Code::unavailable);

    clock.set_wall(ManualClock::first_wall + 1h);  // The clock is set right.
    const std::int64_t previous = last;
    make(1);
    EXPECT_GT(last, previous);
}

TEST_F(SnowflakeStory, AStopEndsTheWaitForTheClock) {
    make(1);
    clock.set_wall(clock.wall_now() - 1h);
    std::stop_source stop;
    auto next = std::async(std::launch::async, [&] {
        return test::code_of([&] { static_cast<void>(ids.next(stop.get_token())); });
    });
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    stop.request_stop();
    EXPECT_EQ(next.get(), Code::cancelled);
}

TEST_F(SnowflakeStory, ATimeOutsideTheFortyOneBitsIsRefused) {
    const auto code_at = [this](Wall wall) {
        clock.set_wall(wall);
        return test::code_of([this] { static_cast<void>(ids.next()); });
    };
    const Wall end = Snowflake::epoch + std::chrono::milliseconds{std::int64_t{1} << 41};
    EXPECT_EQ(code_at(Snowflake::epoch - 1us), Code::unavailable);
    EXPECT_EQ(code_at(end), Code::unavailable);
    EXPECT_EQ(code_at(Snowflake::epoch), std::nullopt);
    EXPECT_EQ(code_at(end - 1ms), std::nullopt);
}

TEST_F(SnowflakeStory, TheLastMillisecondDoesNotRunOver) {
    clock.set_wall(Snowflake::epoch + std::chrono::milliseconds{(std::int64_t{1} << 41) - 1});
    make(4096);
    EXPECT_GT(last, 0);
    Snowflake impatient(clock, {.node = 5, .wait_max = 0ms});
    for (int i = 0; i < 4096; ++i) {
        static_cast<void>(impatient.next());
    }
    EXPECT_EQ(test::code_of([&] { static_cast<void>(impatient.next()); }), Code::unavailable);
}

}  // namespace
}  // namespace holdfast

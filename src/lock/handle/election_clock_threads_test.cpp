// Candidates of several processes on one file, while the machine's wall clock jumps.
#include <array>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/base/random.hpp>
#include <holdfast/lock/election.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/testing/database.hpp>
#include <holdfast/testing/stepping_clock.hpp>

namespace holdfast::lock {
namespace {

using namespace std::chrono_literals;

// As many terms as are counted, one leader at a time.
class Terms {
public:
    void begin(Fence fence) {
        if (leading_.fetch_add(1) != 0) {
            ++overlaps_;
        }
        const std::uint64_t number = value_of(fence);
        std::uint64_t newest = newest_.load();
        while (newest < number && !newest_.compare_exchange_weak(newest, number)) {
        }
        ++terms_;
        terms_.notify_all();
    }
    void end() { leading_.fetch_sub(1); }

    // Blocks until that many have begun.
    void wait_for(int count) const {
        for (int seen = terms_; seen < count; seen = terms_) {
            terms_.wait(seen);
        }
    }
    [[nodiscard]] int count() const { return terms_; }
    [[nodiscard]] int overlaps() const { return overlaps_; }
    [[nodiscard]] std::uint64_t newest() const { return newest_; }

private:
    std::atomic<int> leading_ = 0;
    std::atomic<int> terms_ = 0;
    std::atomic<int> overlaps_ = 0;
    std::atomic<std::uint64_t> newest_ = 0;
};

// A process of its own as far as the database can tell.
class Process {
public:
    Process(const std::string& url, const sql::DatabaseOptions& options, Terms& terms)
        : db_(url, options),
          locks_(db_),
          election_(locks_,
                    "leader",
                    {.ttl = 20s, .auto_extend = {.interval = 20ms}, .observe_every = 5ms}),
          thread_([this, &terms](const std::stop_token& stop) {
              while (!stop.stop_requested()) {
                  election_.run(
                      [&](Handle& lock, const std::stop_token& over) {
                          terms.begin(lock.fence());
                          // Long enough that a step hits a term, short enough for many of them.
                          system_clock().sleep_until(std::chrono::steady_clock::now() + 40ms, over);
                          terms.end();
                      },
                      stop);
              }
          }) {}

private:
    sql::Database db_;
    Locks locks_;
    Election election_;
    std::jthread thread_;
};

TEST(ElectionClockThreads, AtMostOneLeadsWhileTheWallClockJumps) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    const bool soak = std::getenv("HOLDFAST_SOAK") != nullptr;
    const int terms_wanted = soak ? 1'000 : 12;  // The first is about a minute.
    test::SteppingClock clock;
    sql::DatabaseOptions options = test::quick_options();
    options.clock = &clock;
    const test::Database db{test::Backend::sqlite, schema_part(), options};
    Terms terms;
    int steps = 0;
    {
        std::vector<std::unique_ptr<Process>> processes;
        processes.reserve(3);
        for (int i = 0; i < 3; ++i) {
            processes.push_back(std::make_unique<Process>(db.url(), options, terms));
        }
        constexpr std::array<std::chrono::hours, 6> ahead{1h, 0h, 2h, -1h, 1h, 24h};
        for (int term = 1; term <= terms_wanted; ++term) {
            terms.wait_for(term);  // There is a leader now.
            clock.set_wall_ahead(ahead.at(thread_random().below(ahead.size())) +
                                 std::chrono::minutes{thread_random().below(60)});
            ++steps;
        }
    }
    std::cout << terms.count() << " terms, " << steps << " steps of the wall clock\n";
    EXPECT_EQ(terms.overlaps(), 0);
    EXPECT_GE(terms.newest(), static_cast<std::uint64_t>(terms.count()));
}

}  // namespace
}  // namespace holdfast::lock

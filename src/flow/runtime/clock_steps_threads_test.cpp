// Two processes work on one file while the machine's wall clock jumps: no work is hidden.
#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "runtime/test/runtime_fixture.hpp"

#include <holdfast/base/random.hpp>
#include <holdfast/testing/stepping_clock.hpp>

namespace holdfast::flow::tests {
namespace {

class ClockStepsThreads : public testing::Test {
protected:
    struct Process {
        Process(const std::string& url, const sql::DatabaseOptions& options)
            : db(url, options),
              store(db),
              runtime(store, test_registry(), quick()),
              client(store) {}
        static RuntimeOptions quick() {
            RuntimeOptions options;
            options.poll_max = 5ms;
            return options;
        }
        sql::Database db;
        Store store;
        Runtime runtime;
        Client client;
    };

    [[nodiscard]] sql::DatabaseOptions by_clock() {
        sql::DatabaseOptions options = test::quick_options();
        options.clock = &clock;
        return options;
    }

    test::SteppingClock clock;
    test::Database db{test::Backend::sqlite, schema_part(), by_clock()};
};

TEST_F(ClockStepsThreads, NoWorkIsHidden) {
    seen.reset();
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    const int rounds = std::getenv("HOLDFAST_SOAK") != nullptr ? 3'000 : 20;  // A minute or so.
    constexpr std::array<std::chrono::hours, 5> ahead{2h, 0h, 1h, -2h, 24h};
    Process ann(db.url(), by_clock());
    Process bob(db.url(), by_clock());
    for (int round = 0; round < rounds; ++round) {
        const std::string id = std::to_string(round);
        ann.client.start<&chain>("chain " + id, 3);
        clock.set_wall_ahead(ahead.at(thread_random().below(ahead.size())));
        bob.client.start<&parent>("parent " + id, 2);
        clock.set_wall_ahead(ahead.at(thread_random().below(ahead.size())));
        EXPECT_TRUE(bob.client.result<&chain>("chain " + id, 60s)) << "the clock hides it";
        EXPECT_TRUE(ann.client.result<&parent>("parent " + id, 60s)) << "the clock hides it";
    }
    EXPECT_TRUE(ann.runtime.drain(10s).clean());
    EXPECT_TRUE(bob.runtime.drain(10s).clean());
}

}  // namespace
}  // namespace holdfast::flow::tests

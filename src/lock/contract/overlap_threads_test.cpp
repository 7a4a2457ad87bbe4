// The promise itself: of all who take a key, no two hold it at once, and no fence comes twice.
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "statements/lock_sql.hpp"
#include "test/lock_fixture.hpp"

#include <holdfast/base/random.hpp>
#include <holdfast/testing/holdings.hpp>

namespace holdfast::lock::tests {
namespace {

using test::Holding;
using test::overlaps;

std::int64_t steady_ns() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}
std::int64_t ms_of(ServerTime time) {
    return time.time_since_epoch().count();
}

// Leases of a few milliseconds, without the grace that would hide a mistake. Many are over when
// their answer arrives; those count as well, so they must not be refused.
constexpr Locks::Hooks sharp{.tolerance = 0ms, .refuse_born_expired = false};
// A call that loses race after race, on a machine that is busy with others, may take its time: this
// is about who holds what, and a call that is cut off says nothing about that.
constexpr std::chrono::seconds unlimited{120};

class Overlap : public testing::TestWithParam<Setting> {
protected:
    Overlap() {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets variables here.
        const char* const given = std::getenv("HOLDFAST_SEED");
        seed = given == nullptr ? secure_seed() : std::strtoull(given, nullptr, 10);
    }

    static int acquisitions(int in_every_run) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): as above.
        return std::getenv("HOLDFAST_SOAK") != nullptr ? 100'000 : in_every_run;
    }

    // Takes a key, perhaps extends it, perhaps gives it back; says how long it was ours.
    static std::optional<Holding> hold_once(Locks& locks, Random& random) {
        const std::string key = "k" + std::to_string(random.below(3));
        const auto ttl = [&] { return std::chrono::milliseconds{1 + random.below(4)}; };
        const std::chrono::milliseconds first = ttl();
        const Acquired answer = locks.acquire(key, first);
        const auto* grant = std::get_if<Grant>(&answer);
        if (grant == nullptr) {
            return std::nullopt;
        }
        Holding holding{.key = key,
                        .fence = value_of(grant->fence),
                        .from_ms = ms_of(grant->expires_at - first),
                        .until_ms = ms_of(grant->expires_at),
                        .answered_ns = steady_ns()};
        for (std::uint64_t i = random.below(4); i > 0; --i) {
            const Extended extended = locks.extend(grant->lock_id, ttl());
            if (!extended.ok) {
                return holding;
            }
            holding.until_ms = ms_of(extended.expires_at);
        }
        if (random.below(2) == 0) {
            const std::int64_t sent = steady_ns();
            holding.release_sent_ns = locks.release(grant->lock_id).ok ? sent : 0;
        }
        return holding;
    }

    // Until `count` acquisitions have been made by all together.
    std::vector<Holding> crowd(std::vector<Locks*> locks, int count) {
        std::mutex mutex;
        std::vector<Holding> all;
        std::atomic<int> made = 0;
        all_at_once(8, [&](int i) {
            Random random(seed + static_cast<std::uint64_t>(i));
            Locks& own = *locks[static_cast<std::size_t>(i) % locks.size()];
            while (made < count) {
                try {
                    if (const auto holding = hold_once(own, random)) {
                        ++made;
                        const std::lock_guard lock(mutex);
                        all.push_back(*holding);
                    }
                } catch (const LockError& error) {
                    // In a crowd one may lose the race for a commit once too often; no more.
                    EXPECT_TRUE(error.retryable()) << error.what();
                    EXPECT_FALSE(error.indeterminate()) << error.what();
                }
            }
        });
        return all;
    }

    std::uint64_t seed;
    LockDatabase db{GetParam()};
};

TEST_P(Overlap, NoTwoHoldAKeyAtOnce) {
    HOLDFAST_CHECK("locks N1");
    RecordProperty("seed", std::to_string(seed));
    Locks locks(db, {.call_timeout = unlimited}, sharp);
    const int wanted = acquisitions(600);
    const std::vector<Holding> all = crowd({&locks}, wanted);
    EXPECT_EQ(overlaps(all), std::vector<std::string>{}) << "HOLDFAST_SEED=" << seed;
    EXPECT_GE(all.size(), static_cast<std::size_t>(wanted));
    RecordProperty("acquisitions", std::to_string(all.size()));
}

// Several processes share nothing but the database; two handles share no more.
TEST_P(Overlap, NeitherDoTwoHandlesNorWithTheFilterOff) {
    Locks locks(db, {.call_timeout = unlimited}, sharp);
    const auto other_db = db.open();
    Locks others(*other_db, {.call_timeout = unlimited, .herd_filter = false}, sharp);
    const std::vector<Holding> all = crowd({&locks, &others}, acquisitions(300));
    EXPECT_EQ(overlaps(all), std::vector<std::string>{}) << "HOLDFAST_SEED=" << seed;
}

// Dead rows go while others extend them or take them over.
TEST_P(Overlap, PurgingDisturbsNobody) {
    HOLDFAST_CHECK("locks N15");
    Locks locks(db, {.call_timeout = unlimited}, sharp);
    const auto forms = make_lock_sql(
        db, locks.tables(), {.tolerance = 0ms, .reservation = 250ms, .idle_max = 10s});
    std::atomic<std::int64_t> purged = 0;
    std::vector<Holding> all;
    {
        // Much sooner than Locks::purge would, and in everybody's way.
        sql::TxOptions patient;
        patient.retry =
            sql::RetryPolicy{.max_retries = 1'000, .base_delay = 1ms, .max_delay = 10ms};
        const std::jthread broom([&](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                purged += forms->purge(patient, 20ms, 10);
            }
        });
        all = crowd({&locks}, acquisitions(300));
        (void)locks.acquire("k0", 1ms);
        while (purged == 0) {
            // The crowd has gone, and what it left behind is swept up now at the latest.
        }
    }
    EXPECT_EQ(overlaps(all), std::vector<std::string>{}) << "HOLDFAST_SEED=" << seed;
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_fences"), 3) << "counters stay";
}

// The control: half of them look at another table, and the same run must be found guilty.
TEST_P(Overlap, IsFoundWhereThereIsOne) {
    if (GetParam().conflict_every > 0) {
        db.outside.execute("DROP TRIGGER conflict ON holdfast_fences");
    }
    const Names elsewhere{.locks = "other_locks"};
    if (GetParam().optimistic) {
        db.outside.reopen();
    }
    sql::schema_apply(db.outside, Schema(elsewhere).part(), {});
    Locks here(db, {.call_timeout = unlimited}, sharp);
    Locks there(db, {.names = elsewhere, .call_timeout = unlimited}, sharp);
    // Leases of a few milliseconds seldom meet on a slow machine; sooner or later they do.
    bool found = false;
    for (int round = 0; round < 10 && !found; ++round) {
        found = !overlaps(crowd({&here, &there}, 500)).empty();
    }
    EXPECT_TRUE(found) << "HOLDFAST_SEED=" << seed;
}

INSTANTIATE_TEST_SUITE_P(Every, Overlap, every_setting_of_a_crowd(), setting_name);

TEST(OverlapChecker, KnowsAnOverlapARepeatAndInnocence) {
    const Holding ann{.key = "k", .fence = 1, .from_ms = 10, .until_ms = 20};
    const Holding late{.key = "k", .fence = 2, .from_ms = 20, .until_ms = 30};
    const Holding early{.key = "k", .fence = 2, .from_ms = 19, .until_ms = 30};
    const Holding elsewhere{.key = "j", .fence = 1, .from_ms = 10, .until_ms = 20};
    EXPECT_EQ(overlaps({ann, late, elsewhere}).size(), 0U);
    EXPECT_EQ(overlaps({ann, early}).size(), 1U);
    EXPECT_EQ(overlaps({ann, ann}).size(), 2U) << "the same fence, and at the same time";

    Holding released = ann;
    released.release_sent_ns = 500;
    Holding next = early;
    next.answered_ns = 501;
    EXPECT_EQ(overlaps({released, next}).size(), 0U) << "given back before its lease was over";
    next.answered_ns = 499;
    EXPECT_EQ(overlaps({released, next}).size(), 1U) << "taken before it was given back";
}

}  // namespace
}  // namespace holdfast::lock::tests

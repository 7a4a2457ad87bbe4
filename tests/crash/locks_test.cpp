// Several processes take the same locks and write under them. Some are killed, others are stopped
// and wake up sure of themselves. No two hold a key at once, no fence comes twice, and what is
// guarded by fences never accepts an older one after a newer.
#include <holdfast/lock/locks.hpp>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <holdfast/base/random.hpp>
#include <holdfast/lock/guard.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/crash.hpp>
#include <holdfast/testing/holdings.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::Holding;

constexpr int keys = 3;
constexpr auto lease = 100ms;
constexpr sql::Statement enter{"crash.enter",
                               "INSERT INTO ledger (resource, fence) VALUES ($1, $2)"};

// What a process was told about its locks, in a file, so that it outlives the process. A line is
// written at once, before the process goes on.
class Journal {
public:
    explicit Journal(const std::string& path)
        : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600)) {}
    ~Journal() { ::close(file_); }
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    void note(const Holding& holding) const {
        const std::string line = holding.key + " " + std::to_string(holding.fence) + " " +
                                 std::to_string(holding.from_ms) + " " +
                                 std::to_string(holding.until_ms) + " " +
                                 std::to_string(holding.answered_ns) + " " +
                                 std::to_string(holding.release_sent_ns) + "\n";
        [[maybe_unused]] const auto written = ::write(file_, line.data(), line.size());
    }

    // The last state of each holding.
    static void read(const std::string& path, std::vector<Holding>& all) {
        std::ifstream in(path);
        std::map<std::pair<std::string, std::uint64_t>, Holding> last;
        Holding line;
        while (in >> line.key >> line.fence >> line.from_ms >> line.until_ms >> line.answered_ns >>
               line.release_sent_ns) {
            last[{line.key, line.fence}] = line;
        }
        for (const auto& [name, holding] : last) {
            all.push_back(holding);
        }
    }

private:
    int file_;
};

std::int64_t steady_ns() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}
std::int64_t ms_of(lock::ServerTime time) {
    return time.time_since_epoch().count();
}

class LockKill : public testing::TestWithParam<test::Backend> {
protected:
    LockKill() {
        sql::schema_apply(*db, lock::schema_part(), {});
        db.execute(GetParam() == test::Backend::sqlite
                       ? "CREATE TABLE ledger (entry INTEGER PRIMARY KEY AUTOINCREMENT, resource "
                         "TEXT NOT NULL, fence INTEGER NOT NULL)"
                       : "CREATE TABLE ledger (entry bigserial PRIMARY KEY, resource TEXT NOT "
                         "NULL, fence bigint NOT NULL)");
        db.close();
    }

    // Whatever it believes: the ledger takes the entry only if no newer fence has been there.
    static void write_under(sql::Database& own, lock::Locks& locks, const Holding& holding) {
        own.transact("Write", {.deadline = Deadline::after(500ms)}, [&](sql::Tx& tx) {
            if (lock::accept_fence(tx, locks, holding.key, lock::Fence{holding.fence})) {
                tx.exec(enter, holding.key, static_cast<std::int64_t>(holding.fence));
            }
        });
    }

    static void hold_once(sql::Database& own,
                          lock::Locks& locks,
                          Random& random,
                          const Journal& journal,
                          test::Witness& witness) {
        const std::string key = "k" + std::to_string(random.below(keys));
        const lock::Acquired answer = locks.acquire(key, lease);
        const auto* grant = std::get_if<lock::Grant>(&answer);
        if (grant == nullptr) {
            return;
        }
        Holding holding{.key = key,
                        .fence = lock::value_of(grant->fence),
                        .from_ms = ms_of(grant->expires_at - lease),
                        .until_ms = ms_of(grant->expires_at),
                        .answered_ns = steady_ns()};
        journal.note(holding);
        witness.acknowledged(static_cast<std::int64_t>(holding.fence));
        for (std::uint64_t i = random.below(3); i > 0; --i) {
            write_under(own, locks, holding);
            const lock::Extended extended = locks.extend(grant->lock_id, lease);
            if (!extended.ok) {
                break;
            }
            holding.until_ms = ms_of(extended.expires_at);
            journal.note(holding);
        }
        write_under(own, locks, holding);
        if (random.below(8) > 0) {
            holding.release_sent_ns = steady_ns();
            journal.note(holding);  // Before it is sent: afterwards might be too late.
            locks.release(grant->lock_id);
        }
    }

    void work_until_killed(test::Witness& witness, std::uint64_t life) const {
        sql::Database own(db.url(), test::quick_options());
        lock::Locks locks(own);
        Random random(life);
        const Journal journal(folder / std::to_string(life));
        for (;;) {
            try {
                hold_once(own, locks, random, journal, witness);
            } catch (const Error& error) {
                // A frozen rival may be in the way of everybody for a while.
                if (error.code() != Code::unavailable && error.code() != Code::deadline &&
                    error.code() != Code::conflict && error.code() != Code::exhausted) {
                    throw;
                }
            }
        }
    }

    std::unique_ptr<test::Victim> spawn() {
        const std::uint64_t number = ++lives;
        return std::make_unique<test::Victim>(
            [this, number](test::Witness& witness) { work_until_killed(witness, number); });
    }

    void expect_innocence() {
        std::vector<Holding> all;
        for (std::uint64_t life = 1; life <= lives; ++life) {
            Journal::read(folder / std::to_string(life), all);
        }
        RecordProperty("acquisitions", std::to_string(all.size()));
        EXPECT_EQ(test::overlaps(all), std::vector<std::string>{});
        EXPECT_EQ(
            db.number("SELECT count(*) FROM ledger a JOIN ledger b ON a.resource = b.resource "
                      "AND a.entry < b.entry AND a.fence > b.fence"),
            0)
            << "an older fence was accepted after a newer";
        EXPECT_GT(db.number("SELECT count(*) FROM ledger"), 0);
        db.reopen();
        lock::Locks locks(*db);
        for (int key = 0; key < keys; ++key) {
            const std::string name = "k" + std::to_string(key);
            const Deadline deadline = Deadline::after(20s);
            while (locks.is_locked(name) && !deadline.passed()) {
            }
            EXPECT_TRUE(std::holds_alternative<lock::Grant>(locks.acquire(name, 10s)))
                << "whoever died, the key is free when their lease is over";
        }
    }

    static int rounds(int in_every_run) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
        return std::getenv("HOLDFAST_SOAK") != nullptr ? 60 : in_every_run;
    }

    test::Database db{test::that_forks(GetParam())};
    test::TempDir folder;
    std::uint64_t lives = 0;
};

TEST_P(LockKill, ProcessesThatAreKilledHurtNobody) {
    HOLDFAST_CHECK("locks N18");
    Random random(1);
    std::vector<std::unique_ptr<test::Victim>> alive;
    alive.reserve(4);
    for (int i = 0; i < 4; ++i) {
        alive.push_back(spawn());
    }
    const int kills = rounds(8);
    for (int kill = 0; kill < kills; ++kill) {
        auto& victim = alive[static_cast<std::size_t>(kill) % alive.size()];
        (void)victim->kill_after(1 + random.below(10), Deadline::after(60s));
        victim = spawn();
    }
    for (const auto& victim : alive) {
        (void)victim->kill_after(1, Deadline::after(60s));
    }
    alive.clear();
    expect_innocence();
}

// The dangerous one is not the dead but the sleeper: it wakes in the middle of its work, long after
// its lease is over.
TEST_P(LockKill, ProcessesThatAreStoppedHurtNobody) {
    HOLDFAST_CHECK("locks N16");
    Random random(2);
    std::vector<std::unique_ptr<test::Victim>> alive;
    alive.reserve(4);
    for (int i = 0; i < 4; ++i) {
        alive.push_back(spawn());
    }
    const int stops = rounds(4);
    for (int stop = 0; stop < stops; ++stop) {
        auto& sleeper = *alive[static_cast<std::size_t>(stop) % alive.size()];
        auto& other = *alive[static_cast<std::size_t>(stop + 1) % alive.size()];
        sleeper.wait_for(sleeper.acknowledged() + 1 + random.below(10), Deadline::after(60s));
        sleeper.freeze();
        // A server is not held up by a client. A process that is stopped while it writes to a file
        // keeps the file: see AWriterThatIsStoppedKeepsTheFileAndNobodyHangs.
        if (GetParam() != test::Backend::sqlite) {
            other.wait_for(other.acknowledged() + 20, Deadline::after(60s));
        } else {
            const Deadline long_enough = Deadline::after(1500ms);
            while (!long_enough.passed()) {
                (void)other.acknowledged();
            }
        }
        sleeper.thaw();
        sleeper.wait_for(sleeper.acknowledged() + 1, Deadline::after(60s));
    }
    alive.clear();
    expect_innocence();
}

INSTANTIATE_TEST_SUITE_P(Every, LockKill, test::every_backend(), test::backend_name);

// On a file, N16 cannot mean that others take locks meanwhile: the stopped process holds the lock
// of the whole file, and only the kernel could take it away. It means that no call hangs: each
// that writes ends by its deadline, with an error that says to retry, and reads still work.
TEST(LockFreeze, AWriterThatIsStoppedKeepsTheFileAndNobodyHangs) {
    HOLDFAST_CHECK("locks N16");
    test::Database db{test::Backend::sqlite};
    sql::schema_apply(*db, lock::schema_part(), {});
    lock::Grant held{.lock_id = lock::LockId::fresh()};
    {
        lock::Locks locks(*db);
        held = std::get<lock::Grant>(locks.acquire("held", 60s));
    }
    db.close();
    static constexpr sql::Statement touch{"crash.touch",
                                          "UPDATE holdfast_fences SET fence = fence"};
    test::Victim writer([&](test::Witness& witness) {
        sql::Database own(db.url(), test::quick_options());
        own.transact("Touch", {}, [&](sql::Tx& tx) {
            tx.exec(touch);
            witness.acknowledged(1);
            ::pause();  // In the middle of its transaction; what kills it ends it.
        });
    });
    writer.wait_for(1, Deadline::after(60s));
    writer.freeze();
    db.reopen();
    lock::Locks locks(*db);
    const auto refused = [](const std::function<void()>& call) {
        try {
            call();
            return false;
        } catch (const lock::LockError& error) {
            return error.lock_code() == lock::LockCode::service_unavailable && error.retryable() &&
                   !error.indeterminate();
        }
    };
    const auto soon = [] { return Deadline::after(200ms); };
    EXPECT_TRUE(refused([&] { (void)locks.acquire("k", 10s, {.deadline = soon()}); }));
    EXPECT_TRUE(refused([&] { locks.extend(held.lock_id, 60s, {.deadline = soon()}); }));
    EXPECT_TRUE(refused([&] { locks.release(held.lock_id, {.deadline = soon()}); }));
    EXPECT_TRUE(locks.is_locked("held"));
    EXPECT_FALSE(locks.is_locked("k"));
    (void)writer.kill_after(1, Deadline::after(60s));
    EXPECT_TRUE(std::holds_alternative<lock::Grant>(locks.acquire("k", 10s)));
    EXPECT_TRUE(locks.release(held.lock_id).ok);
}

}  // namespace
}  // namespace holdfast

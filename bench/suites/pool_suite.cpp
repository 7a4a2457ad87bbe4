#include "suites/pool_suite.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "workers.hpp"
#include <fmt/core.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/bench/latencies.hpp>
#include <holdfast/pool/coarse_clock.hpp>
#include <holdfast/pool/pool.hpp>

namespace holdfast::bench {
namespace {

using std::chrono::steady_clock;

constexpr int connections = 32;
constexpr std::chrono::seconds patience{10};
// Between two looks at the time that is left: such a look costs as much as a borrow. The first of
// them is timed.
constexpr int pairs_at_a_time = 200;

struct Nothing final : pool::Connection {
    [[nodiscard]] bool usable() noexcept override { return true; }
};

struct NothingOpener final : pool::Opener {
    [[nodiscard]] std::unique_ptr<pool::Connection> open(Deadline /*deadline*/,
                                                         std::stop_token /*stop*/,
                                                         pool::OpenPhases& /*phases*/) override {
        return std::make_unique<Nothing>();
    }
};

// The smallest pool that knows the age of a connection, since when it is idle, and whether it is
// open. It has no order of age, no lanes, no limits, no thread that opens connections, no counts.
// It reads the same clock as ours does, and as often.
class BarePool {
public:
    struct Entry {
        std::unique_ptr<pool::Connection> connection;
        Steady opened{};
        Steady idle_since{};
    };

    BarePool() {
        const Steady now = steady_clock::now();
        for (int i = 0; i < connections; ++i) {
            idle_.push_back(
                {.connection = std::make_unique<Nothing>(), .opened = now, .idle_since = now});
        }
    }

    // The first that is young enough and lives; others are closed on the way.
    [[nodiscard]] Entry borrow(Deadline deadline) {
        const Steady now = pool::coarse_steady_now();
        for (;;) {
            std::unique_lock lock(mutex_);
            if (!freed_.wait_until(lock, deadline.when(), [this] { return !idle_.empty(); })) {
                throw Error(Code::deadline, Outcome::not_applied, "the bare pool is empty");
            }
            Entry entry = std::move(idle_.front());
            idle_.pop_front();
            const bool young = now - entry.opened <= life;
            lock.unlock();
            if (young && entry.connection->usable()) {
                return entry;
            }
        }
    }

    void give_back(Entry entry) {
        entry.idle_since = pool::coarse_steady_now();
        {
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(entry));
        }
        freed_.notify_one();
    }

private:
    static constexpr std::chrono::hours life{24};

    std::mutex mutex_;
    std::condition_variable freed_;
    std::deque<Entry> idle_;
};

// Borrows and returns, over and over, by as many threads.
template <class Borrow, class Return>
Work measure(int threads,
             std::chrono::nanoseconds time,
             const std::stop_token& stop,
             Latencies& waits,
             const Borrow& borrow,
             const Return& give_back) {
    std::atomic<std::uint64_t> allocated = 0;
    Work work = run_workers(threads, time, stop, [&](Random& /*random*/) {
        const auto before = allocations();
        const Deadline deadline = Deadline::after(patience);
        const auto began = steady_clock::now();
        auto first = borrow(deadline);
        const auto waited = steady_clock::now() - began;
        give_back(std::move(first));
        for (int i = 1; i < pairs_at_a_time; ++i) {
            give_back(borrow(deadline));
        }
        allocated += allocations().value_or(0) - before.value_or(0);
        waits.add(waited);
    });
    work.operations *= pairs_at_a_time;
    if (allocations()) {
        work.counts.push_back({"allocations_per_pair", static_cast<double>(allocated.load())});
    }
    return work;
}

class PoolSuite final : public Suite {
public:
    std::vector<Pair> pairs() override { return {pair(1), pair(8), pair(32)}; }

    Durability prepare(std::span<const Pair> /*chosen*/) override {
        pool::Config config = pool::reservoir(connections);
        config.look_every = {};  // While idle ones are looked at, a borrower may have to wait.
        pool_.emplace(config, opener_, system_clock(), &metrics_, null_logger(), "bench");
        if (!pool_->wait_ready(connections, Deadline::after(patience), {})) {
            throw Error(Code::unavailable, Outcome::not_applied, "the pool did not fill");
        }
        return {};  // Nothing is written.
    }

private:
    Pair pair(int threads) {
        return {.name = fmt::format("pool.warm.t{}", threads),
                .unit = "pairs/s",
                .ours = [this, threads](auto time,
                                        const auto& stop) { return ours(threads, time, stop); },
                .limit = [this, threads](auto time,
                                         const auto& stop) { return bare(threads, time, stop); },
                .floor = 0.8};
    }

    Work ours(int threads, std::chrono::nanoseconds time, const std::stop_token& stop) {
        Latencies waits;
        Work work = measure(
            threads,
            time,
            stop,
            waits,
            [this](Deadline deadline) { return pool_->acquire(deadline, {}); },
            [](pool::Loan loan) { static_cast<void>(loan); });
        waits.add_to(work.figures, "wait_");
        work.figures.push_back({"bare_wait_p99_us", bare_wait_p99_us_});
        return work;
    }

    Work bare(int threads, std::chrono::nanoseconds time, const std::stop_token& stop) {
        Latencies waits;
        Work work = measure(
            threads,
            time,
            stop,
            waits,
            [this](Deadline deadline) { return bare_.borrow(deadline); },
            [this](BarePool::Entry entry) { bare_.give_back(std::move(entry)); });
        std::vector<Count> figures;
        waits.add_to(figures);
        bare_wait_p99_us_ = figures.back().value;
        return work;
    }

    NothingOpener opener_;
    Metrics metrics_;
    std::optional<pool::Pool> pool_;
    BarePool bare_;
    double bare_wait_p99_us_ = 0;  // Of its latest round, the one before ours.
};

}  // namespace

std::unique_ptr<Suite> make_pool_suite(const WaitTicket& /*place*/) {
    return std::make_unique<PoolSuite>();
}

}  // namespace holdfast::bench

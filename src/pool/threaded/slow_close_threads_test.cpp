// What is slow is slow in the background: a borrower does not notice it.
#include <condition_variable>
#include <memory>
#include <mutex>

#include <gtest/gtest.h>

#include <holdfast/base/log.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

// Closing hangs until the test lets go, as if a slot had to be given back to a store that is away.
class Stall {
public:
    void enter() {
        std::unique_lock lock(mutex_);
        ++inside_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return over_; });
        --inside_;
    }
    [[nodiscard]] bool wait_for(int inside) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, 20s, [&] { return inside_ == inside; });
    }
    void end() {
        const std::lock_guard lock(mutex_);
        over_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int inside_ = 0;
    bool over_ = false;
};

struct Stalling final : Connection {
    explicit Stalling(Stall& stall) : stall_(stall) {}
    ~Stalling() override { stall_.enter(); }
    [[nodiscard]] bool usable() noexcept override { return true; }

private:
    Stall& stall_;
};

struct StallingOpener final : Opener {
    [[nodiscard]] std::unique_ptr<Connection> open(Deadline /*deadline*/,
                                                   std::stop_token /*stop*/,
                                                   OpenPhases& /*phases*/) override {
        return std::make_unique<Stalling>(stall);
    }
    Stall stall;
};

TEST(SlowClose, IsNothingABorrowerWaitsFor) {
    HOLDFAST_CHECK("connections res.lease_release");
    StallingOpener opener;
    Config config = reservoir(8);
    config.look_every = 0s;
    Pool pool(config, opener, system_clock(), nullptr, null_logger(), "stalled");
    ASSERT_TRUE(pool.warm_up({}).reached);
    pool.shed(config.limits.closers_max);  // All threads that close hang in it.
    ASSERT_TRUE(opener.stall.wait_for(config.limits.closers_max));
    for (int i = 0; i < 1000; ++i) {
        const Loan loan = pool.acquire(Deadline::after(20s), {});
    }
    EXPECT_EQ(pool.stats().waited, 0U);
    opener.stall.end();
}

}  // namespace
}  // namespace holdfast::pool

// A minute without credentials, on a clock that is moved by hand: the pool and the tokens are the
// real ones, only the server is made of counters.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "auth/test/token_cache_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/pool/open_phases.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using tests::soon;

constexpr int connections = 4;

struct OpenConnection final : pool::Connection {
    [[nodiscard]] bool usable() noexcept override { return true; }
};

// A server that wants a token.
class SigningOpener final : public pool::Opener {
public:
    SigningOpener(TokenCache& tokens, const TokenKey& key) : tokens_(tokens), key_(key) {}

    [[nodiscard]] std::unique_ptr<pool::Connection> open(Deadline /*deadline*/,
                                                         std::stop_token stop,
                                                         pool::OpenPhases& phases) override {
        phases.enter(pool::OpenPhase::token);
        (void)tokens_.get(key_, soon(), stop);
        const std::lock_guard lock(mutex_);
        ++opened_;
        changed_.notify_all();
        return std::make_unique<OpenConnection>();
    }

    [[nodiscard]] bool opened_at_least(int opened) {
        const std::lock_guard lock(mutex_);
        return opened_ >= opened;
    }
    [[nodiscard]] bool wait_for(int opened) {
        std::unique_lock lock(mutex_);
        return changed_.wait_until(lock, soon().when(), [&] { return opened_ >= opened; });
    }

private:
    TokenCache& tokens_;
    const TokenKey key_;
    std::mutex mutex_;
    std::condition_variable changed_;
    int opened_ = 0;
};

class MinuteWithoutCredentials : public tests::TokenCacheStory {
protected:
    void start(std::chrono::seconds token_life) {
        key.life = token_life;
        server.emplace(cache, key);
        pool.emplace(pool::reservoir(connections), *server, clock, &metrics, log, "orders", 1);
        ASSERT_TRUE(server->wait_for(connections));
        ASSERT_TRUE(pool->wait_ready(connections, in_an_hour(), {}));
    }

    [[nodiscard]] Deadline in_an_hour() const { return Deadline::at(clock.steady_now() + 1h); }

    // By the second, each of which lasts until the pool and the tokens have done their work in it.
    void pass(std::chrono::seconds time) {
        constexpr std::size_t sleepers = 2;
        for (auto left = time; left > 0s; left -= 1s) {
            ASSERT_TRUE(clock.wait_for_sleepers(sleepers, soon()));
            clock.advance(1s);
            ASSERT_TRUE(clock.wait_for_sleepers(sleepers, soon()));
            borrow_all();
        }
    }

    // At once, without waiting for anybody.
    void borrow_all() {
        std::vector<pool::Loan> loans;
        for (int i = 0; i < connections; ++i) {
            auto loan = pool->try_acquire();
            ASSERT_TRUE(loan) << "connection " << i;
            loans.push_back(std::move(*loan));
        }
    }

    [[nodiscard]] std::uint64_t closed() const {
        std::uint64_t all = 0;
        for (const std::uint64_t reason : pool->stats().closed) {
            all += reason;
        }
        return all;
    }

    std::optional<SigningOpener> server;
    std::optional<pool::Pool> pool;
};

// The worst moment for it to begin: the token is just about to be replaced, and there is no other.
TEST_F(MinuteWithoutCredentials, HurtsNobodyWhoHasAConnection) {
    start(15min);
    pass(11min);
    provider->fail = true;
    pass(1min + 45s);  // Now 80 % of its life have passed for sure, whatever chance adds.
    ASSERT_GE(log.count("token.refresh_failed"), 1U);
    EXPECT_EQ(closed(), 0U);
    {
        auto broken = pool->try_acquire();
        ASSERT_TRUE(broken);
        broken->mark_bad();
    }
    EXPECT_TRUE(server->wait_for(connections + 1)) << "the token that is there is still good";
    ASSERT_TRUE(pool->wait_ready(connections, in_an_hour(), {}));
    pass(60s);
    EXPECT_EQ(closed(), 1U);
    provider->fail = false;
    const double before = metrics.value("dsql_token_refreshes");
    pass(30s);  // So long until it is tried again, at most.
    EXPECT_EQ(metrics.value("dsql_token_refreshes"), before + 1);
}

// Tokens shorter than the outage: now opening a connection has to wait for its end.
TEST_F(MinuteWithoutCredentials, KeepsOnlyThoseWaitingWhoNeedANewConnection) {
    start(30s);
    provider->fail = true;
    pass(60s);
    EXPECT_EQ(closed(), 0U);
    {
        auto broken = pool->try_acquire();
        ASSERT_TRUE(broken);
        broken->mark_bad();
    }
    ASSERT_TRUE(log.wait_for("open.failed", soon()));
    EXPECT_GE(metrics.value("holdfast_sql_pool_open_failures_total",
                            {{"db", "orders"}, {"class", "transport"}}),
              1);
    EXPECT_EQ(pool->stats().now.ready, connections - 1);
    provider->fail = false;
    for (int i = 0; i < 120 && !server->opened_at_least(connections + 1); ++i) {
        ASSERT_TRUE(clock.wait_for_sleepers(2, soon()));
        clock.advance(1s);  // The pause after a failure goes by the same clock.
    }
    EXPECT_TRUE(pool->wait_ready(connections, in_an_hour(), {}));
}

}  // namespace
}  // namespace holdfast::dsql

// A token cache with a clock that is moved by hand and a provider that does as told.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log_capture.hpp>
#include <holdfast/base/manual_clock.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/dsql/token_cache.hpp>

namespace holdfast::dsql::tests {

inline Deadline soon() {
    return Deadline::after(std::chrono::seconds{30});
}

class TestProvider final : public CredentialProvider {
public:
    [[nodiscard]] Credentials get(Deadline deadline, const std::stop_token& stop) override {
        ++asked;
        asked.notify_all();
        if (hang) {
            std::unique_lock lock(mutex_);
            released_.wait_until(lock, stop, deadline.when(), [this] { return !hang; });
        }
        if (fail || hang) {
            throw Error(Code::unavailable, Outcome::not_applied, "no credentials today");
        }
        return {.access_key_id = "AKID", .secret_access_key = "s3cret", .expires = expires};
    }
    void forget() noexcept override { ++forgotten; }
    [[nodiscard]] std::string source() const override { return "test"; }

    void release() {
        const std::lock_guard lock(mutex_);
        hang = false;
        released_.notify_all();
    }

    void wait_until_asked(int times) const {
        for (int now = asked; now < times; now = asked) {
            asked.wait(now);
        }
    }

    std::atomic<int> asked = 0;
    std::atomic<int> forgotten = 0;
    std::atomic<bool> fail = false;
    std::atomic<bool> hang = false;
    std::optional<Wall> expires;

private:
    std::mutex mutex_;
    std::condition_variable_any released_;
};

class TokenCacheStory : public testing::Test {
protected:
    [[nodiscard]] Token get() { return cache.get(key, soon(), {}); }

    ManualClock clock;
    Metrics metrics;
    CapturingLogger log;
    std::shared_ptr<TestProvider> provider = std::make_shared<TestProvider>();
    TokenKey key{.host = "abc.dsql.us-east-1.on.aws", .region = "us-east-1"};
    TokenCache cache{provider, {.clock = &clock, .metrics = &metrics, .logger = &log, .seed = 7}};
};

}  // namespace holdfast::dsql::tests

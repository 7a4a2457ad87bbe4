// Tokens for opening connections, always with enough life left.
//
// For each key there is one current token, made at the first get() and replaced before it gets
// old; concurrent calls share the token that is being made. All signing, and all waiting for
// credentials, happens on one thread of the cache, so a caller's own deadline holds even if a
// credential service hangs.
#pragma once

#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/dsql/token.hpp>

namespace holdfast {
class Logger;
}

namespace holdfast::dsql {

struct TokenKey {
    std::string host;
    std::string region;
    std::string user = std::string(admin_user);
    std::chrono::seconds life = token_life_default;

    friend auto operator<=>(const TokenKey&, const TokenKey&) = default;
};

struct Token {
    std::string text;  // A secret.
    TokenLife life;
};

// Whether enough is left for an opening that begins now.
[[nodiscard]] bool is_usable(const TokenLife& life, Wall now) noexcept;
// When a token is replaced: after 80 % of its life.
[[nodiscard]] Wall refresh_time(const TokenLife& life) noexcept;

struct TokenCacheOptions {
    const Clock* clock = nullptr;
    Metrics* metrics = nullptr;
    Logger* logger = nullptr;
    std::uint64_t seed = 0;  // Of the jitter; 0: any.
};

// Safe to share between threads.
class TokenCache {
public:
    // The time for one look-up of credentials and one signature; callers may wait for less.
    static constexpr std::chrono::seconds generation_patience{10};
    // Refreshing is tried again after one second, then two, and so on.
    static constexpr std::chrono::seconds retry_first{1};
    static constexpr std::chrono::seconds retry_most{30};
    // Of the life of a token, up and down, so that many processes do not refresh together.
    static constexpr double refresh_jitter = 0.05;

    // Requires: a provider. Else invalid_argument.
    explicit TokenCache(std::shared_ptr<CredentialProvider> provider,
                        TokenCacheOptions options = {});
    ~TokenCache();
    TokenCache(const TokenCache&) = delete;
    TokenCache& operator=(const TokenCache&) = delete;

    // Waits while a token is being made. Throws the error of a failed attempt; deadline or
    // cancelled if the wait ends first; unavailable after stop().
    [[nodiscard]] Token get(const TokenKey& key, Deadline deadline, const std::stop_token& stop);

    // The server has refused this token: it is not returned again, and the credentials are looked
    // up again. A newer token stays.
    void invalidate(const TokenKey& key, const std::string& token);

    void clear();
    [[nodiscard]] std::size_t size() const;  // Tokens, usable or not.

    // Where the credentials came from, for messages.
    [[nodiscard]] std::string credential_source() const { return provider_->source(); }

    // Ends the refreshing and wakes all waiting callers. May be repeated.
    void stop();

private:
    struct Entry {
        std::optional<Token> current;
        bool wanted = false;           // A caller waits.
        std::uint64_t finished = 0;    // Generations, successful or not.
        std::optional<Error> failure;  // Of the last one. By value: each caller gets a copy.
        int failures = 0;              // In a row.
        Steady due = Steady::max();    // When to refresh.
    };
    using Entries = std::map<TokenKey, std::shared_ptr<Entry>>;

    void wait_for_generation(std::unique_lock<std::mutex>& lock,
                             Entry& entry,
                             Deadline deadline,
                             const std::stop_token& stop);
    void work(const std::stop_token& stop);
    [[nodiscard]] Entries::value_type* next_entry(Steady now, Steady& wake);
    void generate(const TokenKey& key,
                  Entry& entry,
                  std::unique_lock<std::mutex>& lock,
                  const std::stop_token& stop);
    [[nodiscard]] Token make(const TokenKey& key, const std::stop_token& stop);
    void succeed(const TokenKey& key, Entry& entry, Token token);
    void fail(const TokenKey& key, Entry& entry, const Error& failure);
    void wake_worker();

    const std::shared_ptr<CredentialProvider> provider_;
    const Clock& clock_;
    Logger& logger_;
    Counter hits_, misses_, refreshes_, refresh_failures_;
    Gauge age_;
    Histogram made_seconds_, failed_seconds_;

    mutable std::mutex mutex_;  // Protects what follows; never held while signing.
    std::condition_variable_any finished_;
    Entries entries_;
    Random random_;
    std::stop_source nap_;
    bool stopping_ = false;
    std::jthread worker_;
};

}  // namespace holdfast::dsql

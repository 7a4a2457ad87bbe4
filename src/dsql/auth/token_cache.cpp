#include <holdfast/dsql/token_cache.hpp>

#include <algorithm>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::dsql {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

constexpr std::chrono::seconds margin_min{30};
constexpr int margin_part = 10;      // Of the life: a tenth.
constexpr int refresh_percent = 80;  // Of the life.
constexpr std::chrono::hours longest_nap{1};

std::uint64_t any_seed(std::uint64_t seed) {
    return seed != 0 ? seed : secure_seed();
}

Counter counter(Metrics* metrics, const char* name, const char* help) {
    return metrics == nullptr ? Counter{} : metrics->counter(name, help);
}

Histogram generation(Metrics* metrics, const char* outcome) {
    if (metrics == nullptr) {
        return {};
    }
    return metrics->histogram("dsql_token_generation_seconds",
                              "Time to look up credentials and sign one token",
                              latency_bounds(),
                              {{"outcome", outcome}});
}

Error stopped() {
    return {Code::unavailable, Outcome::not_applied, "the token cache has been stopped"};
}

}  // namespace

bool is_usable(const TokenLife& life, Wall now) noexcept {
    const auto whole = life.expiry - life.birth;
    const auto margin =
        std::min<microseconds>(std::max<microseconds>(margin_min, whole / margin_part), whole / 2);
    return life.expiry - now >= margin && life.expiry > now;
}

Wall refresh_time(const TokenLife& life) noexcept {
    return life.birth + (life.expiry - life.birth) * refresh_percent / 100;
}

TokenCache::TokenCache(std::shared_ptr<CredentialProvider> provider, TokenCacheOptions options)
    : provider_(std::move(provider)),
      clock_(options.clock == nullptr ? system_clock() : *options.clock),
      logger_(options.logger == nullptr ? null_logger() : *options.logger),
      hits_(counter(options.metrics, "dsql_token_cache_hits", "Tokens found in the cache")),
      misses_(counter(options.metrics, "dsql_token_cache_misses", "Tokens that were waited for")),
      refreshes_(counter(options.metrics, "dsql_token_refreshes", "Tokens replaced in time")),
      refresh_failures_(counter(
          options.metrics, "dsql_token_refresh_failures", "Tokens that could not be replaced")),
      age_(options.metrics == nullptr
               ? Gauge{}
               : options.metrics->gauge("dsql_token_age_seconds",
                                        "Age of the token that was handed out last")),
      made_seconds_(generation(options.metrics, "ok")),
      failed_seconds_(generation(options.metrics, "error")),
      random_(any_seed(options.seed)) {
    if (!provider_) {
        throw InvalidArgument("a token cache needs a credential provider");
    }
    worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

TokenCache::~TokenCache() {
    stop();
}

Token TokenCache::get(const TokenKey& key, Deadline deadline, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    auto& slot = entries_[key];
    if (!slot) {
        slot = std::make_shared<Entry>();
    }
    const std::shared_ptr<Entry> entry = slot;  // Stays valid if the cache is cleared meanwhile.
    const std::optional<Token>& current = entry->current;
    const Wall now = clock_.wall_now();
    if (current && is_usable(current->life, now)) {
        hits_.add();
        age_.set(std::chrono::duration<double>(now - current->life.birth).count());
        return *current;
    }
    misses_.add();
    do {
        wait_for_generation(lock, *entry, deadline, stop);
    } while (!current);  // Invalidated before this thread could take it.
    age_.set(0);
    return *current;
}

void TokenCache::wait_for_generation(std::unique_lock<std::mutex>& lock,
                                     Entry& entry,
                                     Deadline deadline,
                                     const std::stop_token& stop) {
    const std::uint64_t seen = entry.finished;
    entry.wanted = true;
    wake_worker();
    const bool answered = finished_.wait_until(
        lock, stop, deadline.when(), [&] { return stopping_ || entry.finished != seen; });
    if (stop.stop_requested() && !answered) {
        throw Error(Code::cancelled, Outcome::not_applied, "waiting for a token was stopped");
    }
    if (!answered) {
        throw Error(Code::deadline,
                    Outcome::not_applied,
                    "no token could be made in time; check the service that gives credentials");
    }
    if (entry.finished == seen) {
        throw stopped();
    }
    if (entry.failure) {
        throw Error(*entry.failure);
    }
}

void TokenCache::invalidate(const TokenKey& key, const std::string& token) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(key);
        if (found == entries_.end()) {
            return;
        }
        std::optional<Token>& current = found->second->current;
        if (!current || current->text != token) {
            return;
        }
        current.reset();
        found->second->due = Steady::max();
    }
    provider_->forget();
}

void TokenCache::clear() {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end();) {
        // Waiting callers keep their entry; the next get() makes a new one.
        entry = entry->second->wanted ? std::next(entry) : entries_.erase(entry);
    }
}

std::size_t TokenCache::size() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
            return entry.second->current.has_value();
        }));
}

void TokenCache::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        worker_.request_stop();
        wake_worker();
        finished_.notify_all();
    }
    if (worker_.joinable()) {
        worker_.join();
    }
}

void TokenCache::wake_worker() {
    nap_.request_stop();
}

void TokenCache::work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        const Steady now = clock_.steady_now();
        Steady wake = now + longest_nap;
        if (auto* const next = next_entry(now, wake)) {
            const TokenKey key = next->first;
            const std::shared_ptr<Entry> entry = next->second;
            generate(key, *entry, lock, stop);
            continue;
        }
        nap_ = std::stop_source{};
        const std::stop_token woken = nap_.get_token();
        lock.unlock();
        clock_.sleep_until(wake, woken);
        lock.lock();
    }
}

// An entry whose token is wanted or due; else null, and `wake` is moved up to the next one.
TokenCache::Entries::value_type* TokenCache::next_entry(Steady now, Steady& wake) {
    Entries::value_type* due = nullptr;
    for (auto& entry : entries_) {
        if (entry.second->wanted) {
            return &entry;
        }
        wake = std::min(wake, entry.second->due);
        if (entry.second->due <= now) {
            due = &entry;
        }
    }
    return due;
}

void TokenCache::generate(const TokenKey& key,
                          Entry& entry,
                          std::unique_lock<std::mutex>& lock,
                          const std::stop_token& stop) {
    lock.unlock();
    const auto begin = clock_.steady_now();
    std::optional<Token> token;
    std::optional<Error> failure;
    try {
        token = make(key, stop);
    } catch (const Error& error) {
        failure = error;
    } catch (const std::exception& error) {
        failure = Error(Code::internal, Outcome::not_applied, error.what());
    }
    const std::chrono::duration<double> took = clock_.steady_now() - begin;
    (failure ? failed_seconds_ : made_seconds_).observe(took.count());
    lock.lock();
    if (token) {
        succeed(key, entry, std::move(*token));
    } else if (failure) {
        fail(key, entry, *failure);
    }
    entry.wanted = false;
    ++entry.finished;
    finished_.notify_all();
}

Token TokenCache::make(const TokenKey& key, const std::stop_token& stop) {
    const Credentials credentials = provider_->get(Deadline::after(generation_patience), stop);
    Token token{.text = make_token({.host = key.host,
                                    .region = key.region,
                                    .action = action_of(key.user),
                                    .life = key.life},
                                   credentials,
                                   clock_.wall_now()),
                .life = {}};
    // The token's own life counts, not the requested one: expiring credentials shorten it.
    const auto life = life_of_token(token.text);
    if (!life) {
        throw Error(Code::internal, Outcome::not_applied, "the token that was made is malformed");
    }
    token.life = *life;
    return token;
}

void TokenCache::succeed(const TokenKey& key, Entry& entry, Token token) {
    const TokenLife life = token.life;
    const std::chrono::duration<double> whole = life.expiry - life.birth;
    const std::chrono::duration<double> jitter = whole * refresh_jitter * (2 * random_.unit() - 1);
    const auto left = refresh_time(life) - clock_.wall_now();
    entry.due = clock_.steady_now() + std::max<std::chrono::nanoseconds>(
                                          left + duration_cast<microseconds>(jitter), retry_first);
    if (entry.current) {
        refreshes_.add();
    }
    entry.current = std::move(token);
    entry.failure.reset();
    entry.failures = 0;
    logger_.info("token.refreshed",
                 {{"host", key.host},
                  {"region", key.region},
                  {"user", key.user},
                  {"life_s", duration_cast<std::chrono::seconds>(whole).count()},
                  {"credentials", provider_->source()}});
}

void TokenCache::fail(const TokenKey& key, Entry& entry, const Error& failure) {
    entry.failure = failure;
    if (!entry.current) {
        return;  // Only waiting callers need it; they may ask again.
    }
    refresh_failures_.add();
    constexpr int doublings_max = 5;
    const auto pause = retry_first * (1 << std::min(entry.failures, doublings_max));
    ++entry.failures;
    entry.due = clock_.steady_now() + std::min<std::chrono::seconds>(pause, retry_most);
    const auto left = entry.current->life.expiry - clock_.wall_now();
    logger_.error("token.refresh_failed",
                  {{"host", key.host},
                   {"user", key.user},
                   {"cause", failure.what()},
                   {"expires_in_s", duration_cast<std::chrono::seconds>(left).count()}});
}

}  // namespace holdfast::dsql

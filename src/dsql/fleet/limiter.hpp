// Permits to open connections, for the threads of one process.
//
// Alone, a process has its own token bucket. In a fleet it asks the shared store, and if that does
// not answer it falls back to its share: there is always a limit.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "fleet/fleet_store.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/pool/breaker.hpp>
#include <holdfast/pool/permits.hpp>
#include <holdfast/pool/token_bucket.hpp>

namespace holdfast::dsql {

struct LimiterOptions {
    double local_per_second = 10;
    int local_burst = 100;
    // Of the fleet; null: the process is alone.
    std::shared_ptr<PermitStore> store{};
    pool::PermitConfig fleet{};
    int fleet_size = 10;  // The approximate number of processes that share the limit.

    pool::FleetLimits limits{};
    const Clock* clock = nullptr;
    Metrics* metrics = nullptr;
    Logger* logger = nullptr;
};

// Safe to share between threads.
class Limiter {
public:
    // Invalid_argument for a limit that is not positive.
    explicit Limiter(LimiterOptions options);
    ~Limiter();
    Limiter(const Limiter&) = delete;
    Limiter& operator=(const Limiter&) = delete;

    // Waits until one connection may be opened. Throws pool::OpenError (rate_limited) if that is
    // not before the deadline, cancelled if the token fires.
    void acquire(Deadline deadline, const std::stop_token& stop);

    // The server has refused a connection because of its rate limit: slower for a while.
    void refused();

    // Whether the shared store is not used because it does not answer.
    [[nodiscard]] bool degraded() const;

private:
    enum class Mode { local, fleet, share };
    struct Meters;

    [[nodiscard]] Mode mode(Steady now);
    void acquire_local(pool::TokenBucket& bucket,
                       double full_rate,
                       Mode as,
                       Deadline deadline,
                       const std::stop_token& stop);
    // False if the store does not answer.
    [[nodiscard]] bool acquire_fleet(Deadline deadline, const std::stop_token& stop);
    [[nodiscard]] pool::PermitAnswer ask(const pool::PermitWrite& write,
                                         Deadline deadline,
                                         const std::stop_token& stop);
    void note(bool answered, const std::string& cause);
    void sleep(Steady until, Deadline deadline, const std::stop_token& stop) const;
    [[noreturn]] void give_up(Mode as, std::chrono::nanoseconds waited, int attempts);
    [[nodiscard]] pool::Moment now() const;

    const LimiterOptions options_;
    const Clock& clock_;
    Logger& logger_;
    const std::unique_ptr<Meters> meters_;
    const double share_rate_;

    mutable std::mutex mutex_;  // Guards all below; never held while waiting.
    pool::TokenBucket own_;
    pool::TokenBucket share_;
    std::set<pool::WaiterId> served_;
    std::uint64_t waiters_ = 0;
    pool::Breaker breaker_;
    pool::SlowDown pace_;
    pool::PermitMemory memory_;
    bool warned_of_skew_ = false;
};

}  // namespace holdfast::dsql

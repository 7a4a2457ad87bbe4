// The leases of one process at one endpoint, each for one connection: a thread that acquires and
// releases them and sends heartbeats, and another one that frees the leases of dead owners.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "fleet/lease_store.hpp"
#include "fleet/shed_registry.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/pool/leases.hpp>

namespace holdfast::dsql {

struct LeaseKeeperOptions {
    std::shared_ptr<DynamoClient> client{};
    std::string table{};
    std::string endpoint{};
    FleetMember member{};
    pool::LeasesConfig leases{};
    pool::FleetLimits limits{};
    std::chrono::nanoseconds call_patience = std::chrono::seconds{5};
    std::chrono::nanoseconds reap_patience = std::chrono::minutes{1};
    const Clock* clock = nullptr;  // Null: the machine's.
    Metrics* metrics = nullptr;
    Logger* logger = nullptr;
};

// Safe to share between threads.
class LeaseKeeper {
public:
    // Invalid_argument for settings that cannot work.
    explicit LeaseKeeper(LeaseKeeperOptions options);
    ~LeaseKeeper();  // As stop().
    LeaseKeeper(const LeaseKeeper&) = delete;
    LeaseKeeper& operator=(const LeaseKeeper&) = delete;

    // Registers a holder; `shed` is called from the keeper's thread when some must be closed.
    [[nodiscard]] ShedRegistry::Id join(int target, ShedRegistry::Shed shed);
    void leave(ShedRegistry::Id holder) { holders_.leave(holder); }

    // Throws pool::OpenError (full) if no lease is free by the deadline, cancelled if the stop
    // token fires.
    [[nodiscard]] pool::LeaseId acquire(Deadline deadline, const std::stop_token& stop);
    void release(const pool::LeaseId& lease);

    // The server is full although there was a lease: the counter may be wrong.
    void doubt_count();

    struct View {
        int used = 0;
        int releasing = 0;  // Not confirmed yet.
        bool degraded = false;
    };
    [[nodiscard]] View view() const;

    // Waits, within bounds, until all releases are stored. The reapers of other processes free what
    // is still held, once the heartbeat has stopped. May be repeated.
    void stop();

private:
    struct Meters;
    using Answer = std::variant<pool::LeaseId, pool::LeaseDenial>;

    void run(const std::stop_token& stop);
    void finish(std::unique_lock<std::mutex>& lock);
    void step(std::unique_lock<std::mutex>& lock, const pool::LeaseEvent& event);
    [[nodiscard]] std::optional<pool::LeaseEvent> carry_out(const pool::LeaseAction& action);
    void settle(pool::LeaseWish wish, Answer answer);
    [[nodiscard]] Wall first_asked(const std::string& token);
    void reap(const std::stop_token& stop);
    void reap_once(const std::stop_token& stop);
    void publish();
    [[noreturn]] void deny(pool::LeaseDenial why);

    const LeaseKeeperOptions options_;
    Logger& logger_;
    const Clock& clock_;
    const std::unique_ptr<Meters> meters_;
    LeaseStore store_;
    std::map<std::string, Wall> asked_;  // By token; of the keeper's thread.

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    pool::Leases leases_;
    std::deque<pool::LeaseEvent> inbox_;
    std::set<pool::LeaseWish> waiting_;
    std::map<pool::LeaseWish, Answer> answers_;
    std::uint64_t wishes_ = 0;
    std::uint64_t retries_told_ = 0;
    bool stopped_ = false;
    bool doubted_ = false;
    Steady reconcile_at_{};
    ShedRegistry holders_;  // Not under the mutex: `shed` is called without it.
    std::jthread thread_;   // Last: they use all of the above.
    std::jthread reaper_;
};

}  // namespace holdfast::dsql

// The workers that report to this server, as their last heartbeats show them.
//
// In memory only: a worker reports every minute, so that after a restart the list is complete again
// within that time. A worker that stops reporting is forgotten.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <temporal/api/worker/v1/message.pb.h>

#include <holdfast/base/clock.hpp>

namespace holdfast::server::workers {

using Heartbeat = temporal::api::worker::v1::WorkerHeartbeat;
using HeartbeatPtr = std::shared_ptr<const Heartbeat>;

// Above these the workers that have been silent for longest are forgotten.
struct RegistryLimits {
    std::size_t workers_max = 100'000;
    std::size_t bytes_max = std::size_t{128} << 20;  // Of heartbeats as they came.
};

// Safe to share between threads. No call blocks.
class Registry {
public:
    static constexpr std::chrono::minutes kept{5};  // After the last heartbeat.

    // Requires: `clock` outlives this object.
    explicit Registry(const Clock& clock, RegistryLimits limits = {}) noexcept
        : clock_(clock), limits_(limits) {}
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;

    // Replaces what the worker reported before. One that says that it has shut down is forgotten;
    // one without a key cannot be named, and is not kept.
    void record(const std::string& namespace_id, Heartbeat heartbeat);

    [[nodiscard]] HeartbeatPtr find(const std::string& namespace_id, const std::string& key);
    // By key, those after this one.
    [[nodiscard]] std::vector<HeartbeatPtr> list(const std::string& namespace_id,
                                                 const std::string& after = {});

private:
    struct Place {
        std::string namespace_id;
        std::string key;
    };
    struct Entry {
        HeartbeatPtr heartbeat;
        std::size_t bytes = 0;
        Steady at;
        std::list<Place>::iterator where;
    };
    using Workers = std::map<std::string, Entry>;

    void forget(const std::string& namespace_id, const std::string& key);
    void forget_silent();

    const Clock& clock_;
    const RegistryLimits limits_;

    std::mutex mutex_;
    std::map<std::string, Workers> namespaces_;
    std::list<Place> by_time_;  // The one that is silent for longest first.
    std::size_t bytes_ = 0;
};

}  // namespace holdfast::server::workers

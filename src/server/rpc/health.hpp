// The health protocol's view of the server: one state for all of its services.
//
// Clients ask by the name of a service, launchers wait until it serves, and load balancers watch.
// Health is told apart from the dispatch table's gate, for it turns first when the server stops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "rpc/conversation.hpp"

namespace holdfast::server::rpc {

class Dispatch;

// The numbers are those of grpc.health.v1.
enum class HealthStatus : std::uint8_t { serving = 1, not_serving = 2, service_unknown = 3 };

// Safe to share between threads. Not serving at first.
class Health {
public:
    using Changed = std::function<void()>;

    void set_serving(bool serving);

    // Of the service of that name; the empty name is the server.
    [[nodiscard]] HealthStatus status(std::string_view service) const;

    // A client that watches a service, whose name it says first. `changed` is called after every
    // change, without a lock, from the thread that made it; a call that is under way may end after
    // the conversation has. Requires: this object outlives the conversation.
    [[nodiscard]] std::unique_ptr<Conversation> watch(Changed changed);

    // How many watch.
    [[nodiscard]] std::size_t watching() const;

    // Adds grpc.health.v1.Health/Check, which answers whatever the gate's state.
    // Requires: this object outlives the calls of `dispatch`.
    void add_to(Dispatch& dispatch);

private:
    friend class HealthWatch;

    mutable std::mutex mutex_;
    bool serving_ = false;
    std::uint64_t last_watch_ = 0;
    std::map<std::uint64_t, Changed> watches_;
};

}  // namespace holdfast::server::rpc

// What a gRPC server makes of each call it receives, and which calls are open.
//
// Unary calls go through the dispatch table. Two services stream, and so stand beside it: watching
// health, and reflection.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>

#include "rpc/call_meter.hpp"
#include "rpc/dispatch.hpp"
#include "rpc/health.hpp"
#include "rpc/reflection.hpp"
#include <grpcpp/generic/async_generic_service.h>

#include <holdfast/base/clock.hpp>

namespace holdfast::server::rpc {

class StreamCall;

// Safe to share between threads.
class OpenCalls {
public:
    void entered();
    void left();

    // Blocks until every call has left; false if the deadline passes first.
    bool wait_for_none(Deadline deadline);

    // A stream that is added after close_streams() is closed at once.
    void add_stream(const std::shared_ptr<StreamCall>& stream);
    void close_streams();

private:
    std::mutex mutex_;
    std::condition_variable none_;
    std::size_t count_ = 0;
    bool closing_ = false;
    std::set<std::weak_ptr<StreamCall>, std::owner_less<>> streams_;  // Some are gone.
};

// What all calls of a server share. Outlives them: a server that has shut down has none.
struct Serving {
    Dispatch& dispatch;
    Health& health;
    Reflection reflection;
    CallMeter* meter = nullptr;  // May be null.
    OpenCalls open{};
};

// The reactor of a call that begins. It belongs to gRPC until its OnDone, in which it releases
// itself.
[[nodiscard]] grpc::ServerGenericBidiReactor* new_call(Serving& serving,
                                                       grpc::GenericCallbackServerContext& context);

}  // namespace holdfast::server::rpc

// The table of methods: bytes in, one answer out.
//
// Everything above it is typed, everything below it is a transport. It decodes requests on the
// call's arena, refuses what no handler should see, and turns what handlers throw into refusals. It
// has no threads and does not block.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rpc/call.hpp"

namespace holdfast::server::rpc {

struct DispatchLimits {
    std::size_t request_bytes = std::size_t{4} << 20;
    int request_depth = 100;  // Messages within messages.
};

// When a method is served.
enum class Gate : std::uint8_t {
    ready,   // Between open() and stop(), to callers that pass the checks.
    always,  // Also before and after that, and unchecked: health.
};

// Methods and checks are added before the first call; after that, every function may be called from
// any thread.
class Dispatch {
public:
    template <class Request, class Response>
    using Handler = std::function<void(const Request&, Reply<Response>)>;

    // Looks at a call before its handler does. Requires: it does not block.
    using Check = std::function<std::optional<Refusal>(const CallInfo&)>;

    // Requires: `log` outlives this object.
    explicit Dispatch(Logger& log, DispatchLimits limits = {});

    // `method` is the full name, "/package.Service/Method". The request lives as long as the Reply.
    // Requires: a method is added once.
    template <class Request, class Response>
    void add(std::string method, Handler<Request, Response> handler, Gate gate = Gate::ready) {
        auto raw = [handler = std::move(handler)](auto& call, auto& decode) {
            auto* request = google::protobuf::Arena::CreateMessage<Request>(&call->arena());
            if (decode(*request)) {
                handler(*request, Reply<Response>(call));
            }
        };
        add_raw(std::move(method), std::move(raw), gate);
    }

    // Checks run in the order in which they were added; the first refusal is the answer.
    void add_check(Check check) { checks_.push_back(std::move(check)); }

    [[nodiscard]] const DispatchLimits& limits() const noexcept { return limits_; }

    // A server starts closed: calls are refused as UNAVAILABLE until it is ready.
    void open();

    // Refuses new calls and tells every open call that the server stops.
    void stop();

    // Refuses what is still open. Call it after stop(), when the time for answers is over.
    void close();

    // Runs a call. By the return it is answered or parked. The transport may cancel it at any
    // time, also before this.
    void run(const std::shared_ptr<Call>& call, std::string_view request);

    // How a refusal leaves the server; see rpc::shaped.
    [[nodiscard]] Refusal shape(Refusal refusal) const { return shaped(std::move(refusal), log_); }

    [[nodiscard]] std::size_t open_calls() const;
    [[nodiscard]] std::vector<std::string> methods() const;

private:
    using Decode = std::function<bool(google::protobuf::Message&)>;
    using RawHandler = std::function<void(const std::shared_ptr<Call>&, const Decode&)>;

    struct Method {
        RawHandler handler;
        Gate gate;
    };

    void add_raw(std::string method, RawHandler handler, Gate gate);
    [[nodiscard]] bool admits(Gate gate) const { return gate == Gate::always || serving_; }
    void remember(const std::shared_ptr<Call>& call);
    [[nodiscard]] std::vector<std::shared_ptr<Call>> open_calls_now();
    [[nodiscard]] std::optional<Refusal> refused(const CallInfo& info,
                                                 const Method& method,
                                                 std::size_t bytes) const;
    [[nodiscard]] bool decode(Call& call,
                              std::string_view bytes,
                              google::protobuf::Message& request) const;

    Logger& log_;
    const DispatchLimits limits_;
    std::map<std::string, Method, std::less<>> methods_;
    std::vector<Check> checks_;
    std::atomic<bool> serving_ = false;

    mutable std::mutex mutex_;
    std::vector<std::weak_ptr<Call>> open_;  // Some are over: swept when they are the most.
    std::size_t sweep_at_ = 64;
};

}  // namespace holdfast::server::rpc

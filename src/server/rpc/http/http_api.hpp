// The API over HTTP: paths and JSON above the table of methods, which gRPC calls too.
//
// A call that waits is parked as it is below gRPC: it holds a connection and no thread. It ends at
// its deadline, which every call has here.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/alarms.hpp"
#include "rpc/dispatch.hpp"
#include "rpc/http/request.hpp"
#include "rpc/http/routes.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/http.hpp>

namespace holdfast::server::rpc {

class CallMeter;

struct HttpApiLimits {
    std::size_t long_calls = 32;  // That wait, at once; more are refused with 429.
    std::chrono::nanoseconds call = std::chrono::minutes{1};  // Unless Grpc-Timeout says less.
};

// Safe to share between threads.
class HttpApi {
public:
    // Requires: all outlive this object; `dispatch` has its methods and keeps them; `meter` may be
    // null. Every call is answered before this object goes: Dispatch::close() sees to it.
    HttpApi(Dispatch& dispatch,
            Alarms& alarms,
            const Clock& clock,
            CallMeter* meter,
            HttpApiLimits limits = {});

    // Never blocks. For HttpServer, as its handler.
    void answer(const ReceivedRequest& request, const HttpRespond& respond);

    [[nodiscard]] std::size_t long_calls() const noexcept { return long_calls_; }

private:
    struct Pending;

    void begin(const Found& found,
               const ReceivedRequest& request,
               const Wishes& wishes,
               const HttpRespond& respond);
    [[nodiscard]] CallInfo info_of(const Found& found, const ReceivedRequest& request) const;
    [[nodiscard]] bool take_place(Pending& pending, const google::protobuf::Message& request);
    void finish(Pending& pending, Answer answer);
    [[nodiscard]] HttpAnswer refused(const Refusal& refusal, const Wishes& wishes) const;
    [[nodiscard]] HttpAnswer other_verb(const ReceivedRequest& request, const Wishes& wishes) const;

    Dispatch& dispatch_;
    Alarms& alarms_;
    const Clock& clock_;
    CallMeter* const meter_;
    const HttpApiLimits limits_;
    const Routes routes_;
    std::atomic<std::size_t> long_calls_ = 0;
};

// "5S" is five seconds; nothing if it is not a time of gRPC's header.
[[nodiscard]] std::optional<std::chrono::nanoseconds> grpc_timeout(std::string_view text);

}  // namespace holdfast::server::rpc

// One unary call, between the transport that received it and the handler that answers it.
//
// The handler holds a Reply. It may answer at once, or keep the Reply and answer later from another
// thread: a parked call is an object, it holds no thread. Every call gets exactly one answer. A
// Reply that is dropped answers INTERNAL, so that no client waits for ever.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "rpc/refusal.hpp"
#include <google/protobuf/arena.h>
#include <google/protobuf/message.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::rpc {

// What a caller says of itself in metadata. Nothing of it is proven.
struct Caller {
    std::string client_name{};
    std::string client_version{};
    std::string supported_server_versions{};  // A range.
    std::string namespace_hint{};             // For routing; the request's own field decides.
    std::string authorization{};              // A secret. Never logged.
    std::string supported_features{};
    std::string caller_type{};
};

struct CallInfo {
    std::string method;                                             // "/package.Service/Method"
    std::optional<std::chrono::system_clock::time_point> deadline;  // Nothing: the caller waits.
    Caller caller;
};

// A serialised response, or a refusal.
using Answer = std::variant<std::string, Refusal>;

// Why a parked call should end.
enum class Ending : std::uint8_t {
    cancelled,  // The caller left, or its deadline passed. It is answered already.
    stopping,   // The server stops: answer now, with what an idle wait answers.
};

// Safe to share between threads. No function of a caller runs under its lock.
class Call {
public:
    using Finish = std::function<void(Answer)>;

    // `finish` is called exactly once, from the thread that answers. Requires: an answer is given
    // before the last owner lets go; Dispatch and Reply see to it.
    Call(CallInfo info, Finish finish);

    [[nodiscard]] const CallInfo& info() const noexcept { return info_; }
    [[nodiscard]] google::protobuf::Arena& arena() noexcept { return arena_; }

    // False if the call is over: then this answer is not sent.
    bool answer(Answer answer);

    // The caller left: answers CANCELLED, then tells the handler. Does nothing to a call that is
    // over.
    void cancel();

    // Tells the handler that the server stops, unless it was told something before.
    void stop();

    // Calls `told` once, when the call should end: at once if that was already so. Never called
    // after the handler's own answer has returned, unless it was under way.
    void on_end(std::function<void(Ending)> told);

    [[nodiscard]] bool over() const;

    // The handler's run. A Reply dropped within it waits for the run's end, for the exception that
    // unwinds the handler says more than the loss of its Reply.
    void begin_run();
    void end_run(std::optional<Refusal> thrown);
    void drop();

private:
    void tell(std::unique_lock<std::mutex> lock, Ending ending);

    const CallInfo info_;
    google::protobuf::Arena arena_;
    mutable std::mutex mutex_;
    Finish finish_;  // Empty once the call is answered.
    std::function<void(Ending)> told_;
    std::optional<Ending> ending_;
    bool running_ = false;
    bool dropped_ = false;
};

// The right to answer a call, once. Movable; the request and the response live as long as it does.
template <class Response>
class Reply {
public:
    explicit Reply(std::shared_ptr<Call> call)
        : call_(std::move(call)),
          message_(google::protobuf::Arena::CreateMessage<Response>(&call_->arena())) {}
    Reply(Reply&& other) noexcept : call_(std::move(other.call_)), message_(other.message_) {}
    Reply(const Reply&) = delete;
    Reply& operator=(const Reply&) = delete;
    Reply& operator=(Reply&&) = delete;
    ~Reply() {
        if (call_) {
            call_->drop();
        }
    }

    [[nodiscard]] const CallInfo& info() const noexcept { return call_->info(); }

    // What will be sent. Empty at first.
    [[nodiscard]] Response& message() noexcept { return *message_; }

    // True if the call has ended: an answer would not be sent.
    [[nodiscard]] bool over() const { return call_->over(); }

    // See Call::on_end. `told` may run while this thread is still in on_end.
    void on_end(std::function<void(Ending)> told) { call_->on_end(std::move(told)); }

    // Sends message(). False if the call was over before: a task in it was not delivered.
    bool send() && {
        const std::shared_ptr<Call> call = take();
        std::string bytes;
        if (!message_->SerializeToString(&bytes)) {  // Above 2 GiB.
            return call->answer(Refusal(StatusCode::internal, "the response cannot be serialised"));
        }
        return call->answer(std::move(bytes));
    }

    bool refuse(Refusal refusal) && { return take()->answer(std::move(refusal)); }

private:
    std::shared_ptr<Call> take() {
        HOLDFAST_ASSERT(call_ != nullptr);  // A Reply answers once.
        return std::exchange(call_, nullptr);
    }

    std::shared_ptr<Call> call_;
    Response* message_;
};

}  // namespace holdfast::server::rpc

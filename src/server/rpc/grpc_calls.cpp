#include "rpc/grpc_calls.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "rpc/grpc_bytes.hpp"
#include <grpcpp/support/status.h>

namespace holdfast::server::rpc {

namespace {

grpc::Status grpc_status(const Refusal& refusal) {
    return {static_cast<grpc::StatusCode>(refusal.code), refusal.message, status_details(refusal)};
}

// Reads the keys it knows; principals, which a proxy would vouch for, are not among them.
Caller caller_of(const grpc::GenericCallbackServerContext& context) {
    const auto& metadata = context.client_metadata();
    const auto value = [&](const char* key) {
        const auto found = metadata.find(key);
        return found == metadata.end() ? std::string()
                                       : std::string(found->second.data(), found->second.size());
    };
    return {.client_name = value("client-name"),
            .client_version = value("client-version"),
            .supported_server_versions = value("supported-server-versions"),
            .namespace_hint = value("temporal-namespace"),
            .authorization = value("authorization"),
            .supported_features = value("supported-features"),
            .caller_type = value("caller-type")};
}

CallInfo info_of(const grpc::GenericCallbackServerContext& context) {
    CallInfo info{.method = context.method(), .deadline = {}, .caller = caller_of(context)};
    const auto deadline = context.deadline();
    if (deadline != std::chrono::system_clock::time_point::max()) {
        info.deadline = deadline;
    }
    return info;
}

// One unary call.
//
// gRPC calls OnDone when Finish was called and every other reaction has returned, so the reactor
// lives until then. Finish is called by finish() alone, and the Call runs that exactly once, on
// whichever thread answers: before it the reactor is there, and after it finish() touches nothing.
// The Call may live longer, in a Reply; it has let go of finish() by then.
class UnaryCall final : public grpc::ServerGenericBidiReactor {
public:
    UnaryCall(Serving& serving, grpc::GenericCallbackServerContext& context)
        : serving_(serving),
          context_(context),
          call_(std::make_shared<Call>(info_of(context),
                                       [this](Answer answer) { finish(std::move(answer)); })) {
        serving_.open.entered();
        StartRead(&request_);
    }

    void OnReadDone(bool ok) override {
        if (!ok) {
            call_->answer(Refusal(StatusCode::invalid_argument, "the call has no request"));
            return;
        }
        const ReceivedBytes received(request_, serving_.dispatch.limits().request_bytes);
        request_.Clear();
        const auto bytes = received.bytes();
        if (!bytes) {
            call_->answer(Refusal(StatusCode::invalid_argument, "the request is not valid gzip"));
        } else if (!call_->over()) {
            if (serving_.meter != nullptr) {
                measured_ = serving_.meter->begin(call_->info().method, *bytes);
                is_measured_ = true;
            }
            serving_.dispatch.run(call_, *bytes);
        }
    }

    // The deadline has passed, the client cancelled, or its connection is gone.
    void OnCancel() override { call_->cancel(); }

    void OnDone() override {
        OpenCalls& open = serving_.open;
        delete this;
        open.left();
    }

private:
    void finish(Answer answer) {
        if (is_measured_) {
            measured_.end(answer);
        }
        if (auto* bytes = std::get_if<std::string>(&answer)) {
            response_ = buffer_of(std::move(*bytes));
            StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
            return;
        }
        const Refusal refusal = serving_.dispatch.shape(std::get<Refusal>(std::move(answer)));
        if (const auto why = exhaustion(refusal)) {
            context_.AddInitialMetadata("x-resource-exhausted-cause", why->cause);
            context_.AddInitialMetadata("x-resource-exhausted-scope", why->scope);
        }
        Finish(grpc_status(refusal));
    }

    Serving& serving_;
    grpc::GenericCallbackServerContext& context_;
    grpc::ByteBuffer request_;
    grpc::ByteBuffer response_;  // gRPC reads it until OnDone.
    CallMeter::Measured measured_;
    std::atomic<bool> is_measured_ = false;  // A cancel may meet the begin.
    const std::shared_ptr<Call> call_;
};

}  // namespace

// A call of several messages.
//
// It owns itself from begin() to OnDone; others have weak pointers. Operations are started under
// its mutex and never after Finish, so each is started on a stream that is there. gRPC runs no
// reaction within the call that starts an operation.
class StreamCall final : public grpc::ServerGenericBidiReactor {
public:
    explicit StreamCall(Serving& serving) : serving_(serving) { serving_.open.entered(); }

    // Makes the conversation with the function that wakes it: call that when it may have something
    // to say. It may be called at any time, also when the stream is gone.
    template <class MakeConversation>
    static grpc::ServerGenericBidiReactor* begin(Serving& serving, MakeConversation make) {
        const auto stream = std::make_shared<StreamCall>(serving);
        {
            const std::lock_guard lock(stream->mutex_);
            stream->self_ = stream;
            stream->conversation_ = make([weak = std::weak_ptr(stream)] {
                if (const auto woken = weak.lock()) {
                    const std::lock_guard wake_lock(woken->mutex_);
                    woken->advance();
                }
            });
            stream->advance();
        }
        serving.open.add_stream(stream);
        return stream.get();
    }

    // The server stops: says what there is to say, and ends.
    void close() {
        const std::lock_guard lock(mutex_);
        closing_ = true;
        advance();
    }

    void OnReadDone(bool ok) override {
        const std::lock_guard lock(mutex_);
        reading_ = false;
        if (finished_) {
            return;
        }
        if (!ok) {  // The client has said all, or it is gone.
            finish(grpc::Status::OK);
            return;
        }
        const ReceivedBytes message(received_, serving_.dispatch.limits().request_bytes);
        if (!message.bytes() || !conversation_->heard(*message.bytes())) {
            finish({grpc::StatusCode::INVALID_ARGUMENT, "the message is not valid"});
        }
        advance();
    }

    void OnWriteDone(bool ok) override {
        const std::lock_guard lock(mutex_);
        writing_ = false;
        if (!ok) {
            finish(grpc::Status::CANCELLED);
        }
        advance();
    }

    void OnCancel() override {
        const std::lock_guard lock(mutex_);
        finish(grpc::Status::CANCELLED);
    }

    void OnDone() override {
        OpenCalls& open = serving_.open;
        conversation_.reset();                  // Not used by advance() after Finish.
        std::exchange(self_, nullptr).reset();  // This object may be gone now.
        open.left();
    }

private:
    // Starts what comes next. Under the mutex.
    void advance() {
        if (finished_ || writing_) {
            return;
        }
        if (auto message = conversation_->next()) {
            writing_ = true;
            sent_ = buffer_of(std::move(*message));
            StartWrite(&sent_);
        } else if (closing_) {
            finish({grpc::StatusCode::UNAVAILABLE, "the server is stopping; call it again"});
        } else if (!reading_ && conversation_->listens()) {
            reading_ = true;
            StartRead(&received_);
        }
    }
    void finish(const grpc::Status& status) {
        if (!std::exchange(finished_, true)) {
            Finish(status);
        }
    }

    Serving& serving_;
    std::mutex mutex_;
    std::shared_ptr<StreamCall> self_;
    std::unique_ptr<Conversation> conversation_;
    grpc::ByteBuffer received_;
    grpc::ByteBuffer sent_;  // gRPC reads it until OnWriteDone.
    bool reading_ = false;
    bool writing_ = false;
    bool closing_ = false;
    bool finished_ = false;
};

void OpenCalls::entered() {
    const std::lock_guard lock(mutex_);
    ++count_;
}

void OpenCalls::left() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) {
        none_.notify_all();
    }
}

bool OpenCalls::wait_for_none(Deadline deadline) {
    std::unique_lock lock(mutex_);
    return none_.wait_until(lock, deadline.when(), [this] { return count_ == 0; });
}

void OpenCalls::add_stream(const std::shared_ptr<StreamCall>& stream) {
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
        if (!closing_) {
            streams_.insert(stream);
            return;
        }
    }
    stream->close();
}

void OpenCalls::close_streams() {
    decltype(streams_) streams;
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
        streams.swap(streams_);
    }
    for (const auto& weak : streams) {
        if (const auto stream = weak.lock()) {
            stream->close();
        }
    }
}

grpc::ServerGenericBidiReactor* new_call(Serving& serving,
                                         grpc::GenericCallbackServerContext& context) {
    const std::string& method = context.method();
    if (method == "/grpc.health.v1.Health/Watch") {
        return StreamCall::begin(serving,
                                 [&](auto wake) { return serving.health.watch(std::move(wake)); });
    }
    if (method == "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo" ||
        method == "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo") {
        return StreamCall::begin(serving, [&](const auto&) { return serving.reflection.begin(); });
    }
    return new UnaryCall(serving, context);
}

}  // namespace holdfast::server::rpc

#include "link.hpp"

#include <utility>

#include <fmt/core.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <holdfast/base/error.hpp>

namespace holdfast::server_bench {

Link::Link(const std::string& address) : address_(address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

Link::~Link() {
    closing_ = true;
    for (const auto& [call, owner] : calls_) {
        call->cancel();
    }
    void* tag = nullptr;
    bool ok = false;
    while (!calls_.empty() && queue_.Next(&tag, &ok)) {
        auto* const call = static_cast<Call*>(tag);
        if (call->finish()) {  // Always, as all are cancelled.
            calls_.erase(call);
        }
    }
    queue_.Shutdown();
    while (queue_.Next(&tag, &ok)) {
    }
}

bool Link::run(const std::function<bool()>& enough,
               Deadline deadline,
               const std::stop_token& stop) {
    constexpr std::chrono::milliseconds look_up{100};  // How often the token and the time count.
    while (!enough()) {
        if (stop.stop_requested()) {
            throw Error(Code::cancelled, Outcome::not_applied, "the benchmark was interrupted");
        }
        if (deadline.remaining() <= std::chrono::nanoseconds{0}) {
            return false;
        }
        void* tag = nullptr;
        bool ok = false;
        if (queue_.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + look_up) !=
            grpc::CompletionQueue::GOT_EVENT) {
            continue;
        }
        // What is done with an answer may begin other calls, and may throw.
        auto node = calls_.extract(static_cast<Call*>(tag));
        if (!node.mapped()->finish()) {
            calls_.insert(std::move(node));
        }
    }
    return true;
}

void Link::connect() {
    const auto deadline = std::chrono::system_clock::now() + brief_timeout;
    for (grpc_connectivity_state state = channel_->GetState(true); state != GRPC_CHANNEL_READY;
         state = channel_->GetState(true)) {
        if (state == GRPC_CHANNEL_TRANSIENT_FAILURE ||
            !channel_->WaitForStateChange(state, deadline)) {
            throw Error(Code::unavailable,
                        Outcome::not_applied,
                        fmt::format("no server answers at {}; start it first", address_));
        }
    }
}

void Link::cancel_polls() {
    for (const auto& [call, owner] : calls_) {
        if (call->kind() == CallKind::poll) {
            call->cancel();
        }
    }
}

std::string Link::path_of(const char* method) {
    return fmt::format("/temporal.api.workflowservice.v1.WorkflowService/{}", method);
}

void require(const grpc::Status& status, const char* method) {
    if (!status.ok()) {
        throw Error(Code::unavailable,
                    Outcome::unknown,
                    fmt::format("{} failed with gRPC code {}: {}",
                                method,
                                static_cast<int>(status.error_code()),
                                status.error_message()));
    }
}

}  // namespace holdfast::server_bench

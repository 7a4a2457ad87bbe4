// Calls to one server, by the names of their methods: no generated service classes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/status.h>

#include <holdfast/base/clock.hpp>

namespace holdfast::server_bench {

// What stands in the way of a call only for now.
[[nodiscard]] inline bool passes(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
           status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
}

// Polls last longer, and cancel_polls() ends them.
enum class CallKind : std::uint8_t { brief, poll };

inline constexpr std::chrono::seconds brief_timeout{30};
inline constexpr std::chrono::seconds poll_timeout{60};

// One thread, the one that calls run(), sends and receives everything, and runs what is to be done
// with each answer. Not safe to share between threads.
class Link {
public:
    explicit Link(const std::string& address);
    ~Link();  // Cancels what is under way; nothing is done with the answers.
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    // A call is repeated, after a pause, while what stands in the way passes and its time lasts.
    template <class Reply, class Request>
    void call(const char* method,
              Request request,
              std::function<void(const grpc::Status&, Reply&)> done,
              CallKind kind = CallKind::brief) {
        auto fresh = std::make_unique<Unary<Request, Reply>>(
            *this, method, std::move(request), std::move(done), kind);
        Unary<Request, Reply>& unary = *fresh;
        calls_.emplace(&unary, std::move(fresh));
        unary.start();
    }

    // Does what is to be done with answers until `enough`. False if the deadline passes first.
    // Throws Error with Code::cancelled if the token fires, and what an answer's work throws.
    [[nodiscard]] bool run(const std::function<bool()>& enough,
                           Deadline deadline,
                           const std::stop_token& stop);

    // Unavailable unless something listens at the address.
    void connect();

    void cancel_polls();
    [[nodiscard]] bool polls() const noexcept { return polls_ > 0; }
    // Calls that had to be repeated.
    [[nodiscard]] std::int64_t repeats() const noexcept { return repeats_; }

private:
    class Call {
    public:
        virtual ~Call() = default;
        // False if it is under way again.
        virtual bool finish() = 0;
        virtual void cancel() = 0;
        [[nodiscard]] virtual CallKind kind() const noexcept = 0;
    };

    template <class Request, class Reply>
    class Unary final : public Call {
    public:
        Unary(Link& link,
              const char* method,
              Request request,
              std::function<void(const grpc::Status&, Reply&)> done,
              CallKind kind)
            : link_(link),
              method_(link.path_of(method)),
              request_(std::move(request)),
              done_(std::move(done)),
              kind_(kind),
              deadline_(std::chrono::system_clock::now() +
                        (kind == CallKind::poll ? poll_timeout : brief_timeout)) {
            link_.polls_ += kind_ == CallKind::poll ? 1 : 0;
        }
        ~Unary() override { link_.polls_ -= kind_ == CallKind::poll ? 1 : 0; }
        Unary(const Unary&) = delete;
        Unary& operator=(const Unary&) = delete;

        void start() {
            waits_ = false;
            context_.emplace();
            context_->set_deadline(deadline_);
            grpc::TemplatedGenericStub<Request, Reply> stub(link_.channel_);
            reader_ = stub.PrepareUnaryCall(&*context_, method_, request_, &link_.queue_);
            reader_->StartCall();
            reader_->Finish(&reply_, &status_, static_cast<Call*>(this));
        }
        bool finish() override {
            if (waits_ && !cancelled_) {
                start();
                return false;
            }
            if (passes(status_) && !cancelled_) {
                waits_ = true;
                ++link_.repeats_;
                alarm_.Set(&link_.queue_,
                           std::chrono::system_clock::now() + pause,
                           static_cast<Call*>(this));
                return false;
            }
            if (!link_.closing_) {
                done_(status_, reply_);
            }
            return true;
        }
        void cancel() override {
            cancelled_ = true;
            if (waits_) {
                alarm_.Cancel();
            } else {
                context_->TryCancel();
            }
        }
        [[nodiscard]] CallKind kind() const noexcept override { return kind_; }

    private:
        static constexpr std::chrono::milliseconds pause{20};

        Link& link_;
        std::string method_;
        Request request_;
        Reply reply_;
        std::function<void(const grpc::Status&, Reply&)> done_;
        CallKind kind_;
        std::chrono::system_clock::time_point deadline_;
        std::optional<grpc::ClientContext> context_;
        std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader_;
        grpc::Status status_;
        grpc::Alarm alarm_;
        bool waits_ = false;  // For the next try.
        bool cancelled_ = false;
    };

    static std::string path_of(const char* method);

    const std::string address_;
    std::shared_ptr<grpc::Channel> channel_;
    grpc::CompletionQueue queue_;
    std::int64_t repeats_ = 0;
    std::int64_t polls_ = 0;  // Under way.
    bool closing_ = false;
    std::unordered_map<Call*, std::unique_ptr<Call>> calls_;
};

// Throws Error unless the call went well.
void require(const grpc::Status& status, const char* method);

}  // namespace holdfast::server_bench

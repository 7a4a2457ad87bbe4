#include "rpc/dispatch.hpp"

#include <algorithm>
#include <exception>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::rpc {

namespace {

// Go, Java and the Rust core each look for words of their own in this text.
Refusal unknown_method(std::string_view method) {
    const std::string_view path = method.starts_with('/') ? method.substr(1) : method;
    const std::size_t slash = path.rfind('/');
    const std::string_view service = slash == path.npos ? "" : path.substr(0, slash);
    const std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
    return {StatusCode::unimplemented,
            fmt::format(
                "unknown method {} for service {}: {} is unimplemented", name, service, method)};
}

}  // namespace

Dispatch::Dispatch(Logger& log, DispatchLimits limits) : log_(log), limits_(limits) {}

void Dispatch::add_raw(std::string method, RawHandler handler, Gate gate) {
    const bool added =
        methods_.emplace(std::move(method), Method{.handler = std::move(handler), .gate = gate})
            .second;
    HOLDFAST_ASSERT(added);
}

void Dispatch::open() {
    serving_ = true;
}

void Dispatch::stop() {
    serving_ = false;
    for (const auto& call : open_calls_now()) {
        call->stop();
    }
}

void Dispatch::close() {
    for (const auto& call : open_calls_now()) {
        call->answer(Refusal(StatusCode::unavailable, "the server has stopped; call it again"));
    }
}

void Dispatch::run(const std::shared_ptr<Call>& call, std::string_view request) {
    const auto found = methods_.find(call->info().method);
    if (found == methods_.end()) {
        call->answer(unknown_method(call->info().method));
        return;
    }
    const Method& method = found->second;
    if (auto refusal = refused(call->info(), method, request.size())) {
        call->answer(std::move(*refusal));
        return;
    }
    remember(call);
    if (!admits(method.gate)) {  // It stopped in between, and may not have seen this call.
        call->answer(Refusal(StatusCode::unavailable, "Frontend is not healthy yet"));
        return;
    }
    std::optional<Refusal> thrown;
    call->begin_run();
    try {
        method.handler(call, [&](google::protobuf::Message& message) {
            return decode(*call, request, message);
        });
    } catch (...) {
        thrown = refusal_of(std::current_exception());
    }
    call->end_run(std::move(thrown));
}

std::optional<Refusal> Dispatch::refused(const CallInfo& info,
                                         const Method& method,
                                         std::size_t bytes) const {
    if (!admits(method.gate)) {
        return Refusal(StatusCode::unavailable, "Frontend is not healthy yet");
    }
    if (bytes > limits_.request_bytes) {  // Clients match the beginning, to fail a task for good.
        return Refusal(StatusCode::resource_exhausted,
                       fmt::format("grpc: received message larger than max ({} vs. {})",
                                   bytes,
                                   limits_.request_bytes));
    }
    if (method.gate == Gate::always) {
        return std::nullopt;
    }
    for (const Check& check : checks_) {
        if (auto refusal = check(info)) {
            return refusal;
        }
    }
    return std::nullopt;
}

// Decoding also refuses texts that are not UTF-8.
bool Dispatch::decode(Call& call,
                      std::string_view bytes,
                      google::protobuf::Message& request) const {
    google::protobuf::io::CodedInputStream stream(
        reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
    stream.SetRecursionLimit(limits_.request_depth);
    if (request.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage()) {
        return true;
    }
    call.answer(Refusal(StatusCode::invalid_argument,
                        fmt::format("the request is not a valid {}", request.GetTypeName())));
    return false;
}

void Dispatch::remember(const std::shared_ptr<Call>& call) {
    const std::lock_guard lock(mutex_);
    if (open_.size() >= sweep_at_) {
        std::erase_if(open_, [](const auto& weak) { return weak.expired(); });
        sweep_at_ = std::max<std::size_t>(64, 2 * open_.size());
    }
    open_.push_back(call);
}

std::vector<std::shared_ptr<Call>> Dispatch::open_calls_now() {
    std::vector<std::shared_ptr<Call>> calls;
    const std::lock_guard lock(mutex_);
    for (const auto& weak : open_) {
        if (auto call = weak.lock()) {
            calls.push_back(std::move(call));
        }
    }
    return calls;
}

std::size_t Dispatch::open_calls() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(open_, [](const auto& weak) {
        const auto call = weak.lock();
        return call && !call->over();
    }));
}

std::vector<std::string> Dispatch::methods() const {
    std::vector<std::string> names;
    names.reserve(methods_.size());
    for (const auto& [name, method] : methods_) {
        names.push_back(name);
    }
    return names;
}

}  // namespace holdfast::server::rpc

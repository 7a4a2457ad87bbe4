#include "rpc/test/grpc_client_fixture.hpp"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::rpc::tests {

namespace {

grpc::ByteBuffer buffer_with(const std::string& text) {
    const grpc::Slice slice(text);
    return {&slice, 1};
}

std::string text_of(const grpc::ByteBuffer& buffer) {
    grpc::Slice slice;
    return buffer.DumpToSingleSlice(&slice).ok()
               ? std::string(reinterpret_cast<const char*>(slice.begin()), slice.size())
               : std::string();
}

}  // namespace

ClientCall::ClientCall(grpc::GenericStub& stub,
                       const std::string& method,
                       const std::string& request,
                       const CallOptions& options)
    : request_(buffer_with(request)) {
    context_.set_deadline(std::chrono::system_clock::now() + options.timeout);
    for (const auto& [key, value] : options.metadata) {
        context_.AddMetadata(key, value);
    }
    if (options.gzip) {
        context_.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    }
    // Owned by the callback, which may still be in set_value() when this object is gone.
    const auto promise = std::make_shared<std::promise<grpc::Status>>();
    finished_ = promise->get_future().share();
    stub.UnaryCall(&context_, method, {}, &request_, &response_, [promise](grpc::Status status) {
        promise->set_value(std::move(status));
    });
}

Answered ClientCall::answer() {
    const grpc::Status status = finished_.get();
    Answered answered{.status = status, .bytes = text_of(response_), .initial_metadata = {}};
    for (const auto& [key, value] : context_.GetServerInitialMetadata()) {
        answered.initial_metadata.emplace(std::string(key.data(), key.size()),
                                          std::string(value.data(), value.size()));
    }
    return answered;
}

ClientStream::ClientStream(grpc::GenericStub& stub, const std::string& method) {
    context_.set_deadline(std::chrono::system_clock::now() + patience);
    stream_ = stub.PrepareCall(&context_, method, &queue_);
    stream_->StartCall(this);
    completed();
}

ClientStream::~ClientStream() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
}

bool ClientStream::completed() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
}

void ClientStream::write(const std::string& message) {
    stream_->Write(buffer_with(message), this);
    HOLDFAST_ASSERT(completed());
}

void ClientStream::writes_done() {
    stream_->WritesDone(this);
    completed();
}

std::optional<std::string> ClientStream::read() {
    grpc::ByteBuffer buffer;
    stream_->Read(&buffer, this);
    return completed() ? std::optional(text_of(buffer)) : std::nullopt;
}

grpc::Status ClientStream::finish() {
    grpc::Status status;
    stream_->Finish(&status, this);
    completed();
    return status;
}

GrpcClient::GrpcClient(std::uint16_t port, const Authority* authority, const Certified& own) {
    auto credentials = grpc::InsecureChannelCredentials();
    if (authority != nullptr) {
        credentials = grpc::SslCredentials({.pem_root_certs = authority->certificate(),
                                            .pem_private_key = own.key,
                                            .pem_cert_chain = own.certificate});
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // A connection of its own.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetSslTargetNameOverride("localhost");
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", port), credentials, arguments));
}

std::unique_ptr<ClientCall> GrpcClient::begin(const std::string& method,
                                              const std::string& request,
                                              const CallOptions& options) {
    return std::make_unique<ClientCall>(*stub_, method, request, options);
}

Answered GrpcClient::call(const std::string& method,
                          const std::string& request,
                          const CallOptions& options) {
    return begin(method, request, options)->answer();
}

std::unique_ptr<ClientStream> GrpcClient::stream(const std::string& method) {
    return std::make_unique<ClientStream>(*stub_, method);
}

}  // namespace holdfast::server::rpc::tests

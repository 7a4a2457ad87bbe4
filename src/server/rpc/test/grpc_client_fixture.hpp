// A client that sends any bytes to any method.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rpc/test/certificates_fixture.hpp"
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

namespace holdfast::server::rpc::tests {

// A test that waits longer than this has failed.
inline constexpr std::chrono::seconds patience{30};

struct Answered {
    grpc::Status status;
    std::string bytes;
    std::multimap<std::string, std::string> initial_metadata;
};

struct CallOptions {
    std::vector<std::pair<std::string, std::string>> metadata{};
    std::chrono::milliseconds timeout = patience;
    bool gzip = false;
};

// One unary call that is under way.
class ClientCall {
public:
    ClientCall(grpc::GenericStub& stub,
               const std::string& method,
               const std::string& request,
               const CallOptions& options);
    ~ClientCall() {
        cancel();
        finished_.wait();
    }
    ClientCall(const ClientCall&) = delete;
    ClientCall& operator=(const ClientCall&) = delete;

    void cancel() { context_.TryCancel(); }
    // Ends by the call's own timeout at the latest.
    Answered answer();

private:
    grpc::ClientContext context_;
    grpc::ByteBuffer request_;
    grpc::ByteBuffer response_;
    std::shared_future<grpc::Status> finished_;
};

// One streaming call, in lockstep.
class ClientStream {
public:
    ClientStream(grpc::GenericStub& stub, const std::string& method);
    ~ClientStream();
    ClientStream(const ClientStream&) = delete;
    ClientStream& operator=(const ClientStream&) = delete;

    void write(const std::string& message);
    void writes_done();
    // Nothing once the server has ended the stream.
    std::optional<std::string> read();
    grpc::Status finish();

private:
    bool completed();

    grpc::ClientContext context_;
    grpc::CompletionQueue queue_;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

class GrpcClient {
public:
    // Without an authority in clear text; `own` is what the client shows.
    explicit GrpcClient(std::uint16_t port,
                        const Authority* authority = nullptr,
                        const Certified& own = {});

    std::unique_ptr<ClientCall> begin(const std::string& method,
                                      const std::string& request,
                                      const CallOptions& options = {});
    Answered call(const std::string& method,
                  const std::string& request,
                  const CallOptions& options = {});
    std::unique_ptr<ClientStream> stream(const std::string& method);

private:
    std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace holdfast::server::rpc::tests

// Messages between gRPC's buffers and ours.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

namespace holdfast::server::rpc {

// A received message in one piece, decompressed. gRPC would decompress by itself, but without a
// bound: a few kilobytes can make gigabytes.
class ReceivedBytes {
public:
    // A longer message is cut after `bytes_max` + 1 bytes, to be refused.
    ReceivedBytes(const grpc::ByteBuffer& buffer, std::size_t bytes_max);

    // Nothing if the message is damaged. Valid as long as this object.
    [[nodiscard]] std::optional<std::string_view> bytes() const;

private:
    grpc::Slice raw_;
    bool compressed_ = false;
    std::optional<std::string> inflated_;
};

// Takes the string over, without a copy.
[[nodiscard]] grpc::ByteBuffer buffer_of(std::string bytes);

}  // namespace holdfast::server::rpc

#include "rpc/grpc_bytes.hpp"

#include <memory>
#include <utility>

#include "rpc/gzip.hpp"

namespace holdfast::server::rpc {

namespace {

std::string_view view_of(const grpc::Slice& slice) {
    return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

void free_string(void* text) {
    const std::unique_ptr<std::string> owned(static_cast<std::string*>(text));
}

}  // namespace

ReceivedBytes::ReceivedBytes(const grpc::ByteBuffer& buffer, std::size_t bytes_max) {
    if (!buffer.TrySingleSlice(&raw_).ok() && !buffer.DumpToSingleSlice(&raw_).ok()) {
        raw_ = grpc::Slice();  // An empty buffer has no slice.
    }
    compressed_ = is_gzip(view_of(raw_));
    if (compressed_) {
        inflated_ = gunzip(view_of(raw_), bytes_max);
    }
}

std::optional<std::string_view> ReceivedBytes::bytes() const {
    if (!compressed_) {
        return view_of(raw_);
    }
    return inflated_ ? std::optional<std::string_view>(*inflated_) : std::nullopt;
}

grpc::ByteBuffer buffer_of(std::string bytes) {
    auto owned = std::make_unique<std::string>(std::move(bytes));
    std::string* text = owned.get();
    const grpc::Slice slice(text->data(), text->size(), free_string, owned.release());
    return {&slice, 1};
}

}  // namespace holdfast::server::rpc

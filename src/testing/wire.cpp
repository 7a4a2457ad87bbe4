#include "wire.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::test {

namespace {

constexpr std::size_t longest_message = 256U << 20U;

[[nodiscard]] std::uint32_t big_endian(std::string_view bytes) noexcept {
    std::uint32_t value = 0;
    for (const char byte : bytes.substr(0, 4)) {
        value = (value << 8U) | static_cast<unsigned char>(byte);
    }
    return value;
}

}  // namespace

void MessageStream::append(std::string_view bytes) {
    bytes_.erase(0, at_);
    at_ = 0;
    bytes_.append(bytes);
}

std::optional<Message> MessageStream::next() {
    const std::string_view rest = std::string_view(bytes_).substr(at_);
    const std::size_t type_size = untyped_ ? 0 : 1;
    const std::size_t header_size = type_size + 4;
    if (rest.size() < header_size) {
        return std::nullopt;
    }
    const std::size_t length = big_endian(rest.substr(type_size));
    if (length < (untyped_ ? 8U : 4U) || length > longest_message) {
        throw Error(Code::internal, Outcome::not_applied, "this is not PostgreSQL's protocol");
    }
    const std::size_t size = type_size + length;
    if (rest.size() < size) {
        return std::nullopt;
    }
    at_ += size;

    Message message{.type = untyped_ ? '\0' : rest[0],
                    .body = rest.substr(header_size, size - header_size),
                    .bytes = rest.substr(0, size)};
    if (untyped_) {
        message.code = big_endian(message.body);
        untyped_ = message.code == ssl_request || message.code == gss_request;
    }
    return message;
}

}  // namespace holdfast::test

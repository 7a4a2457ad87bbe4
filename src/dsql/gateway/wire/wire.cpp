#include <holdfast/dsql/wire.hpp>

#include <holdfast/base/error.hpp>

namespace holdfast::dsql {

namespace {

constexpr unsigned byte_bits = 8;
constexpr std::uint32_t byte_mask = 0xff;

[[nodiscard]] std::uint32_t big_endian(std::string_view bytes) noexcept {
    std::uint32_t value = 0;
    for (const char byte : bytes.substr(0, 4)) {
        value = (value << byte_bits) | static_cast<unsigned char>(byte);
    }
    return value;
}

void put_big_endian(std::string& out, std::uint32_t value, unsigned size) {
    for (unsigned i = size; i > 0; --i) {
        out += static_cast<char>((value >> (byte_bits * (i - 1))) & byte_mask);
    }
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
    if (length > longest_) {
        throw Error(Code::limit_exceeded, Outcome::not_applied, "invalid message length");
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

std::string_view BodyReader::bytes(std::size_t size) {
    if (rest_.size() < size) {
        throw Error(Code::internal, Outcome::not_applied, "a message ends too soon");
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
}

std::int16_t BodyReader::int16() {
    return static_cast<std::int16_t>(big_endian(bytes(2)));
}

std::int32_t BodyReader::int32() {
    return static_cast<std::int32_t>(big_endian(bytes(4)));
}

std::string_view BodyReader::text() {
    const std::size_t end = rest_.find('\0');
    const std::string_view taken = bytes(end == std::string_view::npos ? rest_.size() + 1 : end);
    rest_.remove_prefix(1);
    return taken;
}

BodyWriter& BodyWriter::int16(std::int16_t value) {
    put_big_endian(body_, static_cast<std::uint16_t>(value), 2);
    return *this;
}

BodyWriter& BodyWriter::int32(std::int32_t value) {
    put_big_endian(body_, static_cast<std::uint32_t>(value), 4);
    return *this;
}

BodyWriter& BodyWriter::text(std::string_view value) {
    body_ += value;
    body_ += '\0';
    return *this;
}

BodyWriter& BodyWriter::bytes(std::string_view value) {
    body_ += value;
    return *this;
}

void append_message(std::string& out, char type, std::string_view body) {
    out += type;
    put_big_endian(out, static_cast<std::uint32_t>(body.size() + 4), 4);
    out += body;
}

}  // namespace holdfast::dsql

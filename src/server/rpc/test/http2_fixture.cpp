#include "rpc/test/http2_fixture.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::rpc::tests {

namespace {

constexpr timeval read_timeout{.tv_sec = 30, .tv_usec = 0};
constexpr std::uint8_t end_headers = 4;
constexpr std::size_t head_bytes = 9;

std::string big_endian(std::size_t number, int bytes) {
    std::string text;
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
        text += static_cast<char>((number >> static_cast<unsigned>(shift)) & 0xffU);
    }
    return text;
}

std::uint32_t number_in(std::string_view bytes) {
    std::uint32_t number = 0;
    for (const char byte : bytes) {
        number = number << 8U | static_cast<unsigned char>(byte);
    }
    return number;
}

// A header that enters no table; name and value have less than 127 bytes.
std::string header(std::string_view name, std::string_view value) {
    std::string text(1, '\0');
    for (const std::string_view part : {name, value}) {
        text += static_cast<char>(part.size());
        text += part;
    }
    return text;
}

}  // namespace

Http2Client::Http2Client(std::uint16_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &read_timeout, sizeof read_timeout);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    HOLDFAST_ASSERT(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) ==
                    0);
    send_bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    send({.type = settings_frame, .flags = 0, .stream = 0, .payload = ""});
}

void Http2Client::send(const Frame& frame) {
    std::string bytes = big_endian(frame.payload.size(), 3);
    bytes += static_cast<char>(frame.type);
    bytes += static_cast<char>(frame.flags);
    bytes += big_endian(frame.stream, 4);
    send_bytes(bytes + frame.payload);
}

void Http2Client::call(std::uint32_t stream,
                       const std::string& method,
                       const std::string& request) {
    const std::string headers = header(":method", "POST") + header(":scheme", "http") +
                                header(":path", method) + header(":authority", "localhost") +
                                header("te", "trailers") +
                                header("content-type", "application/grpc");
    send({.type = headers_frame, .flags = end_headers, .stream = stream, .payload = headers});
    send({.type = data_frame,
          .flags = end_stream,
          .stream = stream,
          .payload = std::string(1, '\0') + big_endian(request.size(), 4) + request});
}

std::optional<Frame> Http2Client::read() {
    const auto head = read_bytes(head_bytes);
    if (!head) {
        return std::nullopt;
    }
    const std::string_view text = *head;
    auto payload = read_bytes(number_in(text.substr(0, 3)));
    if (!payload) {
        return std::nullopt;
    }
    return Frame{.type = static_cast<std::uint8_t>(text[3]),
                 .flags = static_cast<std::uint8_t>(text[4]),
                 .stream = number_in(text.substr(5, 4)),
                 .payload = std::move(*payload)};
}

std::optional<Frame> Http2Client::read_until(std::uint8_t type) {
    while (auto frame = read()) {
        const bool wants_ack = frame->type == settings_frame || frame->type == ping_frame;
        if (wants_ack && (frame->flags & ack) == 0) {
            const bool ping = frame->type == ping_frame;
            send({.type = frame->type,
                  .flags = ack,
                  .stream = 0,
                  .payload = ping ? frame->payload : std::string()});
        }
        if (frame->type == type) {
            return frame;
        }
    }
    return std::nullopt;
}

void Http2Client::send_bytes(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return;  // The server is gone; the next read tells.
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

std::optional<std::string> Http2Client::read_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    for (std::size_t at = 0; at < count;) {
        const ssize_t got = ::recv(socket_.get(), bytes.data() + at, count - at, 0);
        if (got <= 0) {
            return std::nullopt;
        }
        at += static_cast<std::size_t>(got);
    }
    return bytes;
}

}  // namespace holdfast::server::rpc::tests

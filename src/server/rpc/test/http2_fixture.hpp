// One HTTP/2 connection at the level of frames, for what a gRPC client hides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/base/unique_fd.hpp>

namespace holdfast::server::rpc::tests {

struct Frame {
    std::uint8_t type;
    std::uint8_t flags;
    std::uint32_t stream;
    std::string payload;
};

inline constexpr std::uint8_t data_frame = 0;
inline constexpr std::uint8_t headers_frame = 1;
inline constexpr std::uint8_t settings_frame = 4;
inline constexpr std::uint8_t ping_frame = 6;
inline constexpr std::uint8_t goaway_frame = 7;
inline constexpr std::uint8_t ack = 1;         // Of settings and pings.
inline constexpr std::uint8_t end_stream = 1;  // Of data and headers.

class Http2Client {
public:
    explicit Http2Client(std::uint16_t port);

    void send(const Frame& frame);

    // Begins a gRPC call with one message.
    void call(std::uint32_t stream, const std::string& method, const std::string& request);

    // The next frame; nothing if the server closes the connection or stays silent for too long.
    std::optional<Frame> read();

    // Reads until a frame of that type comes. Acknowledges what is to be acknowledged.
    std::optional<Frame> read_until(std::uint8_t type);

private:
    void send_bytes(std::string_view bytes);
    std::optional<std::string> read_bytes(std::size_t count);

    UniqueFd socket_;
};

}  // namespace holdfast::server::rpc::tests

// PostgreSQL's protocol, as far as telling one message from the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::test {

// Lent by its stream until the stream is touched again.
struct Message {
    char type;               // 0: a packet without a type, as a client's first ones are.
    std::uint32_t code = 0;  // Of a packet without a type: what it asks for.
    std::string_view body;   // Without type and length.
    std::string_view bytes;  // All of it, as it came.
};

inline constexpr std::uint32_t cancel_request = 80877102;
inline constexpr std::uint32_t ssl_request = 80877103;
inline constexpr std::uint32_t gss_request = 80877104;

enum class Opening : std::uint8_t {
    untyped,  // A client's stream, until its startup packet.
    typed,
};

// Takes bytes in any portions and hands back whole messages.
class MessageStream {
public:
    explicit MessageStream(Opening opening) noexcept : untyped_(opening == Opening::untyped) {}

    void append(std::string_view bytes);
    // The next message, or empty if more bytes must come first. Throws Code::internal if the bytes
    // cannot be a message.
    [[nodiscard]] std::optional<Message> next();

private:
    bool untyped_;
    std::string bytes_;
    std::size_t at_ = 0;  // Before it, all has been handed back.
};

}  // namespace holdfast::test

// PostgreSQL's protocol: splitting a stream into messages, and reading and writing their bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::dsql {

// Views into its stream, valid until the stream is used again.
struct Message {
    char type;               // 0: a packet without a type, as a client's first ones are.
    std::uint32_t code = 0;  // Of a packet without a type: the request.
    std::string_view body;   // Without type and length.
    std::string_view bytes;  // The whole message, as received.
};

inline constexpr std::uint32_t protocol_3 = 196608;
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
    static constexpr std::size_t longest_message = std::size_t{256} << 20U;

    explicit MessageStream(Opening opening, std::size_t longest = longest_message) noexcept
        : untyped_(opening == Opening::untyped), longest_(longest) {}

    // The longest message that is accepted from now on.
    void limit(std::size_t longest) noexcept { longest_ = longest; }

    void append(std::string_view bytes);
    // The next message, or empty if more bytes must come first. Throws Code::limit_exceeded for a
    // message longer than the longest, and Code::internal if the bytes cannot be a message.
    [[nodiscard]] std::optional<Message> next();
    // True if no part of an incomplete message is buffered.
    [[nodiscard]] bool empty() const noexcept { return at_ == bytes_.size(); }

private:
    bool untyped_;
    std::size_t longest_;
    std::string bytes_;
    std::size_t at_ = 0;  // Everything before it has been returned.
};

// Reads the body of a message from left to right. A body that ends too soon is Code::internal.
class BodyReader {
public:
    explicit BodyReader(std::string_view body) noexcept : rest_(body) {}

    [[nodiscard]] std::int16_t int16();
    [[nodiscard]] std::int32_t int32();
    [[nodiscard]] std::string_view text();  // Up to its zero byte, which is skipped.
    [[nodiscard]] std::string_view bytes(std::size_t size);
    [[nodiscard]] std::string_view rest() const noexcept { return rest_; }
    [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }

private:
    std::string_view rest_;
};

// Writes the body of a message from left to right.
class BodyWriter {
public:
    BodyWriter& int16(std::int16_t value);
    BodyWriter& int32(std::int32_t value);
    BodyWriter& text(std::string_view value);  // With a zero byte after it.
    BodyWriter& bytes(std::string_view value);
    [[nodiscard]] const std::string& body() const noexcept { return body_; }

private:
    std::string body_;
};

// Appends a whole message to `out`.
void append_message(std::string& out, char type, std::string_view body);

}  // namespace holdfast::dsql

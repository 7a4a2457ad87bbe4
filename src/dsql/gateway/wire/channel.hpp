// Bytes to and from a socket, in the clear or through TLS.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <holdfast/base/clock.hpp>

typedef struct ssl_st SSL;  // NOLINT(modernize-use-using): as OpenSSL declares it.

namespace holdfast::dsql {

// All waiting for the socket happens here. Borrows its socket, which must be non-blocking.
class Channel {
public:
    explicit Channel(int fd) noexcept : fd_(fd) {}

    // From here on everything goes through TLS.
    void secure(SSL* ssl) noexcept { ssl_ = ssl; }
    [[nodiscard]] bool secured() const noexcept { return ssl_ != nullptr; }

    // The end of all waiting from here on: the connection then counts as lost.
    void limit(std::optional<Deadline> deadline) noexcept { deadline_ = deadline; }

    // Waits for bytes; zero at the end of the stream, also of a broken one.
    [[nodiscard]] std::size_t read(std::span<char> into);
    // False if the other side is gone.
    [[nodiscard]] bool write(std::string_view bytes);
    // As many as go without waiting, maybe none; empty if the other side is gone.
    [[nodiscard]] std::optional<std::size_t> write_some(std::string_view bytes);
    // True if read() would not wait; looks again until then.
    [[nodiscard]] bool readable(std::chrono::milliseconds within) const;
    // The same for reading or writing, whichever comes first.
    [[nodiscard]] bool usable(std::chrono::milliseconds within) const;
    // As a server; false if the TLS handshake fails.
    [[nodiscard]] bool accept_tls();

private:
    [[nodiscard]] bool wait(short events, int timeout_ms) const;
    [[nodiscard]] bool wait_for_tls(int result) const;

    int fd_;
    SSL* ssl_ = nullptr;
    std::optional<Deadline> deadline_;
    short blocked_on_ = 0;  // What write_some() would have had to wait for.
};

}  // namespace holdfast::dsql

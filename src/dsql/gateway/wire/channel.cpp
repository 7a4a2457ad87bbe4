#include "gateway/wire/channel.hpp"

#include <algorithm>
#include <cerrno>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

namespace holdfast::dsql {

namespace {

constexpr int for_ever = -1;

}  // namespace

bool Channel::wait(short events, int timeout_ms) const {
    pollfd entry{.fd = fd_, .events = events, .revents = 0};
    int found = 0;
    do {
        int wait_ms = timeout_ms;
        if (deadline_) {
            const auto left = static_cast<int>(
                std::chrono::ceil<std::chrono::milliseconds>(deadline_->remaining()).count());
            wait_ms = timeout_ms == for_ever ? left : std::min(left, timeout_ms);
        }
        found = ::poll(&entry, 1, wait_ms);
    } while (found < 0 && errno == EINTR);
    return found > 0;
}

// What TLS waits for after `result`; false if it will not get it.
bool Channel::wait_for_tls(int result) const {
    switch (SSL_get_error(ssl_, result)) {
        case SSL_ERROR_WANT_READ:
            return wait(POLLIN, for_ever);
        case SSL_ERROR_WANT_WRITE:
            return wait(POLLOUT, for_ever);
        default:
            return false;
    }
}

std::size_t Channel::read(std::span<char> into) {
    while (true) {
        if (ssl_ != nullptr) {
            ERR_clear_error();
            const int size = SSL_read(ssl_, into.data(), static_cast<int>(into.size()));
            if (size > 0) {
                return static_cast<std::size_t>(size);
            }
            if (!wait_for_tls(size)) {
                return 0;
            }
            continue;
        }
        const ssize_t size = ::recv(fd_, into.data(), into.size(), 0);
        if (size > 0) {
            return static_cast<std::size_t>(size);
        }
        const bool later = size < 0 && (errno == EAGAIN || errno == EINTR);
        if (!later || !wait(POLLIN, for_ever)) {
            return 0;
        }
    }
}

std::optional<std::size_t> Channel::write_some(std::string_view bytes) {
    blocked_on_ = POLLOUT;
    if (ssl_ != nullptr) {
        ERR_clear_error();
        const int size = SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
        if (size > 0) {
            return static_cast<std::size_t>(size);
        }
        const int wanted = SSL_get_error(ssl_, size);
        blocked_on_ = wanted == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return wanted == SSL_ERROR_WANT_READ || wanted == SSL_ERROR_WANT_WRITE
                   ? std::optional<std::size_t>(0)
                   : std::nullopt;
    }
    const ssize_t size = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size >= 0) {
        return static_cast<std::size_t>(size);
    }
    return errno == EAGAIN || errno == EINTR ? std::optional<std::size_t>(0) : std::nullopt;
}

bool Channel::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto size = write_some(bytes);
        if (!size || (*size == 0 && !wait(blocked_on_, for_ever))) {
            return false;
        }
        bytes.remove_prefix(*size);
    }
    return true;
}

bool Channel::readable(std::chrono::milliseconds within) const {
    return (ssl_ != nullptr && SSL_pending(ssl_) > 0) ||
           wait(POLLIN, static_cast<int>(within.count()));
}

bool Channel::usable(std::chrono::milliseconds within) const {
    return (ssl_ != nullptr && SSL_pending(ssl_) > 0) ||
           wait(POLLIN | POLLOUT, static_cast<int>(within.count()));
}

bool Channel::accept_tls() {
    while (true) {
        ERR_clear_error();
        const int result = SSL_accept(ssl_);
        if (result == 1) {
            return true;
        }
        if (!wait_for_tls(result)) {
            return false;
        }
    }
}

}  // namespace holdfast::dsql

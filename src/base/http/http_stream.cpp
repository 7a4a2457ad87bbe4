#include "http/http_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <poll.h>

namespace holdfast::http {

bool BoundedStream::is_readable() const {
    return begin_ < end_ || wait_for(POLLIN);
}

bool BoundedStream::is_writable() const {
    return wait_for(POLLOUT);
}

ssize_t BoundedStream::read(char* out, std::size_t size) {
    if (begin_ == end_) {
        const std::size_t wanted = std::min(buffer_.size(), read_bytes_left_);
        if (wanted == 0 || !wait_for(POLLIN)) {
            return -1;
        }
        const ssize_t got = ::recv(connection_, buffer_.data(), wanted, 0);
        if (got <= 0) {
            return got;
        }
        begin_ = 0;
        end_ = static_cast<std::size_t>(got);
        read_bytes_left_ -= end_;
    }
    const std::size_t taken = std::min(size, end_ - begin_);
    std::copy_n(buffer_.data() + begin_, taken, out);
    begin_ += taken;
    return static_cast<ssize_t>(taken);
}

// All of it or nothing: the library does not always look whether a part is left.
ssize_t BoundedStream::write(const char* data, std::size_t size) {
    std::size_t sent = 0;
    while (sent < size) {
        if (!wait_for(POLLOUT)) {
            return -1;
        }
        const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
        const ssize_t now = ::send(connection_, data + sent, size - sent, flags);
        if (now < 0 && errno != EAGAIN && errno != EINTR) {
            return -1;
        }
        sent += static_cast<std::size_t>(std::max<ssize_t>(now, 0));
    }
    return static_cast<ssize_t>(size);
}

// The library wants these for its log and its headers; we show neither.
void BoundedStream::get_remote_ip_and_port(std::string& ip, int& port) const {
    ip.clear();
    port = 0;
}

void BoundedStream::get_local_ip_and_port(std::string& ip, int& port) const {
    ip.clear();
    port = 0;
}

bool BoundedStream::wait_for(short event) const {
    while (!deadline_.passed()) {  // A peer that never pauses must not get past it either.
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_.remaining());
        pollfd wanted{.fd = connection_, .events = event, .revents = 0};
        const int ready = ::poll(&wanted, 1, static_cast<int>(left.count()));
        if (ready > 0) {
            return true;
        }
        if (ready < 0 && errno != EINTR) {
            return false;
        }
    }
    return false;
}

}  // namespace holdfast::http

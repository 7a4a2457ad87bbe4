// A connection that is given up as a whole when its time is over or its request too long.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <httplib.h>

#include <holdfast/base/clock.hpp>

namespace holdfast::http {

// The library's own stream has a time limit per read, which a peer that sends a byte now and then
// never meets, and no limit to the number of headers. Here one deadline and one number of bytes
// count for everything. Does not own the descriptor.
class BoundedStream final : public httplib::Stream {
public:
    BoundedStream(socket_t connection, Deadline deadline, std::size_t read_bytes_max)
        : connection_(connection), deadline_(deadline), read_bytes_left_(read_bytes_max) {}

    [[nodiscard]] bool is_readable() const override;
    [[nodiscard]] bool is_writable() const override;
    ssize_t read(char* out, std::size_t size) override;
    ssize_t write(const char* data, std::size_t size) override;
    void get_remote_ip_and_port(std::string& ip, int& port) const override;
    void get_local_ip_and_port(std::string& ip, int& port) const override;
    [[nodiscard]] socket_t socket() const override { return connection_; }

private:
    [[nodiscard]] bool wait_for(short event) const;

    socket_t connection_;
    Deadline deadline_;
    std::size_t read_bytes_left_;
    std::array<char, 2048> buffer_;  // The library reads headers byte by byte.
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace holdfast::http

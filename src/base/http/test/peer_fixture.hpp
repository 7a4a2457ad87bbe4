// A client of a server under test.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::test {

// A plain socket, so that the test does not depend on what it tests.
class Peer {
public:
    Peer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const int bytes = 65'536;  // So that a large answer does not fit on its way.
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    }
    explicit Peer(int port) : Peer() { connect(port); }
    ~Peer() { ::close(socket_); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    void connect(int port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const auto* generic = reinterpret_cast<const sockaddr*>(&address);
        connected_ = ::connect(socket_, generic, sizeof address) == 0;
    }
    [[nodiscard]] bool connected() const { return connected_; }
    void send(std::string_view text) const { EXPECT_TRUE(try_send(text)); }
    [[nodiscard]] bool try_send(std::string_view text) const {
        const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
        return sent == static_cast<ssize_t>(text.size());
    }
    // Everything until the other side hangs up.
    [[nodiscard]] std::string rest() const {
        std::string all;
        char buffer[4096];
        while (true) {
            pollfd wanted{.fd = socket_, .events = POLLIN, .revents = 0};
            if (::poll(&wanted, 1, 20'000) != 1) {
                return all + "(and then nothing for 20 s)";
            }
            const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
            if (got <= 0) {
                return all;
            }
            all.append(buffer, static_cast<std::size_t>(got));
        }
    }

    // What has come, at least one byte.
    [[nodiscard]] std::string next() const {
        char buffer[64];
        const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
        return {buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
    }
    // Until the other side has hung up with bytes unsent.
    void wait_for_reset() const {
        pollfd wanted{.fd = socket_, .events = POLLRDHUP, .revents = 0};
        EXPECT_EQ(::poll(&wanted, 1, 20'000), 1);
    }

private:
    int socket_;
    bool connected_ = false;
};

using Peers = std::vector<std::unique_ptr<Peer>>;

inline Peers peers_that_send(int port, std::size_t count, std::string_view text) {
    Peers peers;
    for (std::size_t i = 0; i < count; ++i) {
        peers.push_back(std::make_unique<Peer>(port));
        peers.back()->send(text);
    }
    return peers;
}

}  // namespace holdfast::test

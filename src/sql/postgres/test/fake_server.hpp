// A server that refuses every login, and says why.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::sql {

// Refuses its first caller with the first reason, the second one with the second, and so on;
// without TLS.
class RefusingServer {
public:
    struct Refusal {
        std::string state;
        std::string message;
        std::string hint;  // Empty: none.
    };

    explicit RefusingServer(std::vector<Refusal> refusals)
        : refusals_(std::move(refusals)), listening_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        const bool bound = bind(listening_, any, size) == 0 && listen(listening_, 8) == 0 &&
                           getsockname(listening_, any, &size) == 0;
        HOLDFAST_ASSERT(bound);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    ~RefusingServer() {
        shutdown(listening_, SHUT_RDWR);
        thread_.join();
        close(listening_);
    }
    RefusingServer(const RefusingServer&) = delete;
    RefusingServer& operator=(const RefusingServer&) = delete;

    [[nodiscard]] int port() const noexcept { return port_; }

private:
    void serve() {
        constexpr std::uint32_t ssl_request = 80877103;
        constexpr std::uint32_t gss_request = 80877104;
        std::size_t served = 0;
        for (int caller = 0; (caller = accept(listening_, nullptr, nullptr)) >= 0; close(caller)) {
            std::uint32_t code = 0;
            while ((code = read_packet(caller)) == ssl_request || code == gss_request) {
                write_all(caller, "N");
            }
            if (served < refusals_.size()) {
                write_all(caller, error_of(refusals_[served++]));
            }
        }
    }

    // The code of a packet without a type; 0 if the caller has gone.
    static std::uint32_t read_packet(int caller) {
        std::uint32_t head[2]{};
        if (recv(caller, head, sizeof head, MSG_WAITALL) != sizeof head) {
            return 0;
        }
        std::string rest(ntohl(head[0]) - sizeof head, '\0');
        if (!rest.empty()) {
            (void)recv(caller, rest.data(), rest.size(), MSG_WAITALL);
        }
        return ntohl(head[1]);
    }

    static std::string error_of(const Refusal& refusal) {
        std::string fields;
        const auto add = [&fields](char name, const std::string& text) {
            fields += name + text + '\0';
        };
        add('S', "FATAL");
        add('V', "FATAL");
        add('C', refusal.state);
        add('M', refusal.message);
        if (!refusal.hint.empty()) {
            add('H', refusal.hint);
        }
        fields += '\0';
        const std::uint32_t size = htonl(static_cast<std::uint32_t>(fields.size() + 4));
        return 'E' + std::string(reinterpret_cast<const char*>(&size), sizeof size) + fields;
    }

    static void write_all(int caller, const std::string& bytes) {
        (void)send(caller, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }

    const std::vector<Refusal> refusals_;
    int listening_;
    int port_ = 0;
    std::thread thread_;
};

}  // namespace holdfast::sql

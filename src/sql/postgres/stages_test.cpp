// A server that falls silent while a connection is being opened: the opening ends at its deadline
// and says how far it came.
#include <array>
#include <string>
#include <thread>
#include <utility>

#include "postgres/connection.hpp"
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/pool/open_phases.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Takes a caller, says `words` when it is first spoken to, and nothing more.
class SilentServer {
public:
    explicit SilentServer(std::string words, int backlog = 8)
        : words_(std::move(words)), listening_(socket(AF_INET, SOCK_STREAM, 0)) {
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address_;
        auto* const any = reinterpret_cast<sockaddr*>(&address_);
        const bool bound = bind(listening_, any, size) == 0 && listen(listening_, backlog) == 0 &&
                           getsockname(listening_, any, &size) == 0;
        HOLDFAST_ASSERT(bound);
    }
    ~SilentServer() {
        shutdown(listening_, SHUT_RDWR);
        if (thread_.joinable()) {
            thread_.join();
        }
        close(listening_);
        for (const int socket : sockets_) {
            close(socket);
        }
    }
    SilentServer(const SilentServer&) = delete;
    SilentServer& operator=(const SilentServer&) = delete;

    void serve() {
        thread_ = std::thread([this] {
            for (int caller = 0; (caller = accept(listening_, nullptr, nullptr)) >= 0;) {
                std::array<char, 512> heard{};
                for (bool first = true; recv(caller, heard.data(), heard.size(), 0) > 0;) {
                    (void)send(caller, words_.data(), first ? words_.size() : 0, MSG_NOSIGNAL);
                    first = false;
                }
                close(caller);
            }
        });
    }

    // From now on a caller does not even get through. Requires: a backlog of 0, not serving.
    void fill_line() {
        for (int& filler : sockets_) {
            filler = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
            (void)connect(filler, reinterpret_cast<sockaddr*>(&address_), sizeof address_);
        }
    }

    [[nodiscard]] std::string port() const { return std::to_string(ntohs(address_.sin_port)); }

private:
    const std::string words_;
    const int listening_;
    sockaddr_in address_{};
    std::array<int, 4> sockets_{-1, -1, -1, -1};
    std::thread thread_;
};

std::string failure(const SilentServer& server, const char* sslmode) {
    const ConnectParams params{{"host", "127.0.0.1"},
                               {"port", server.port()},
                               {"dbname", "postgres"},
                               {"user", "admin"},
                               {"password", "token"},
                               {"sslmode", sslmode},
                               {"gssencmode", "disable"}};
    try {
        pool::OpenPhases phases;
        (void)postgres::Connection::open(params, Deadline::after(1s), {}, phases, {});
        return "it was let in";
    } catch (const DatabaseError& error) {
        EXPECT_EQ(error.code(), Code::unavailable);
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
        return error.what();
    }
}

TEST(OpeningPhases, ASilenceAtTcpEndsAtTheDeadline) {
    HOLDFAST_CHECK("connections +open.stage_timeout");
    SilentServer server("", 0);
    server.fill_line();
    EXPECT_THAT(failure(server, "require"), HasSubstr("took too long at stage tcp"));
}

TEST(OpeningPhases, ASilenceAtTlsEndsAtTheDeadline) {
    HOLDFAST_CHECK("connections +open.stage_timeout");
    SilentServer server("");
    server.serve();
    EXPECT_THAT(failure(server, "require"), HasSubstr("took too long at stage tls")) << "no answer";
    SilentServer willing("S");
    willing.serve();
    EXPECT_THAT(failure(willing, "require"), HasSubstr("took too long at stage tls"))
        << "in the handshake";
}

TEST(OpeningPhases, ASilenceAtTheLoginEndsAtTheDeadline) {
    HOLDFAST_CHECK("connections +open.stage_timeout");
    SilentServer server("");
    server.serve();
    EXPECT_THAT(failure(server, "disable"), HasSubstr("took too long at stage auth"));
}

// The connect timeout is the least that can be set, a second; what an opening may take is more.
TEST(OpeningPhases, TheConnectTimeoutOfTheUrlIsKept) {
    HOLDFAST_CHECK("connections +open.stage_timeout");
    SilentServer server("");
    server.serve();
    const std::string url = "postgres://admin@127.0.0.1:" + server.port() +
                            "/postgres?sslmode=disable&connect_timeout=1";
    const auto began = std::chrono::steady_clock::now();
    try {
        const Database db(url, {});
        FAIL() << "it was let in";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("took too long at stage auth"));
    }
    const auto took = std::chrono::steady_clock::now() - began;
    EXPECT_GE(took, 1s);
    EXPECT_LT(took, 9s) << "one try is told, and nobody waits for ten seconds";
}

}  // namespace
}  // namespace holdfast::sql

// Trouble on the way to PostgreSQL, at a moment of our choosing.
//
// The proxy stands between libpq and a server and reads what passes, message by message. A fault is
// armed for the n-th message that fits; everything else goes through untouched. So "the connection
// breaks while the answer to COMMIT is on its way" is one line of a test:
//
//   proxy.arm({.from = Side::server, .type = 'C', .containing = "COMMIT"}, Fault::cut);
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <holdfast/base/clock.hpp>
#include <holdfast/testing/postgres.hpp>

namespace holdfast::test {

enum class Side : std::uint8_t { client, server };

// Which message. Its type is the protocol's letter: from a client P parse, B bind, E execute,
// S sync, Q query; from a server C a command's end, E an error, Z ready. Startup packets and cancel
// requests have no letter and never match.
struct Match {
    Side from = Side::client;
    char type = 0;             // 0 is any.
    std::string containing{};  // Anywhere in the message's body.
    int nth = 1;               // Counted from arming, over all connections.
};

enum class Fault : std::uint8_t {
    cut,          // Closes both ways. What was sent before arrives; this message does not.
    cut_after,    // The message arrives, and both ways are closed at once: the rest is lost.
    lose_answer,  // From here on the client hears nothing. When the server has done all it was
                  // asked for, both ways are closed: the work is done and the client cannot know.
    stall,        // Nothing moves on this connection until release().
    drop,         // The message disappears; the connection goes on.
};

// Listens on a unix socket of its own. Safe to share between threads.
class FaultProxy {
public:
    explicit FaultProxy(const PostgresAddress& server);
    ~FaultProxy();
    FaultProxy(const FaultProxy&) = delete;
    FaultProxy& operator=(const FaultProxy&) = delete;

    // What to connect to instead of the server.
    [[nodiscard]] const PostgresAddress& address() const noexcept;

    // Replaces a fault that has not struck. A fault strikes once.
    void arm(Match match, Fault fault);
    void disarm();
    // Waits until the armed fault has struck; false if it has not by the deadline.
    [[nodiscard]] bool wait_struck(Deadline deadline) const;
    // Lets stalled connections go on, with nothing lost.
    void release();

    // Closes every connection there is, at once.
    void cut_all();
    // While true, new connections are closed as soon as they come.
    void refuse(bool refuse);

    // Counted since construction.
    [[nodiscard]] std::int64_t connections() const;
    [[nodiscard]] std::int64_t messages(Side from, char type = 0) const;
    // How often a client asked for answers to what it had sent: sync, flush or query messages.
    [[nodiscard]] std::int64_t round_trips() const;

private:
    class Loop;
    std::unique_ptr<Loop> loop_;
};

}  // namespace holdfast::test

// A machine in the hands of a test: it tells what happens, moves time, and reads the answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <variant>
#include <vector>

#include <holdfast/pool/machine.hpp>

namespace holdfast::pool {

class Script {
public:
    explicit Script(const Config& config, std::uint64_t seed = 1) : machine(config, seed) {}

    // The answers to this event alone.
    const Actions& tell(const Event& event) {
        said.clear();
        machine.step(now, event, said);
        return said;
    }

    // Those of one kind, of the latest event.
    template <class Kind>
    [[nodiscard]] std::vector<Kind> said_of() const {
        std::vector<Kind> found;
        for (const Action& action : said) {
            if (const auto* kind = std::get_if<Kind>(&action)) {
                found.push_back(*kind);
            }
        }
        return found;
    }

    const Actions& borrow(WaiterId waiter, std::chrono::nanoseconds patience) {
        return tell(Borrow{.waiter = waiter, .deadline = now + patience});
    }

    // Lets a borrower come, opens a connection for it, and gives that connection back.
    ConnectionId open_one() {
        const ConnectionId connection = lend_new();
        tell(GiveBack{.connection = connection});
        return connection;
    }

    // Requires: nothing is ready, and there is room.
    ConnectionId lend_new(WaiterId waiter = WaiterId{1000}) {
        borrow(waiter, std::chrono::hours{1});
        const ConnectionId connection = said_of<Open>().at(0).connection;
        tell(Opened{connection});
        return connection;
    }

    // Opens everything the machine asks for until it asks no more.
    void open_all() {
        std::vector<Open> opens = said_of<Open>();
        while (!opens.empty()) {
            std::vector<Open> next;
            for (const Open& open : opens) {
                tell(Opened{open.connection});
                for (const Open& more : said_of<Open>()) {
                    next.push_back(more);
                }
            }
            opens = next;
        }
    }

    void advance(std::chrono::nanoseconds by) { now += by; }

    Steady now{std::chrono::hours{1}};
    Actions said;
    Machine machine;
};

}  // namespace holdfast::pool

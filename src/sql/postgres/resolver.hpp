// Names of servers become addresses, by a deadline.
//
// libpq would call the system's resolver itself, which takes as long as it likes and cannot be
// stopped. Here a thread of its own calls it, and libpq gets addresses. A call that gives up leaves
// that thread behind; it ends when the system has given up. All calls that want the same
// name meanwhile wait for the same answer, so that there is at most one such thread for each name.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/sql/source.hpp>

namespace holdfast::sql::postgres {

// What the system knows of a name.
struct Addresses {
    std::vector<std::string> numeric;  // In the order in which they are to be tried.
    std::string error;                 // Why there are none.
};

// Asks the system. May block for as long as that takes.
[[nodiscard]] Addresses look_up(const std::string& host);

// Safe to share between threads. May be gone before a thread of its own is.
class Resolver {
public:
    explicit Resolver(std::function<Addresses(const std::string&)> look = look_up);
    Resolver(const Resolver&) = delete;
    Resolver& operator=(const Resolver&) = delete;

    // The same parameters, with `hostaddr` for every host that is a name. Throws ConnectionLost,
    // saying that it was at phase resolve, if no name is known by the deadline, or the token fired.
    [[nodiscard]] ConnectParams resolve(ConnectParams params,
                                        Deadline deadline,
                                        const std::stop_token& stop);

private:
    struct Flight;
    struct Flights;

    [[nodiscard]] Addresses addresses_of(const std::string& host,
                                         Deadline deadline,
                                         const std::stop_token& stop);
    [[nodiscard]] std::shared_ptr<Flight> join_flight(const std::string& host);

    const std::function<Addresses(const std::string&)> look_;
    const std::shared_ptr<Flights> flights_;
};

}  // namespace holdfast::sql::postgres

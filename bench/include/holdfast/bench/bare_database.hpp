// The bare database, for suites that lie outside of this floor.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include <holdfast/bench/driver.hpp>
#include <holdfast/bench/suite.hpp>

namespace holdfast::bench {

// The limit, and a place beside it for what is measured. Not safe to share between threads.
class BareDatabase {
public:
    virtual ~BareDatabase() = default;

    // The durable one-row update of the other suites; on a server by so many clients.
    [[nodiscard]] virtual Work limit(int clients,
                                     std::chrono::nanoseconds time,
                                     const std::stop_token& stop) = 0;

    // The URL of an empty database on the same disk. It is gone with this object.
    [[nodiscard]] virtual std::string make_empty() = 0;

    // Its bytes on the disk, with its log where that is a file of its own.
    [[nodiscard]] virtual double disk_bytes() = 0;

    [[nodiscard]] virtual std::map<std::string, std::string> durability() = 0;
};

// Requires: `place` outlives what is returned. Both throw condition_failed if commits are not
// durable. An empty `url` starts a private server.
[[nodiscard]] std::unique_ptr<BareDatabase> bare_file(const WaitTicket& place);
[[nodiscard]] std::unique_ptr<BareDatabase> bare_server(const WaitTicket& place, std::string url);

}  // namespace holdfast::bench

// A PostgreSQL for the time of a benchmark, with the test harness that only a checkout has.
#pragma once

#include <memory>
#include <string>

namespace holdfast::bench {

class PrivateServer {
public:
    virtual ~PrivateServer() = default;
    [[nodiscard]] virtual std::string url() const = 0;
};

// It waits for the disk at every commit. Throws invalid_argument if this binary was built without
// the harness, as an installed one is.
[[nodiscard]] std::unique_ptr<PrivateServer> start_private_server();

}  // namespace holdfast::bench

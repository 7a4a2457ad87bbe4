// Work without a handler here: how long it is held back, and one warning a minute about it.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>

#include <holdfast/flow/provider.hpp>
#include <holdfast/flow/runtime.hpp>

namespace holdfast::flow {

// Safe to share between threads.
class Unserved {
public:
    explicit Unserved(const RuntimeOptions& options);

    // How long to hold it back after it was given back `tries` times before: twice as long each
    // time, up to the maximum.
    [[nodiscard]] milliseconds pause(int tries) const;
    // No handler here for this workflow or activity. Names that come within a minute of a warning
    // are in the next one. `now` is the database's clock.
    void missing(std::string what, Moment now);

private:
    const milliseconds first_;
    const milliseconds longest_;
    Logger& logger_;
    std::mutex mutex_;
    std::set<std::string> names_;
    std::optional<Moment> told_;
};

}  // namespace holdfast::flow

// Counts calls for Prometheus, under the names that dashboards of Temporal servers use.
//
// A transport measures each call: by its method, and by its namespace, which is read from the bytes
// of the request without decoding them. Labels are bounded: a namespace that does not exist is
// "_unknown_", and beyond the first few dozen it is "_other_".
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rpc/call.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/metrics.hpp>

namespace holdfast::server::rpc {

// Safe to share between threads.
class CallMeter {
public:
    static constexpr std::size_t namespaces_max = 24;  // With a label of their own.

    // Requires: `metrics` outlives this object; `exists` tells whether there is a namespace of that
    // name, from any thread, and does not block.
    CallMeter(Metrics& metrics, std::function<bool(const std::string&)> exists);
    ~CallMeter();
    CallMeter(const CallMeter&) = delete;
    CallMeter& operator=(const CallMeter&) = delete;

    struct Method;  // call_meter.cpp

    // One call. Empty for a method that is not counted, such as health.
    class Measured {
    public:
        Measured() = default;

        // Call it once.
        void end(const Answer& answer) const;

    private:
        friend class CallMeter;
        Method* method_ = nullptr;
        std::string namespace_{};
        Steady begun_{};
    };

    [[nodiscard]] Measured begin(const std::string& method, std::string_view request);

    // A request that came by HTTP.
    void count_http() const { http_.add(); }

private:
    [[nodiscard]] std::string label_of(std::string name);

    struct Labels;

    Metrics& metrics_;
    const std::function<bool(const std::string&)> exists_;
    const std::unique_ptr<Labels> labels_;
    std::unordered_map<std::string, std::unique_ptr<Method>> methods_;
    Counter http_;
};

}  // namespace holdfast::server::rpc

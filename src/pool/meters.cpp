#include "meters.hpp"

#include <string_view>

#include <fmt/core.h>

namespace holdfast::pool {

Meters::Meters(Metrics* metrics, const std::string& name) {
    if (metrics == nullptr) {
        return;
    }
    const auto gauge = [&](std::string_view state, std::string_view help) {
        return metrics->gauge(fmt::format("holdfast_sql_pool_{}", state), help, {{"db", name}});
    };
    opening = gauge("opening", "Connections being opened");
    ready = gauge("ready", "Connections open and idle");
    in_use = gauge("in_use", "Connections lent to a borrower");
    retiring = gauge("retiring", "Connections being closed");
    target = gauge("target", "The most connections open for use");
    opened =
        metrics->counter("holdfast_sql_pool_opened_total", "Connections opened", {{"db", name}});
    for (std::size_t i = 0; i < failure_classes; ++i) {
        const auto failure = to_string(static_cast<FailureClass>(i));
        open_failures[i] = metrics->counter("holdfast_sql_pool_open_failures_total",
                                            "Openings that failed",
                                            {{"db", name}, {"class", failure}});
    }
    for (std::size_t i = 0; i < reasons; ++i) {
        const auto reason = to_string(static_cast<Reason>(i));
        closed[i] = metrics->counter("holdfast_sql_pool_closed_total",
                                     "Connections closed",
                                     {{"db", name}, {"reason", reason}});
    }
    wait_seconds = metrics->histogram("holdfast_sql_pool_wait_seconds",
                                      "How long borrowers stood in line, of those who had to",
                                      latency_bounds(),
                                      {{"db", name}});
}

void Meters::publish(const Counts& counts) {
    const auto update = [](const Gauge& gauge, int value, int& published) {
        if (value == published) {
            return;
        }
        published = value;
        gauge.set(value);
    };
    update(opening, counts.opening, published_.opening);
    update(ready, counts.ready, published_.ready);
    update(in_use, counts.in_use, published_.in_use);
    update(retiring, counts.retiring, published_.retiring);
    update(target, counts.target, published_.target);
}

}  // namespace holdfast::pool

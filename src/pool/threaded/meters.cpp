#include "threaded/meters.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::pool {
namespace {

using Label = std::pair<std::string_view, std::string_view>;

// From a second to the hour after which some servers end a connection.
const std::vector<double>& age_bounds() {
    static const std::vector<double> bounds{
        1, 10, 60, 300, 600, 900, 1200, 1800, 2400, 2700, 3000, 3300, 3480, 3600};
    return bounds;
}

// How far a failed opening came. The names are those that dashboards of DSQL use.
constexpr std::array<std::string_view, 4> failure_reason_names{
    "lease_acquire", "rate_limit", "token_provider", "connection_open"};

std::size_t failure_reason(std::optional<OpenPhase> at) noexcept {
    const std::size_t phase = at ? static_cast<std::size_t>(*at) : failure_reason_names.size();
    return std::min(phase, failure_reason_names.size() - 1);
}
static_assert(static_cast<int>(OpenPhase::slot) == 0 && static_cast<int>(OpenPhase::permit) == 1 &&
              static_cast<int>(OpenPhase::token) == 2);

// Makes series with the labels of one pool; what has no name counts nothing.
class Maker {
public:
    Maker(Metrics& metrics, const MeterNames& names, const std::string& pool)
        : metrics_(metrics), pool_(names.pool_label, pool), service_("service", names.service) {}

    [[nodiscard]] Gauge gauge(std::string_view name, std::string_view help) const {
        if (name.empty()) {
            return {};
        }
        return service_.second.empty() ? metrics_.gauge(name, help, {pool_})
                                       : metrics_.gauge(name, help, {pool_, service_});
    }
    [[nodiscard]] Counter counter(std::string_view name, std::string_view help) const {
        return service_.second.empty() ? metrics_.counter(name, help, {pool_})
                                       : metrics_.counter(name, help, {pool_, service_});
    }
    [[nodiscard]] Counter counter(std::string_view name, std::string_view help, Label why) const {
        return service_.second.empty() ? metrics_.counter(name, help, {pool_, why})
                                       : metrics_.counter(name, help, {pool_, service_, why});
    }
    [[nodiscard]] Counter counter(std::string_view name,
                                  std::string_view help,
                                  Label why,
                                  Label where) const {
        return service_.second.empty()
                   ? metrics_.counter(name, help, {pool_, why, where})
                   : metrics_.counter(name, help, {pool_, service_, why, where});
    }
    [[nodiscard]] Histogram histogram(std::string_view name,
                                      std::string_view help,
                                      const std::vector<double>& bounds) const {
        return service_.second.empty() ? metrics_.histogram(name, help, bounds, {pool_})
                                       : metrics_.histogram(name, help, bounds, {pool_, service_});
    }
    [[nodiscard]] Histogram histogram(std::string_view name,
                                      std::string_view help,
                                      const std::vector<double>& bounds,
                                      Label part) const {
        return service_.second.empty()
                   ? metrics_.histogram(name, help, bounds, {pool_, part})
                   : metrics_.histogram(name, help, bounds, {pool_, service_, part});
    }

private:
    Metrics& metrics_;
    const Label pool_;
    const Label service_;
};

}  // namespace

Meters::Meters(Metrics* metrics, const MeterNames& names, const std::string& pool) {
    if (metrics == nullptr) {
        return;
    }
    const Maker make(*metrics, names, pool);
    opening = make.gauge(names.opening, "Connections being opened");
    ready = make.gauge(names.ready, "Connections open and idle");
    in_use = make.gauge(names.in_use, "Connections lent to a borrower");
    retiring = make.gauge(names.retiring, "Connections being closed");
    waiting = make.gauge(names.waiting, "Borrowers waiting for a connection");
    target = make.gauge(names.target, "Upper limit of connections open for use");
    wanted = make.gauge(names.wanted, "Connections kept open without demand");
    open = make.gauge(names.open, "Connections open, idle or lent");
    oldest_age_seconds = make.gauge(names.oldest_age_seconds, "Age of the oldest connection");
    warm_up_seconds = make.gauge(names.warm_up_seconds, "Duration of the warm-up");
    lent = make.counter(names.lent, "Connections lent");
    empty = make.counter(names.empty, "Borrowers that found no connection free");
    opened = make.counter(names.opened, "Connections opened");
    warm_up_failures =
        make.counter(names.warm_up_failures, "Openings that failed during the warm-up");
    for (std::size_t i = 0; i < failure_classes; ++i) {
        const Label failure{"class", to_string(static_cast<FailureClass>(i))};
        const char* const help = "Openings that failed";
        for (std::size_t why = 0; why < failure_reasons; ++why) {
            open_failures_[why][i] =
                names.open_failure_reasons
                    ? make.counter(
                          names.open_failures, help, failure, {"reason", failure_reason_names[why]})
                    : make.counter(names.open_failures, help, failure);
        }
    }
    for (std::size_t i = 0; i < reasons; ++i) {
        closed[i] = make.counter(
            names.closed, "Connections closed", {"reason", to_string(static_cast<Reason>(i))});
    }
    wait_seconds = make.histogram(
        names.wait_seconds, "Wait of borrowers that found no connection free", latency_bounds());
    const auto open_part = [&](std::string_view phase) {
        return make.histogram(
            names.open_seconds,
            "Duration of successful openings (all), and of each stage of any opening",
            latency_bounds(),
            {"stage", phase});
    };
    open_seconds = open_part("all");
    for (std::size_t i = 0; i < open_phase_count; ++i) {
        phase_seconds[i] = open_part(to_string(static_cast<OpenPhase>(i)));
    }
    age_seconds =
        make.histogram(names.age_seconds, "Age of a connection when it was closed", age_bounds());
}

void Meters::publish(const Counts& counts, std::uint64_t lent_so_far) {
    opening.set(counts.opening);
    ready.set(counts.ready);
    in_use.set(counts.in_use);
    open.set(counts.ready + counts.in_use);
    retiring.set(counts.retiring);
    waiting.set(counts.waiting);
    target.set(counts.target);
    lent.add(static_cast<double>(lent_so_far - lent_published_));
    lent_published_ = lent_so_far;
}

void Meters::open_failed(FailureClass failure, std::optional<OpenPhase> at) {
    open_failures_[failure_reason(at)][static_cast<std::size_t>(failure)].add();
}

}  // namespace holdfast::pool

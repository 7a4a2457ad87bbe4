// What befalls a fleet, and how it passes.
#include <algorithm>
#include <cmath>

#include "fleet.hpp"
#include <fmt/core.h>

namespace holdfast::sim {
namespace {

constexpr Time step_of_scale = std::chrono::seconds{1};

}  // namespace

template <class Do>
void Fleet::each(const Fault& fault, Do act) {
    for (Process& process : processes_) {
        if (process.service.name.starts_with(fault.services)) {
            act(process);
        }
    }
}

void Fleet::strike(std::uint32_t number) {
    const Fault& fault = scenario_.faults[number];
    if (progress_[number] == 0) {
        result_.seen.struck.push_back({.at = now(), .kind = fault.kind});
    }
    bool passes = true;  // By itself, after a while.
    switch (fault.kind) {
        case FaultKind::cold_start:
            return;
        case FaultKind::rolling_restart:
            return restart_next(number);
        case FaultKind::mass_drop:
            return each(fault, [&](Process& process) { drop(process, fault); });
        case FaultKind::crash:
            return each(fault, [&](Process& process) {
                stop(process, false);
                at(now() + fault.down, Step::start, process);
            });
        case FaultKind::outage:
            unreachable_ = true;
            break;
        case FaultKind::rejects:
            rejects_ = fault.fraction;
            break;
        case FaultKind::slow:
            slowness_ = fault.value;
            break;
        case FaultKind::credentials:
            unauthorized_ = true;
            break;
        case FaultKind::partition:
            each(fault, [&](Process& process) {
                process.cut_off = true;
                drop(process, {.fraction = 1});
            });
            break;
        case FaultKind::limit: {
            const auto count = static_cast<double>(processes_.size());
            shared_.set(fault.value, scenario_.limiter.burst);
            permits_.per_second = std::max(1, static_cast<int>(fault.value));
            for (Process& process : processes_) {
                process.bucket.set(fault.value / count,
                                   std::max(1.0, scenario_.limiter.burst / count));
            }
            passes = false;
            break;
        }
        case FaultKind::scale:
            return scale_next(number);
        case FaultKind::load:
            load_ = fault.value;
            passes = false;
            break;
        case FaultKind::table_outage:
            table_away_ = true;
            break;
        case FaultKind::clock_jump:
            each(fault, [&](Process& process) {
                process.skew +=
                    std::chrono::round<Time>(std::chrono::duration<double>(fault.value));
            });
            passes = false;
            break;
    }
    if (passes) {
        agenda_.after(fault.lasts, {.step = Step::fault_end, .process = number});
    }
}

void Fleet::relent(std::uint32_t number) {
    const Fault& fault = scenario_.faults[number];
    result_.seen.struck.push_back({.at = now(), .kind = fault.kind, .over = true});
    unreachable_ = unreachable_ && fault.kind != FaultKind::outage;
    unauthorized_ = unauthorized_ && fault.kind != FaultKind::credentials;
    table_away_ = table_away_ && fault.kind != FaultKind::table_outage;
    rejects_ = fault.kind == FaultKind::rejects ? 0 : rejects_;
    slowness_ = fault.kind == FaultKind::slow ? 1 : slowness_;
    if (fault.kind == FaultKind::partition) {
        each(fault, [](Process& process) { process.cut_off = false; });
    }
}

// In steps of a second, if it takes its time.
void Fleet::scale_next(std::uint32_t number) {
    const Fault& fault = scenario_.faults[number];
    const auto steps = std::max<std::int64_t>(1, fault.over / step_of_scale);
    const auto done = static_cast<std::int64_t>(++progress_[number]);
    each(fault, [&](Process& process) {
        process.scaled_from = done == 1 ? process.target : process.scaled_from;
        const double part = static_cast<double>(done) / static_cast<double>(steps);
        const double grown = (fault.value - process.scaled_from) * part;
        process.target = std::max(1, process.scaled_from + static_cast<int>(std::lround(grown)));
        if (process.machine) {
            want_slots(process);
            tell(process, pool::Resize{process.target});
        }
    });
    if (done < steps) {
        agenda_.after(fault.over / steps, {.step = Step::fault, .process = number});
    }
}

// As the older models count: cut to a whole number, but at least one.
void Fleet::drop(Process& process, const Fault& fault) {
    std::vector<Connection*> hit;
    for (Connection& connection : process.connections) {
        if (connection.open && !connection.dead && (fault.include_lent || !connection.lent)) {
            hit.push_back(&connection);
        }
    }
    std::ranges::sort(hit, {}, [](const Connection* c) { return std::pair(c->opened, c->birth); });
    if (fault.which == Which::newest) {
        std::ranges::reverse(hit);
    } else if (fault.which == Which::random) {
        for (std::size_t i = hit.size(); i > 1; --i) {
            std::swap(hit[i - 1], hit[chance_.below(i)]);
        }
    }
    const auto wanted = static_cast<std::size_t>(static_cast<double>(hit.size()) * fault.fraction);
    hit.resize(std::min(hit.size(), std::max<std::size_t>(1, wanted)));
    for (Connection* connection : hit) {
        lose(process, *connection);
    }
    trace(process, fmt::format("loses {} connections", hit.size()));
}

void Fleet::restart_next(std::uint32_t number) {
    const Fault& fault = scenario_.faults[number];
    std::size_t& done = progress_[number];
    for (int i = 0; i < fault.batch && done < processes_.size(); ++i) {
        Process& process = processes_[done++];
        stop(process, true);
        at(now() + fault.down, Step::start, process);
    }
    if (done < processes_.size()) {
        agenda_.after(fault.every, {.step = Step::fault, .process = number});
    }
}

}  // namespace holdfast::sim

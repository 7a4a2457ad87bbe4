// Faults of a fleet, and how they end.
#include <algorithm>
#include <cmath>

#include "fleet/fleet.hpp"
#include "fleet/latency.hpp"
#include <fmt/core.h>

namespace holdfast::sim {
namespace {

constexpr Time step_of_scale = std::chrono::seconds{1};

}  // namespace

template <class Do>
void Fleet::each_pool(const Fault& fault, Do act) {
    for (Pool& pool : pools_) {
        if (pool.service.name.starts_with(fault.services)) {
            act(pool);
        }
    }
}

// A fault of a process concerns all of its pools.
template <class Do>
void Fleet::each_host(const Fault& fault, Do act) {
    for (Host& host : hosts_) {
        const bool hit = std::ranges::any_of(host.pools, [&](const Pool* pool) {
            return pool->service.name.starts_with(fault.services);
        });
        if (hit) {
            act(host);
        }
    }
}

template <class T>
void Fleet::shuffle(std::vector<T>& all) {
    for (std::size_t i = all.size(); i > 1; --i) {
        std::swap(all[i - 1], all[chance_.below(i)]);
    }
}

void Fleet::strike(std::uint32_t number) {
    const Fault& fault = scenario_.faults[number];
    if (progress_[number] == 0) {
        result_.seen.struck.push_back({.at = now(), .kind = fault.kind});
    }
    switch (fault.kind) {
        case FaultKind::cold_start:
            return;
        case FaultKind::rolling_restart:
            return restart_next(number);
        case FaultKind::mass_drop:
            return each_pool(fault, [&](Pool& pool) { drop(pool, fault); });
        case FaultKind::crash:
            return each_host(fault, [&](Host& host) {
                stop(host, false);
                start_again(host, fault);
            });
        case FaultKind::limit:
            shared_.set(fault.value, scenario_.limiter.burst);
            permits_.per_second = std::max(1, static_cast<int>(fault.value));
            return share_out(fault.value);
        case FaultKind::scale:
            return scale_next(number);
        case FaultKind::load:
            load_ = fault.value;
            return;
        case FaultKind::clock_jump:
            return each_host(fault, [&](Host& host) {
                host.skew += std::chrono::round<Time>(std::chrono::duration<double>(fault.value));
            });
        case FaultKind::partition:
            each_host(fault, [&](Host& host) {
                for (Pool* pool : host.pools) {
                    drop(*pool, {.fraction = 1});
                }
            });
            break;
        case FaultKind::outage:
        case FaultKind::rejects:
        case FaultKind::slow:
        case FaultKind::credentials:
        case FaultKind::table_outage:
            break;
    }
    in_force_.push_back(number);
    enforce();
    events_.after(fault.lasts, {.step = Step::fault_end, .number = number});
}

void Fleet::relent(std::uint32_t number) {
    result_.seen.struck.push_back(
        {.at = now(), .kind = scenario_.faults[number].kind, .over = true});
    std::erase(in_force_, number);
    enforce();
}

// Faults overlap: the end of one is not the end of another of its kind. Where they differ in
// degree, the latest one counts.
void Fleet::enforce() {
    unreachable_ = false;
    unauthorized_ = false;
    table_away_ = false;
    rejects_ = 0;
    slowness_ = 1;
    for (Host& host : hosts_) {
        host.cut_off = false;
    }
    for (const std::uint32_t number : in_force_) {
        const Fault& fault = scenario_.faults[number];
        unreachable_ = unreachable_ || fault.kind == FaultKind::outage;
        unauthorized_ = unauthorized_ || fault.kind == FaultKind::credentials;
        table_away_ = table_away_ || fault.kind == FaultKind::table_outage;
        rejects_ = fault.kind == FaultKind::rejects ? fault.fraction : rejects_;
        slowness_ = fault.kind == FaultKind::slow ? fault.value : slowness_;
        if (fault.kind == FaultKind::partition) {
            each_host(fault, [](Host& host) { host.cut_off = true; });
        }
    }
}

// In steps of a second, if it takes its time.
void Fleet::scale_next(std::uint32_t number) {
    const Fault& fault = scenario_.faults[number];
    const auto steps = std::max<std::int64_t>(1, fault.over / step_of_scale);
    const auto done = static_cast<std::int64_t>(++progress_[number]);
    each_pool(fault, [&](Pool& pool) {
        pool.scaled_from = done == 1 ? pool.target : pool.scaled_from;
        const double part = static_cast<double>(done) / static_cast<double>(steps);
        const double grown = (fault.value - pool.scaled_from) * part;
        pool.target = std::max(1, pool.scaled_from + static_cast<int>(std::lround(grown)));
        if (pool.machine) {
            want_slots(pool.host);
            tell(pool, pool::Resize{wanted(pool)});
        }
    });
    if (done < steps) {
        events_.after(fault.over / steps, {.step = Step::fault, .number = number});
    }
}

// As the older models count: cut to a whole number, but at least one.
void Fleet::drop(Pool& pool, const Fault& fault) {
    std::vector<Connection*> hit;
    for (Connection& connection : pool.connections) {
        if (connection.open && !connection.dead && (fault.include_lent || !connection.lent)) {
            hit.push_back(&connection);
        }
    }
    std::ranges::sort(hit, {}, [](const Connection* c) { return std::pair(c->opened, c->birth); });
    if (fault.which == Which::newest) {
        std::ranges::reverse(hit);
    } else if (fault.which == Which::random) {
        shuffle(hit);
    }
    const auto wanted = static_cast<std::size_t>(static_cast<double>(hit.size()) * fault.fraction);
    hit.resize(std::min(hit.size(), std::max<std::size_t>(1, wanted)));
    for (Connection* connection : hit) {
        lose(pool, *connection);
    }
    trace(pool, [&] { return fmt::format("loses {} connections", hit.size()); });
}

void Fleet::restart_next(std::uint32_t number) {
    const Fault& fault = scenario_.faults[number];
    std::size_t& done = progress_[number];
    std::vector<Host*>& turns = turns_[number];
    if (done == 0) {
        each_host(fault, [&](Host& host) { turns.push_back(&host); });
        if (fault.order == Order::random) {
            shuffle(turns);
        }
    }
    for (int i = 0; i < fault.batch && done < turns.size(); ++i) {
        Host& host = *turns[done++];
        stop(host, true);
        start_again(host, fault);
    }
    if (done < turns.size()) {
        events_.after(fault.every, {.step = Step::fault, .number = number});
    }
}

void Fleet::start_again(Host& host, const Fault& fault) {
    const Time late = fault.stagger > Time{0} ? draw_part(fault.stagger, chance_) : Time{0};
    // A process that was hit before it ever started does not start sooner for it.
    const Time first = host.pools.front()->service.start_delay;
    at(std::max(first, now() + fault.down + late), Step::start, host);
}

}  // namespace holdfast::sim

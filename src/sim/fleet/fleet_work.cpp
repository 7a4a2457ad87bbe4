// Work that comes to a pool, and borrows.
#include <algorithm>

#include "fleet/fleet.hpp"
#include "fleet/latency.hpp"

namespace holdfast::sim {
namespace {

// Work begins when a process can be expected to be full: as the older models have it.
constexpr Time fill_guess = std::chrono::milliseconds{20};
constexpr Time work_margin = std::chrono::seconds{1};

// Time between arrivals passes only while a burst is on.
Time next_in_burst(const Workload& work, Time from, Time gap) {
    const Time period = work.on + work.off;
    while (true) {
        const Time turn = from % period;
        const Time left = std::max(Time{0}, work.on - turn);
        if (gap < left) {
            return from + gap;
        }
        gap -= left;
        from += period - turn;
    }
}

}  // namespace

void Fleet::schedule_work(Pool& pool) {
    const Workload& work = pool.service.workload;
    if (!work.enabled) {
        return;
    }
    if (work.arrivals == Arrivals::trace) {
        while (pool.trace_at < work.trace.size() && work.trace[pool.trace_at].at < now()) {
            ++pool.trace_at;  // What came while it was down is lost.
        }
        if (const auto next = next_arrival(pool)) {
            at(*next, Step::arrive, pool);
        }
        return;
    }
    // A phase of its own, so that nothing depends on which services tick together.
    const Time phase = draw_part(work.every, pool.arrivals);
    at(now() + pool.target * fill_guess + work_margin + phase, Step::arrive, pool);
}

std::optional<Time> Fleet::next_arrival(Pool& pool) const {
    const Workload& work = pool.service.workload;
    const double rate = work.rate * load_;
    switch (work.arrivals) {
        case Arrivals::closed:
            return now() + work.every;
        case Arrivals::poisson:
            return now() + draw_gap(rate, pool.arrivals);
        case Arrivals::steady:
            return now() + Time{static_cast<Time::rep>(1e9 / rate)};
        case Arrivals::bursts:
            return next_in_burst(work, now(), draw_gap(rate, pool.arrivals));
        case Arrivals::trace:
            return pool.trace_at < work.trace.size()
                       ? std::optional(std::max(now(), work.trace[pool.trace_at].at))
                       : std::nullopt;
    }
    return std::nullopt;
}

// How many come now.
int Fleet::arriving(Pool& pool) const {
    const Workload& work = pool.service.workload;
    if (work.arrivals == Arrivals::trace) {
        return work.trace[pool.trace_at++].count;
    }
    if (work.arrivals != Arrivals::closed) {
        return 1;
    }
    const double free = work.in_use_max * load_ - pool.busy;
    return static_cast<int>(std::clamp(free, 0.0, work.burst * load_));
}

void Fleet::arrive(Pool& pool) {
    const int count = arriving(pool);
    const Workload& work = pool.service.workload;
    for (int i = 0; i < count; ++i) {
        ++pool.busy;
        ask(pool, {.asked = now(), .deadline = now() + work.wait_max, .tries_left = work.retries});
    }
    if (const auto next = next_arrival(pool)) {
        at(*next, Step::arrive, pool);
    }
}

void Fleet::ask(Pool& pool, Request request) {
    request.deadline = now() + pool.service.workload.wait_max;
    const std::uint64_t id = ++requests_made_;
    pool.requests.emplace(id, request);
    tell(pool, pool::Borrow{.waiter = pool::WaiterId{id}, .deadline = steady(request.deadline)});
}

// Its wait was at least this long, and counts as that of those who were served.
void Fleet::note_unserved(Pool& pool, const Request& request) {
    ++pool.counters.empty;
    result_.seen.empties.push_back({request.asked, pool.number, now() - request.asked});
    result_.seen.waits.push_back(now() - request.asked);
}

void Fleet::give_back(Pool& pool, pool::ConnectionId id) {
    Connection& connection = pool.connections[id.slot];
    connection.lent = false;
    if (!connection.dead && now() - connection.opened >= scenario_.cluster.age_max) {
        lose(pool, connection);  // Its time was over; the server only let this be finished.
    }
    --pool.busy;
    ++pool.counters.work_completed;
    trace(pool, [] { return "gets one back"; });
    const bool dead = connection.dead;
    tell(pool, pool::GiveBack{id, dead ? std::optional(pool::Reason::dead) : std::nullopt});
    if (!pool.service.count_lent) {
        tell(pool, pool::Resize{wanted(pool)});
    }
}

}  // namespace holdfast::sim

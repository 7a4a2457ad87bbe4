// Work that comes to a process, and borrows.
#include <algorithm>

#include "fleet.hpp"
#include "latency.hpp"

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

void Fleet::schedule_work(Process& process) {
    const Workload& work = process.service.workload;
    if (!work.enabled) {
        return;
    }
    if (work.arrivals == Arrivals::trace) {
        while (process.trace_at < work.trace.size() && work.trace[process.trace_at].at < now()) {
            ++process.trace_at;  // What came while it was down is lost.
        }
        if (const auto next = next_arrival(process)) {
            at(*next, Step::arrive, process);
        }
        return;
    }
    // A phase of its own, so that nothing depends on who happens to tick together.
    const Time phase = draw_part(work.every, process.arrivals);
    at(now() + process.target * fill_guess + work_margin + phase, Step::arrive, process);
}

std::optional<Time> Fleet::next_arrival(Process& process) const {
    const Workload& work = process.service.workload;
    const double rate = work.rate * load_;
    switch (work.arrivals) {
        case Arrivals::closed:
            return now() + work.every;
        case Arrivals::poisson:
            return now() + draw_gap(rate, process.arrivals);
        case Arrivals::steady:
            return now() + Time{static_cast<Time::rep>(1e9 / rate)};
        case Arrivals::bursts:
            return next_in_burst(work, now(), draw_gap(rate, process.arrivals));
        case Arrivals::trace:
            return process.trace_at < work.trace.size()
                       ? std::optional(std::max(now(), work.trace[process.trace_at].at))
                       : std::nullopt;
    }
    return std::nullopt;
}

// How many come now.
int Fleet::arriving(Process& process) const {
    const Workload& work = process.service.workload;
    if (work.arrivals == Arrivals::trace) {
        return work.trace[process.trace_at++].count;
    }
    if (work.arrivals != Arrivals::closed) {
        return 1;
    }
    const double free = work.in_use_max * load_ - process.busy;
    return static_cast<int>(std::clamp(free, 0.0, work.burst * load_));
}

void Fleet::arrive(Process& process) {
    const int count = arriving(process);
    const Workload& work = process.service.workload;
    for (int i = 0; i < count; ++i) {
        ++process.busy;
        ask(process,
            {.asked = now(), .deadline = now() + work.wait_max, .tries_left = work.retries});
    }
    if (const auto next = next_arrival(process)) {
        at(*next, Step::arrive, process);
    }
}

void Fleet::ask(Process& process, Request request) {
    request.deadline = now() + process.service.workload.wait_max;
    const std::uint64_t id = ++requests_made_;
    process.requests.emplace(id, request);
    tell(process, pool::Borrow{.waiter = pool::WaiterId{id}, .deadline = steady(request.deadline)});
}

void Fleet::give_back(Process& process, pool::ConnectionId id) {
    Connection& connection = process.connections[id.slot];
    connection.lent = false;
    --process.busy;
    ++process.counters.work_completed;
    const bool dead = connection.dead;
    tell(process, pool::GiveBack{id, dead ? std::optional(pool::Reason::dead) : std::nullopt});
}

}  // namespace holdfast::sim

// The older model with a reservoir, a refiller and an expiry scanner. Opening takes no time and
// never fails. The order in which events are scheduled is part of the model.
#include <deque>

#include "compat/reservoir.hpp"
#include "compat/second_limiter.hpp"
#include "event_queue.hpp"
#include "fleet/latency.hpp"
#include "model.hpp"

#include <holdfast/base/random.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Time scan_every = seconds{1};
constexpr Time roll_from = minutes{5};
constexpr Time fill_guess = milliseconds{20};  // Work begins after so much per connection,
constexpr Time work_margin = seconds{1};       // and this.

enum class Step : std::uint8_t { refill, scan, spawn, give_back, fault, sample };

struct What {
    Step step{};
    std::uint32_t service = 0;
    Reservoir::Connection connection{};
};

struct Process {
    Process(const Service& which, std::uint64_t seed)
        : service(which),
          reservoir(which.target, which.guard, counters),
          lives(seed_of(seed, which.name, "lives")),
          holds(seed_of(seed, which.name, "holds")) {}

    const Service& service;
    Counters counters;
    Reservoir reservoir;
    Random lives;
    Random holds;
};

class ReservoirModel {
public:
    ReservoirModel(const Scenario& scenario, std::uint64_t seed)
        : scenario_(scenario), events_(scenario.duration), limiter_(scenario.limit_per_second) {
        for (const Service& service : scenario.services) {
            processes_.emplace_back(service, seed);
            const auto number = static_cast<std::uint32_t>(processes_.size() - 1);
            events_.at(service.start_delay, {.step = Step::refill, .service = number});
            events_.at(service.start_delay, {.step = Step::scan, .service = number});
            if (service.workload.enabled) {
                events_.at(service.start_delay + service.target * fill_guess + work_margin,
                           {.step = Step::spawn, .service = number});
            }
        }
        schedule_fault();
        events_.at(scenario.sample_every, {.step = Step::sample});
    }

    Result run(const Watch& watch) {
        run_events(events_, watch, [this](const What& what) { handle(what); });
        result_.events = events_.executed();
        result_.last = row(scenario_.duration);
        return std::move(result_);
    }

private:
    void schedule_fault() {
        for (const Fault& fault : scenario_.faults) {
            if (fault.kind == FaultKind::mass_drop) {
                events_.at(fault.at, {.step = Step::fault});
            } else if (fault.kind == FaultKind::rolling_restart) {
                events_.at(roll_from, {.step = Step::fault});
            }
        }
    }

    void handle(const What& what) {
        switch (what.step) {
            case Step::refill:
                return refill(what.service);
            case Step::scan:
                return scan(what.service);
            case Step::spawn:
                return spawn(what.service);
            case Step::give_back:
                return give_back(what);
            case Step::fault:
                return strike();
            case Step::sample:
                return sample();
        }
    }

    void refill(std::uint32_t number) {
        Process& process = processes_[number];
        if (process.reservoir.idle() >= process.service.target) {
            return events_.after(scenario_.idle_check, {.step = Step::refill, .service = number});
        }
        if (const auto wait = limiter_.refusal(events_.now())) {
            ++process.counters.denies;
            ++process.counters.open_failures;
            return events_.after(*wait, {.step = Step::refill, .service = number});
        }
        const Time jitter = process.service.life_jitter > Time{0}
                                ? draw_part(process.service.life_jitter, process.lives)
                                : Time{0};
        process.reservoir.add(
            {.id = ++births_, .expires = events_.now() + process.service.life + jitter});
        count_open(result_.opens, events_.now());
        // At the same instant, behind the other services that want one: services alternate.
        events_.after(Time{0}, {.step = Step::refill, .service = number});
    }

    void scan(std::uint32_t number) {
        Process& process = processes_[number];
        process.counters.scan_evictions += process.reservoir.scan(events_.now());
        events_.after(scan_every, {.step = Step::scan, .service = number});
    }

    void spawn(std::uint32_t number) {
        Process& process = processes_[number];
        const Workload& work = process.service.workload;
        const int items = std::min(work.in_use_max - process.reservoir.lent(), work.burst);
        for (int i = 0; i < items; ++i) {
            const auto connection = process.reservoir.check_out(events_.now());
            if (!connection) {
                continue;  // The work is lost; the empty event is all that remains of it.
            }
            ++process.counters.work_started;
            const Time hold =
                work.hold +
                (work.hold_jitter > Time{0} ? draw_part(work.hold_jitter, process.holds) : Time{0});
            events_.after(hold,
                          {.step = Step::give_back, .service = number, .connection = *connection});
        }
        events_.after(work.every, {.step = Step::spawn, .service = number});
    }

    void give_back(const What& what) {
        Process& process = processes_[what.service];
        process.reservoir.give_back(events_.now(), what.connection);
        ++process.counters.work_completed;
    }

    void strike() {
        for (const Fault& fault : scenario_.faults) {
            if (fault.kind == FaultKind::mass_drop) {
                for (Process& process : processes_) {
                    process.reservoir.drop_fraction(fault.fraction);
                }
            } else if (fault.kind == FaultKind::rolling_restart) {
                processes_[restarts_++ % processes_.size()].reservoir.drop_all();
                events_.after(fault.every, {.step = Step::fault});
            }
        }
    }

    void sample() {
        for (const Sample& one : row(events_.now())) {
            result_.samples.push_back(one);
        }
        events_.after(scenario_.sample_every, {.step = Step::sample});
    }

    [[nodiscard]] std::vector<Sample> row(Time now) const {
        std::vector<Sample> row;
        row.reserve(processes_.size());
        for (const Process& process : processes_) {
            row.push_back({.at = now,
                           .service = static_cast<std::uint32_t>(row.size()),
                           .ready = process.reservoir.idle(),
                           .lent = process.reservoir.lent(),
                           .target = process.service.target,
                           .counters = process.counters});
        }
        return row;
    }

    const Scenario& scenario_;
    EventQueue<What> events_;
    SecondLimiter limiter_;
    std::deque<Process> processes_;  // Their counters are referred to.
    std::uint64_t births_ = 0;
    std::size_t restarts_ = 0;
    Result result_;
};

}  // namespace

Result simulate_reservoir(const Scenario& scenario, std::uint64_t seed, const Watch& watch) {
    return ReservoirModel(scenario, seed).run(watch);
}

}  // namespace holdfast::sim

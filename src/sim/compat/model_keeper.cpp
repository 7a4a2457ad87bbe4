// The older model with a staggered warm-up and a keeper. Connections have one life, without jitter;
// where that model took any one, this takes the oldest.
#include <algorithm>
#include <deque>

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

constexpr Time keeper_margin = seconds{1};
constexpr Time work_margin = seconds{2};
constexpr Time full_wait = milliseconds{50};
constexpr Time roll_from = minutes{5};

enum class Step : std::uint8_t { warm_up, open, keep, spawn, borrow, give_back, fault, sample };

struct What {
    Step step{};
    std::uint32_t service = 0;
    std::uint64_t connection = 0;
};

struct Connection {
    std::uint64_t id = 0;
    Time expires{};
    bool lent = false;
};

struct Process {
    Process(const Service& which, std::uint64_t seed)
        : service(which), holds(seed_of(seed, which.name, "holds")) {}

    // Closes whatever is too old, lent or not. All live equally long, so those stand in front.
    void close_old(Time now) {
        while (!connections.empty() && now >= connections.front().expires) {
            close_oldest();
            ++counters.closed_age;
        }
    }
    void close_oldest() {
        lent -= connections.front().lent ? 1 : 0;
        connections.pop_front();
    }
    [[nodiscard]] int open() const { return static_cast<int>(connections.size()); }

    const Service& service;
    Counters counters;
    std::deque<Connection> connections;  // The oldest in front.
    int lent = 0;
    Random holds;
    Time work_from{};
};

class KeeperModel {
public:
    KeeperModel(const Scenario& scenario, std::uint64_t seed)
        : scenario_(scenario), events_(scenario.duration), limiter_(scenario.limit_per_second) {
        for (const Service& service : scenario.services) {
            Process& process = processes_.emplace_back(service, seed);
            const auto number = static_cast<std::uint32_t>(processes_.size() - 1);
            events_.at(service.start_delay, {.step = Step::warm_up, .service = number});
            events_.at(service.start_delay + service.stagger + keeper_margin,
                       {.step = Step::keep, .service = number});
            if (service.workload.enabled) {
                process.work_from = service.start_delay + service.stagger + work_margin;
                events_.at(process.work_from, {.step = Step::spawn, .service = number});
            }
        }
        for (const Fault& fault : scenario.faults) {
            if (fault.kind != FaultKind::cold_start) {
                const bool drop = fault.kind == FaultKind::mass_drop;
                events_.at(drop ? fault.at : roll_from, {.step = Step::fault});
            }
        }
        events_.at(scenario.sample_every, {.step = Step::sample});
    }

    Result run(const Watch& watch) {
        run_events(events_, watch, [this](const What& what) { handle(what); });
        result_.events = events_.executed();
        result_.last = row(scenario_.duration);
        return std::move(result_);
    }

private:
    void handle(const What& what) {
        switch (what.step) {
            case Step::warm_up:
                return warm_up(what.service);
            case Step::open:
                return open_one(what.service);
            case Step::keep:
                return keep(what.service);
            case Step::spawn:
                return spawn(what.service);
            case Step::borrow:
                return borrow(what.service);
            case Step::give_back:
                return give_back(what);
            case Step::fault:
                return strike();
            case Step::sample:
                return sample();
        }
    }

    void warm_up(std::uint32_t number) {
        const Service& service = processes_[number].service;
        for (int i = 0; i < service.target; ++i) {
            const Time offset =
                service.target > 1 ? i * service.stagger / (service.target - 1) : Time{0};
            events_.after(offset, {.step = Step::open, .service = number});
        }
    }

    void open_one(std::uint32_t number) {
        Process& process = processes_[number];
        if (const auto wait = permit(process)) {
            return events_.after(*wait, {.step = Step::open, .service = number});
        }
        if (process.open() >= process.service.open_max) {
            return;  // The keeper was quicker, and the permit is wasted: so that model has it.
        }
        ++process.counters.warmup_opens;
        connect(process);
    }

    void keep(std::uint32_t number) {
        Process& process = processes_[number];
        process.close_old(events_.now());
        const int deficit = process.service.target - process.open();
        for (int i = 0; i < std::min(deficit, process.service.opens_per_tick); ++i) {
            if (const auto wait = permit(process)) {
                return events_.after(*wait, {.step = Step::keep, .service = number});
            }
            ++process.counters.keeper_opens;
            connect(process);
        }
        events_.after(process.service.keeper_tick, {.step = Step::keep, .service = number});
    }

    void spawn(std::uint32_t number) {
        const Process& process = processes_[number];
        const Workload& work = process.service.workload;
        const int items = std::min(work.in_use_max - process.lent, work.burst);
        for (int i = 0; i < items; ++i) {
            borrow(number);
        }
        events_.after(work.every, {.step = Step::spawn, .service = number});
    }

    void borrow(std::uint32_t number) {
        Process& process = processes_[number];
        auto idle = std::ranges::find(process.connections, false, &Connection::lent);
        if (idle == process.connections.end()) {
            const bool full = process.open() >= process.service.open_max;
            const auto wait = full ? std::optional(full_wait) : permit(process);
            if (wait) {
                ++process.counters.waits;
                // By the age of the whole workload, not of this item: so that model has it.
                if (events_.now() - process.work_from < process.service.workload.wait_max) {
                    events_.after(*wait, {.step = Step::borrow, .service = number});
                }
                return;
            }
            ++process.counters.workload_opens;
            connect(process);
            idle = process.connections.end() - 1;
        }
        idle->lent = true;
        ++process.lent;
        ++process.counters.work_started;
        const Workload& work = process.service.workload;
        const Time jitter = draw_part(std::max(Time{0}, work.hold_jitter), process.holds);
        events_.after(work.hold + jitter,
                      {.step = Step::give_back, .service = number, .connection = idle->id});
    }

    void give_back(const What& what) {
        Process& process = processes_[what.service];
        const auto found = std::ranges::find(process.connections, what.connection, &Connection::id);
        if (found != process.connections.end()) {
            found->lent = false;
            --process.lent;
        }
        ++process.counters.work_completed;
    }

    void strike() {
        for (const Fault& fault : scenario_.faults) {
            if (fault.kind == FaultKind::mass_drop) {
                for (Process& process : processes_) {
                    const int some = static_cast<int>(process.open() * fault.fraction);
                    drop(process, std::min(std::max(1, some), process.open()));
                }
            } else if (fault.kind == FaultKind::rolling_restart) {
                Process& process = processes_[restarts_++ % processes_.size()];
                drop(process, process.open());
                events_.after(fault.every, {.step = Step::fault});
            }
        }
    }

    static void drop(Process& process, int oldest) {
        for (int i = 0; i < oldest; ++i) {
            process.close_oldest();
        }
        process.counters.closed_server += oldest;
    }

    void sample() {
        for (Process& process : processes_) {
            process.close_old(events_.now());
        }
        for (Sample& one : row(events_.now())) {
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
                           .ready = process.open() - process.lent,
                           .lent = process.lent,
                           .target = process.service.target,
                           .counters = process.counters});
        }
        return row;
    }

    // Nothing if granted, else how long to wait.
    [[nodiscard]] std::optional<Time> permit(Process& process) {
        const auto wait = limiter_.refusal(events_.now());
        process.counters.denies += wait ? 1 : 0;
        return wait;
    }

    void connect(Process& process) {
        ++process.counters.opens;
        process.connections.push_back(
            {.id = ++births_, .expires = events_.now() + process.service.life});
        count_open(result_.opens, events_.now());
    }

    const Scenario& scenario_;
    EventQueue<What> events_;
    SecondLimiter limiter_;
    std::deque<Process> processes_;
    std::uint64_t births_ = 0;
    std::size_t restarts_ = 0;
    Result result_;
};

}  // namespace

Result simulate_keeper(const Scenario& scenario, std::uint64_t seed, const Watch& watch) {
    return KeeperModel(scenario, seed).run(watch);
}

}  // namespace holdfast::sim

// One process: its machine, and the way from its wish to a connection.
#include <algorithm>
#include <cmath>

#include "fleet.hpp"
#include "latency.hpp"
#include <fmt/core.h>

namespace holdfast::sim {
namespace {

constexpr std::uint64_t probe_request = ~std::uint64_t{0};  // A look, not a borrower.

}  // namespace

pool::Config Fleet::config_of(const Service& service) const {
    pool::Config config;
    config.target = service.target;
    config.min_ready = pool::target_max;  // Always full, also when its target grows.
    config.lead = service.lead;
    config.overshoot = service.overshoot;
    config.life = service.life;
    config.life_jitter = service.life_jitter;
    config.guard = service.guard;
    config.limits.opening_max = service.in_flight;
    if (!service.spread) {
        config.limits.spread_from = 1;
        config.limits.spread_margin = Time{0};
    }
    if (scenario_.slots.kind == SlotsKind::share) {
        const double part = static_cast<double>(service.target) / scenario_.target();
        config.slots = std::max(1, static_cast<int>(scenario_.cluster.ceiling * part));
    }
    return config;
}

void Fleet::start(Process& process) {
    const std::uint64_t seed =
        seed_of(seed_, process.service.name, fmt::format("machine {}", process.life));
    pool::Config config = config_of(process.service);
    config.target = process.target;
    process.machine = std::make_unique<pool::Machine>(config, seed);
    trace(process, "starts");
    join(process);
    tell(process, pool::Tick{});
    schedule_work(process);
    if (process.service.probe_every > Time{0}) {
        at(now() + process.service.probe_every, Step::probe, process);
    }
}

// The server sees its sockets close; the shared table is told only if it ends in order.
void Fleet::stop(Process& process, bool in_order) {
    trace(process, "ends");
    if (in_order && !table_away_) {
        table_.leave({.process = process.number, .life = process.life});
    }
    for (Connection& connection : process.connections) {
        if (connection.open && !connection.dead) {
            lose(process, connection);
        }
    }
    process.connections.clear();
    process.requests.clear();
    process.busy = 0;
    process.permits_waiting = 0;
    process.machine.reset();
    process.wake = Time::max();
    process.part.emplace();
    note_degraded(process);
    ++process.life;
}

void Fleet::tell(Process& process, const pool::Event& event) {
    process.machine->step(steady(now()), event, actions_);
    carry_out(process);
}

// Answers can lead to more actions, which are carried out in the same go.
void Fleet::carry_out(Process& process) {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
        const pool::Action action = actions_[i];
        std::visit([&](const auto& what) { on(process, what); }, action);
    }
    actions_.clear();
    note_owned(process);
    plan_wake(process);
}

void Fleet::on(Process& process, const pool::Open& open) {
    if (open.connection.slot >= process.connections.size()) {
        process.connections.resize(open.connection.slot + 1);
    }
    process.connections[open.connection.slot] = {.birth = open.connection.birth, .asked = now()};
    ++process.permits_waiting;
    seek_slot(process, open.connection);
}

void Fleet::on(Process& process, const pool::Close& close) {
    Connection& connection = process.connections[close.connection.slot];
    Counters& counters = process.counters;
    const bool surplus =
        close.reason == pool::Reason::surplus || close.reason == pool::Reason::idle;
    counters.discard_expired += close.reason == pool::Reason::expired ? 1 : 0;
    counters.discard_full += surplus ? 1 : 0;
    result_.seen.wasted += surplus && !connection.used ? 1 : 0;
    result_.seen.ages.push_back(now() - connection.opened);
    if (!connection.dead) {
        count_open(result_.seen.closures, now());
        door_.leave();
        --process.owned;
    }
    connection = {.birth = connection.birth};
    give_slot_back(process);
    trace(process, fmt::format("closes one: {}", pool::to_string(close.reason)));
    process.machine->step(steady(now()), pool::Closed{close.connection}, actions_);
}

void Fleet::on(Process& process, const pool::Lend& lend) {
    Connection& connection = process.connections[lend.connection.slot];
    const auto id = static_cast<std::uint64_t>(lend.waiter);
    if (id == probe_request) {
        probed_.push_back(lend.connection);
        return;
    }
    const auto found = process.requests.find(id);
    if (connection.dead) {  // As the shell does: back with it, and first in line for another.
        process.machine->step(
            steady(now()), pool::GiveBack{lend.connection, pool::Reason::dead}, actions_);
        process.machine->step(
            steady(now()),
            pool::Borrow{
                .waiter = lend.waiter, .deadline = steady(found->second.deadline), .first = true},
            actions_);
        return;
    }
    result_.seen.idles.push_back(lend.idle);
    const Time wait = now() - found->second.asked;
    result_.seen.waits.push_back(wait);
    if (wait > Time{0}) {
        ++process.counters.empty;
        result_.seen.empties.push_back(found->second.asked);
    }
    process.requests.erase(found);
    connection.lent = true;
    connection.used = true;
    ++process.counters.checkouts;
    ++process.counters.work_started;
    const Workload& work = process.service.workload;
    const Time hold = work.held ? draw(*work.held, process.holds)
                                : work.hold + draw_part(work.hold_jitter, process.holds);
    at(now() + hold, Step::give_back, process, lend.connection);
}

void Fleet::on(Process& process, const pool::Refuse& refuse) {
    const auto id = static_cast<std::uint64_t>(refuse.waiter);
    if (id == probe_request) {
        return;
    }
    const auto found = process.requests.find(id);
    ++process.counters.waits;
    if (found->second.tries_left > 0) {
        --found->second.tries_left;
        agenda_.after(
            process.service.workload.retry_after,
            {.step = Step::again, .process = process.number, .life = process.life, .request = id});
        return;
    }
    ++process.counters.empty;
    ++result_.seen.refused;
    result_.seen.empties.push_back(found->second.asked);
    process.requests.erase(found);
    --process.busy;
    trace(process, "refuses work");
}

void Fleet::plan_wake(Process& process) {
    if (process.machine->next_wake() == Steady::max()) {
        return;
    }
    const Time wanted = process.machine->next_wake() - steady(Time{0});
    const Time when = std::max(now(), wanted);
    if (when < process.wake) {
        process.wake = when;
        at(when, Step::wake, process);
    }
}

void Fleet::connect(Process& process, pool::ConnectionId connection) {
    --process.permits_waiting;
    ++process.connecting;
    const Outcome outcome = knock(process);
    if (outcome == Outcome::opened || outcome == Outcome::broken) {
        count_open(result_.opens, now());
        result_.seen.opened.push_back(now());
        ++process.admitted;
    }
    const Time latency = draw(scenario_.cluster.connect, process.network);
    const Time slowed{static_cast<Time::rep>(static_cast<double>(latency.count()) * slowness_)};
    agenda_.after(slowed,
                  {.step = Step::answer,
                   .outcome = outcome,
                   .process = process.number,
                   .life = process.life,
                   .connection = connection});
}

Fleet::Outcome Fleet::knock(Process& process) {
    if (unreachable_ || process.cut_off || chance_.unit() < scenario_.cluster.failures) {
        return Outcome::unreachable;
    }
    if (unauthorized_ || happens(scenario_.cluster.login_failures)) {
        return Outcome::unauthorized;
    }
    const Door::Answer answer =
        chance_.unit() < rejects_ ? Door::Answer::too_fast : door_.knock(now());
    switch (answer) {
        case Door::Answer::in:
            return happens(scenario_.cluster.session_failures) ? Outcome::broken : Outcome::opened;
        case Door::Answer::too_fast:
            ++result_.seen.rejected_rate;
            return Outcome::too_fast;
        case Door::Answer::full:
            ++result_.seen.rejected_full;
            return Outcome::full;
    }
    return Outcome::unreachable;
}

// Draws nothing for what never happens, so that other figures stay as they are.
bool Fleet::happens(double share) {
    return share > 0 && chance_.unit() < share;
}

void Fleet::answer(Process& process, const What& what) {
    --process.connecting;
    const bool let_in = what.outcome == Outcome::opened || what.outcome == Outcome::broken;
    process.admitted -= let_in ? 1 : 0;
    if (let_in && (what.outcome == Outcome::broken || what.life != process.life)) {
        door_.leave();  // Nobody is there to use it.
    }
    if (what.life != process.life) {
        return;
    }
    if (what.outcome == Outcome::opened) {
        Connection& connection = process.connections[what.connection.slot];
        connection.open = true;
        connection.opened = now();
        ++process.owned;
        ++process.counters.opens;
        const Time longest = process.service.life + process.service.life_jitter;
        if (longest + std::chrono::minutes{1} >= scenario_.cluster.age_max) {
            at(now() + scenario_.cluster.age_max, Step::age_out, process, what.connection);
        }
        return tell(process, pool::Opened{what.connection});
    }
    give_slot_back(process);
    fail_opening(process, what.connection, what.outcome);
}

void Fleet::fail_opening(Process& process, pool::ConnectionId connection, Outcome why) {
    ++process.counters.open_failures;
    pool::FailureClass failure = pool::FailureClass::transport;
    if (why == Outcome::unauthorized) {
        failure = pool::FailureClass::auth;
    } else if (why == Outcome::full) {
        failure = pool::FailureClass::full;
    } else if (why == Outcome::too_fast) {
        failure = pool::FailureClass::rate_limited;
    } else if (why == Outcome::broken) {
        failure = pool::FailureClass::other;
    }
    trace(process, fmt::format("cannot open one: {}", pool::to_string(failure)));
    tell(process, pool::OpenFailed{connection, failure});
}

// The server closed it. The machine learns of it when it is lent or looked at.
void Fleet::lose(Process& process, Connection& connection) {
    connection.dead = true;
    --process.owned;
    ++process.counters.dropped;
    door_.leave();
    count_open(result_.seen.closures, now());
    note_owned(process);
}

// Borrows everything that is ready, and gives the dead back as such.
void Fleet::probe(Process& process) {
    const int ready = process.machine->counts().ready;
    for (int i = 0; i < ready; ++i) {
        tell(process, pool::Borrow{.waiter = pool::WaiterId{probe_request}, .deadline = {}});
    }
    std::vector<pool::ConnectionId> looked;
    looked.swap(probed_);
    for (const pool::ConnectionId id : looked) {
        const bool dead = process.connections[id.slot].dead;
        tell(process, pool::GiveBack{id, dead ? std::optional(pool::Reason::dead) : std::nullopt});
    }
    at(now() + process.service.probe_every, Step::probe, process);
}

// How long it takes to be full the first time, and how long it is not, later.
void Fleet::note_owned(Process& process) {
    const bool full = process.owned >= process.target;
    if (full && !process.filled) {
        process.filled = now() - process.service.start_delay;
    }
    if (!process.filled) {
        return;
    }
    if (!full && !process.short_since) {
        process.short_since = now();
    } else if (full && process.short_since) {
        result_.seen.short_spells.push_back(now() - *process.short_since);
        process.short_since.reset();
    }
}

}  // namespace holdfast::sim

// One pool: its machine, and how its openings become connections.
#include <algorithm>
#include <cmath>

#include "fleet/fleet.hpp"
#include "fleet/latency.hpp"
#include <fmt/core.h>

#include <holdfast/base/units.hpp>

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
        config.slots = std::max(1, share_of_ceiling(service));
    }
    return config;
}

// By its target. What the shares of those before it leave of a whole connection goes to it, so
// that all together have the whole ceiling.
int Fleet::share_of_ceiling(const Service& service) const {
    std::int64_t before = 0;
    for (const Service& one : scenario_.services) {
        if (&one == &service) {
            break;
        }
        before += one.target;
    }
    const std::int64_t all = scenario_.target();
    const std::int64_t ceiling = scenario_.cluster.ceiling;
    return static_cast<int>(ceiling * (before + service.target) / all - ceiling * before / all);
}

void Fleet::start(Host& host) {
    for (Pool* pool : host.pools) {
        const std::uint64_t seed =
            seed_of(seed_, pool->service.name, fmt::format("machine {}", host.life));
        pool::Config config = config_of(pool->service);
        config.target = pool->target;
        pool->machine = std::make_unique<pool::Machine>(config, seed);
        pool->started = now();
    }
    trace(host, "starts");
    join(host);
    for (Pool* pool : host.pools) {
        tell(*pool, pool::Tick{});
        schedule_work(*pool);
    }
}

// The server sees its sockets close; the shared table is told only if it ends in order.
void Fleet::stop(Host& host, bool in_order) {
    trace(host, "ends");
    if (in_order && !table_away_) {
        table_.leave({.process = host.number, .life = host.life});
    }
    for (Pool* pool : host.pools) {
        for (Connection& connection : pool->connections) {
            if (connection.open && !connection.dead) {
                lose(*pool, connection);
            }
        }
        for (const auto& waiting : pool->requests) {  // In any order: what is noted is sorted.
            ++result_.seen.refused;
            note_unserved(*pool, waiting.second);
        }
        pool->connections.clear();
        pool->requests.clear();
        pool->busy = 0;
        pool->permits_waiting = 0;
        pool->unnoticed = 0;
        pool->machine.reset();
        pool->wake = Time::max();
        pool->look = Time::max();
    }
    host.part = new_part();
    note_degraded(host);
    ++host.life;
}

void Fleet::tell(Pool& pool, const pool::Event& event) {
    pool.machine->step(steady(now()), event, actions_);
    carry_out(pool);
}

// Answers can lead to more actions, which are carried out in the same go.
void Fleet::carry_out(Pool& pool) {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
        const pool::Action action = actions_[i];
        std::visit([&](const auto& what) { on(pool, what); }, action);
    }
    actions_.clear();
    note_owned(pool);
    plan_wake(pool);
}

void Fleet::on(Pool& pool, const pool::Open& open) {
    if (open.connection.slot >= pool.connections.size()) {
        pool.connections.resize(open.connection.slot + 1);
    }
    pool.connections[open.connection.slot] = {.birth = open.connection.birth, .asked = now()};
    ++pool.permits_waiting;
    trace(pool, [&] { return fmt::format("wants one: has {} of {}", pool.owned, pool.target); });
    const Time period = pool.service.poll_every;
    const bool at_work = pool.permits_waiting + pool.connecting > pool.unnoticed + 1;
    if (period == Time{0} || at_work) {
        return seek_slot(pool, open.connection);
    }
    ++pool.unnoticed;
    const Time next = pool.started + ((now() - pool.started + period - Time{1}) / period) * period;
    at(next, Step::begin, pool, open.connection);
}

// As the older models have it, what is lent makes room for another.
int Fleet::wanted(const Pool& pool) const {
    const int lent = pool.service.count_lent ? 0 : pool.machine->counts().in_use;
    return std::min(pool.target + lent, pool::target_max);
}

void Fleet::on(Pool& pool, const pool::Close& close) {
    Connection& connection = pool.connections[close.connection.slot];
    Counters& counters = pool.counters;
    const bool surplus =
        close.reason == pool::Reason::surplus || close.reason == pool::Reason::idle;
    counters.discard_expired += close.reason == pool::Reason::expired ? 1 : 0;
    counters.discard_full += surplus ? 1 : 0;
    result_.seen.shed += close.reason == pool::Reason::slot_lost ? 1 : 0;
    if (surplus && !connection.used) {
        result_.seen.wasted.push_back({now(), pool.number});
    }
    result_.seen.ages.push_back(now() - connection.opened);
    if (!connection.dead) {
        const Gone why = surplus                                 ? Gone::surplus
                         : close.reason == pool::Reason::expired ? Gone::aged
                                                                 : Gone::given_up;
        result_.seen.closed.push_back({now(), pool.number, why});
        door_.leave();
        --pool.owned;
    }
    connection = {.birth = connection.birth};
    give_slot_back(pool.host);
    trace(pool, [&] { return fmt::format("closes one: {}", pool::to_string(close.reason)); });
    pool.machine->step(steady(now()), pool::Closed{close.connection}, actions_);
}

void Fleet::on(Pool& pool, const pool::Lend& lend) {
    Connection& connection = pool.connections[lend.connection.slot];
    const auto id = static_cast<std::uint64_t>(lend.waiter);
    if (id == probe_request) {
        probed_.push_back(lend.connection);
        return;
    }
    const auto found = pool.requests.find(id);
    if (connection.dead) {  // As the shell does: back with it, and first in line for another.
        pool.machine->step(
            steady(now()), pool::GiveBack{lend.connection, pool::Reason::dead}, actions_);
        pool.machine->step(
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
        ++pool.counters.empty;
        result_.seen.empties.push_back({found->second.asked, pool.number, wait});
    }
    pool.requests.erase(found);
    trace(pool, [&] { return fmt::format("lends one after {}", format_duration(wait)); });
    connection.lent = true;
    connection.used = true;
    ++pool.counters.checkouts;
    ++pool.counters.work_started;
    const Workload& work = pool.service.workload;
    const Time hold = work.held ? draw(*work.held, pool.holds)
                                : work.hold + draw_part(work.hold_jitter, pool.holds);
    at(now() + hold, Step::give_back, pool, lend.connection);
    if (!pool.service.count_lent) {
        pool.machine->step(steady(now()), pool::Resize{wanted(pool)}, actions_);
    }
}

void Fleet::on(Pool& pool, const pool::Refuse& refuse) {
    const auto id = static_cast<std::uint64_t>(refuse.waiter);
    if (id == probe_request) {
        return;
    }
    const auto found = pool.requests.find(id);
    ++pool.counters.waits;
    if (found->second.tries_left > 0) {
        --found->second.tries_left;
        events_.after(
            pool.service.workload.retry_after,
            {.step = Step::again, .number = pool.number, .life = pool.host.life, .request = id});
        return;
    }
    ++result_.seen.refused;
    note_unserved(pool, found->second);
    pool.requests.erase(found);
    --pool.busy;
    trace(pool, [] { return "refuses work"; });
}

void Fleet::plan_wake(Pool& pool) {
    if (pool.machine->next_wake() == Steady::max()) {
        return;
    }
    const Time wanted = pool.machine->next_wake() - steady(Time{0});
    const Time when = std::max(now(), wanted);
    if (when < pool.wake) {
        pool.wake = when;
        at(when, Step::wake, pool);
    }
}

void Fleet::connect(Pool& pool, pool::ConnectionId connection) {
    --pool.permits_waiting;
    ++pool.connecting;
    const Outcome outcome = knock(pool);
    if (outcome == Outcome::opened || outcome == Outcome::broken) {
        count_open(result_.opens, now());
        result_.seen.opened.push_back({now(), pool.number});
        if (static_cast<std::size_t>(door_.most()) > result_.seen.peaks.size()) {
            result_.seen.peaks.push_back({now(), pool.number});
        }
        ++pool.admitted;
    }
    const Time latency = draw(scenario_.cluster.connect, pool.network);
    events_.after(scaled(latency, slowness_),
                  {.step = Step::answer,
                   .outcome = outcome,
                   .number = pool.number,
                   .life = pool.host.life,
                   .connection = connection});
}

Fleet::Outcome Fleet::knock(Pool& pool) {
    if (unreachable_ || pool.host.cut_off || chance_.unit() < scenario_.cluster.failures) {
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
            result_.seen.rejects.push_back({now(), pool.number});
            return Outcome::too_fast;
        case Door::Answer::full:
            ++result_.seen.rejected_full;
            result_.seen.rejects.push_back({now(), pool.number});
            return Outcome::full;
    }
    return Outcome::unreachable;
}

// Draws nothing for what never happens, so that other figures stay as they are.
bool Fleet::happens(double share) {
    return share > 0 && chance_.unit() < share;
}

void Fleet::answer(Pool& pool, const What& what) {
    --pool.connecting;
    const bool let_in = what.outcome == Outcome::opened || what.outcome == Outcome::broken;
    pool.admitted -= let_in ? 1 : 0;
    if (let_in && (what.outcome == Outcome::broken || what.life != pool.host.life)) {
        door_.leave();  // Its process is gone.
    }
    if (what.life != pool.host.life) {
        return;
    }
    if (what.outcome == Outcome::opened) {
        Connection& connection = pool.connections[what.connection.slot];
        connection.open = true;
        connection.opened = now();
        ++pool.owned;
        ++pool.counters.opens;
        trace(pool, [&] {
            return fmt::format("opens one, {} after it was wanted: has {} of {}",
                               format_duration(now() - connection.asked),
                               pool.owned,
                               pool.target);
        });
        const Time longest = pool.service.life + pool.service.life_jitter;
        if (longest + std::chrono::minutes{1} >= scenario_.cluster.age_max) {
            at(now() + scenario_.cluster.age_max, Step::age_out, pool, what.connection);
        }
        return tell(pool, pool::Opened{what.connection});
    }
    give_slot_back(pool.host);
    if (what.outcome == Outcome::too_fast) {
        pool.host.part->pace.refused(steady(now()));
    }
    fail_opening(pool, what.connection, what.outcome);
}

void Fleet::fail_opening(Pool& pool, pool::ConnectionId connection, Outcome why) {
    ++pool.counters.open_failures;
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
    trace(pool, [&] { return fmt::format("cannot open one: {}", pool::to_string(failure)); });
    tell(pool, pool::OpenFailed{connection, failure});
}

// The server closed it. The machine learns of it when it is lent or looked at.
void Fleet::lose(Pool& pool, Connection& connection) {
    connection.dead = true;
    --pool.owned;
    ++pool.counters.dropped;
    door_.leave();
    result_.seen.closed.push_back({now(), pool.number, Gone::lost});
    note_owned(pool);
    await_look(pool);
}

// The pool looks at its idle connections every `probe_every` from its start on. A look that finds
// nothing dead changes nothing, so only those after a loss are simulated.
void Fleet::await_look(Pool& pool) {
    const Time every = pool.service.probe_every;
    if (every > Time{0} && pool.look == Time::max()) {
        pool.look = pool.started + ((now() - pool.started) / every + 1) * every;
        at(pool.look, Step::probe, pool);
    }
}

// A lent connection may finish its work, for a while.
void Fleet::age_out(Pool& pool, pool::ConnectionId id) {
    Connection& connection = pool.connections[id.slot];
    const Cluster& cluster = scenario_.cluster;
    const Time last = connection.opened + cluster.age_max + cluster.age_grace;
    if (connection.lent && now() < last) {
        return at(last, Step::age_out, pool, id);
    }
    lose(pool, connection);
}

// As the product does it: the machine lends what is idle for a look, and the dead come back as
// such.
void Fleet::probe(Pool& pool) {
    pool.look = Time::max();
    tell(pool,
         pool::Look{.looker = pool::WaiterId{probe_request},
                    .before = Steady::max(),
                    .most = pool::target_max});
    std::vector<pool::ConnectionId> looked;
    looked.swap(probed_);
    for (const pool::ConnectionId id : looked) {
        const bool dead = pool.connections[id.slot].dead;
        tell(pool, pool::GiveBack{id, dead ? std::optional(pool::Reason::dead) : std::nullopt});
    }
}

// How long it takes to be full the first time, and how long it is not, later.
void Fleet::note_owned(Pool& pool) {
    const bool full = pool.owned >= pool.target;
    if (full && !pool.filled) {
        pool.filled = now() - pool.service.start_delay;
    }
    if (!pool.filled) {
        return;
    }
    if (!full && !pool.short_since) {
        pool.short_since = now();
    } else if (full && pool.short_since) {
        result_.seen.short_spells.push_back(now() - *pool.short_since);
        pool.short_since.reset();
    }
}

}  // namespace holdfast::sim

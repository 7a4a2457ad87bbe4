// Permits to open a connection: granted at once, or through the shared table.
#include <algorithm>
#include <utility>

#include "fleet/fleet.hpp"
#include "fleet/latency.hpp"
#include <fmt/core.h>

#include <holdfast/base/units.hpp>

namespace holdfast::sim {
namespace {

constexpr Time retry_pause =
    std::chrono::milliseconds{50};  // At most, before the first; it doubles.

}  // namespace

// If the cluster has refused us recently, the fleet's permits were too fast for it: then our own
// bucket limits as well, as in the real limiter.
void Fleet::seek_permit(Pool& pool, pool::ConnectionId connection) {
    Part& part = *pool.host.part;
    pool.connections[connection.slot].permit_by = now() + limits_.permit_wait;
    if (scenario_.limiter.kind == LimiterKind::none) {
        return use_permit(pool, connection, now());
    }
    if (scenario_.limiter.kind == LimiterKind::local) {
        return stand_in_line(part.share, pool, connection);
    }
    if (part.pace.part(steady(now())) < 1) {
        return stand_in_line(part.own, pool, connection);
    }
    ask_fleet(pool, connection);
}

void Fleet::ask_fleet(Pool& pool, pool::ConnectionId connection) {
    if (scenario_.limiter.kind == LimiterKind::ideal) {
        return use_permit(pool, connection, shared_.reserve(now()));
    }
    Host& host = pool.host;
    Part& part = *host.part;
    if (!part.breaker.may_ask(steady(now()))) {
        return take_share(pool, connection);
    }
    Connection& wanted = pool.connections[connection.slot];
    wanted.permit =
        request_permits(permits_, limits_, 1, steady(wanted.permit_by), part.memory, host.permits);
    pursue(pool, connection, wanted.permit->next(moment(host)));
}

// The table does not answer. The share of a process is its own, as long as that lasts.
void Fleet::take_share(Pool& pool, pool::ConnectionId connection) {
    pool.connections[connection.slot].permit.reset();
    stand_in_line(pool.host.part->share, pool, connection);
}

void Fleet::stand_in_line(Bucket& bucket, Pool& pool, pool::ConnectionId connection) {
    const std::uint64_t waiter = ++waiters_made_;
    const Steady deadline = steady(pool.connections[connection.slot].permit_by);
    const double part = pool.host.part->pace.part(steady(now()));
    bucket.tokens.set_rate(steady(now()), bucket.rate * part);
    if (!bucket.tokens.enter(steady(now()), pool::WaiterId{waiter}, deadline)) {
        return forgo(pool, connection, Outcome::too_fast);
    }
    bucket.line.emplace(waiter, Opening{&pool, connection});
    serve(pool.host, bucket);
}

void Fleet::serve(Host& host) {
    for (Bucket* bucket : {&host.part->own, &host.part->share}) {
        if (bucket->wake == now()) {
            bucket->wake = Time::max();
            serve(host, *bucket);
        }
    }
}

void Fleet::serve(Host& host, Bucket& bucket) {
    Part& part = *host.part;
    bucket.tokens.set_rate(steady(now()), bucket.rate * part.pace.part(steady(now())));
    while (const auto next = bucket.tokens.serve(steady(now()))) {
        const Opening served = bucket.line.extract(static_cast<std::uint64_t>(*next)).mapped();
        if (served.pool->connections[served.connection.slot].permit_by < now()) {
            forgo(*served.pool, served.connection, Outcome::too_fast);  // It slowed down meanwhile.
        } else if (&bucket == &part.own) {
            ask_fleet(*served.pool, served.connection);
        } else {
            use_permit(*served.pool, served.connection, now());
        }
    }
    const Steady wanted = bucket.tokens.next_wake(steady(now()));
    if (wanted != Steady::max() && Time{wanted - steady(Time{0})} < bucket.wake) {
        bucket.wake = wanted - steady(Time{0});
        at(bucket.wake, Step::serve, host);
    }
}

void Fleet::pursue(Pool& pool, pool::ConnectionId connection, const pool::PermitStep& step) {
    if (const auto* write = std::get_if<pool::PermitWrite>(&step)) {
        return ask_table(pool.host, *write, {&pool, connection});
    }
    if (const auto* pause = std::get_if<pool::PauseUntil>(&step)) {
        return at(pause->when - steady(Time{0}), Step::pause_end, pool, connection);
    }
    pool.connections[connection.slot].permit.reset();
    if (const auto* permits = std::get_if<pool::Permits>(&step)) {
        return use_permit(
            pool, connection, std::max(now(), Time{permits->first - steady(Time{0})}));
    }
    forgo(pool, connection, Outcome::too_fast);
}

void Fleet::use_permit(Pool& pool, pool::ConnectionId connection, Time when) {
    const Time asked = pool.connections[connection.slot].asked;
    pool.counters.denies += when > asked ? 1 : 0;
    result_.seen.permits.push_back({.asked = asked, .usable = when, .service = pool.number});
    trace(pool, [&] {
        return fmt::format("has a permit, to be used in {}", format_duration(when - now()));
    });
    at(when, Step::connect, pool, connection);
}

// Told a moment later: this may be the answer to an action that is still being carried out.
void Fleet::forgo(Pool& pool, pool::ConnectionId connection, Outcome why) {
    --pool.permits_waiting;
    if (why == Outcome::too_fast) {
        give_slot_back(pool.host);
    }
    events_.after(Time{0},
                  {.step = Step::forgo,
                   .outcome = why,
                   .number = pool.number,
                   .life = pool.host.life,
                   .connection = connection});
}

// --- The way to the table ---

void Fleet::ask_table(Host& host, Ask ask, const Opening& opening) {
    if (calls_free_.empty()) {
        calls_free_.push_back(calls_.size());
        calls_.emplace_back();
    }
    const std::uint64_t number = calls_free_.back();
    calls_free_.pop_back();
    calls_[number] = {.ask = std::move(ask),
                      .owner = {.process = host.number, .life = host.life},
                      .opening = opening,
                      .sent = clock_of(host),
                      .said = moment(host).wall};
    events_.after(half_way(host), {.step = Step::call, .number = host.number, .request = number});
}

void Fleet::reach_table(Host& host, const What& what) {
    Call& call = calls_[what.request];
    ++result_.seen.table_calls;
    if (!table_away_) {
        call.reply = table_.ask(now(), call.owner, call.said, call.ask);
    }
    call.throttled = !table_away_ && !call.reply;
    What next = what;
    next.step = Step::reply;
    Time wait = table_away_ ? scenario_.table.timeout : half_way(host);
    if (!call.reply && call.tries < scenario_.table.retries) {
        next.step = Step::call;
        wait += draw_part(retry_pause * (1 << std::min(call.tries, 8)), host.permits);
        ++call.tries;
    }
    events_.after(wait, next);
}

void Fleet::hear_table(Host& host, const What& what) {
    const Call call = std::exchange(calls_[what.request], {});
    calls_free_.push_back(what.request);
    if (call.owner.life != host.life) {
        return;
    }
    result_.seen.table_unanswered += call.reply ? 0 : 1;
    if (call.reply && scenario_.table.skew_corrected) {
        const Wall received = clock_of(host);
        host.part->clock.observe(
            call.sent, received, std::chrono::floor<std::chrono::seconds>(wall_of(now())));
    }
    const Reply reply = call.reply ? *call.reply : Table::silence(call.ask, call.throttled);
    if (const auto* answer = std::get_if<pool::PermitAnswer>(&reply)) {
        hear_permit(call.opening, *answer);
    } else if (const auto* event = std::get_if<pool::SlotEvent>(&reply)) {
        host.part->asking = false;
        tell_slots(host, *event);
    } else {
        tell_leases(host, std::get<pool::LeaseEvent>(reply));
    }
    note_degraded(host);
}

void Fleet::hear_permit(const Opening& opening, const pool::PermitAnswer& answer) {
    Pool& pool = *opening.pool;
    Part& part = *pool.host.part;
    if (is_heard(answer)) {
        part.breaker.answered();
    } else {
        part.breaker.failed(steady(now()));
        if (part.breaker.open()) {
            return take_share(pool, opening.connection);
        }
    }
    if (std::holds_alternative<pool::NotWritten>(answer)) {
        count_open(result_.seen.table_refused, now());
    }
    const auto& request = pool.connections[opening.connection.slot].permit;
    pursue(pool, opening.connection, request->answered(moment(pool.host), answer));
}

Wall Fleet::clock_of(const Host& host) const {
    return wall_of(now() + host.skew);
}

pool::Moment Fleet::moment(const Host& host) const {
    return {.steady = steady(now()), .wall = clock_of(host) - host.part->clock.ahead()};
}

Time Fleet::half_way(Host& host) const {
    return draw(scenario_.table.latency, host.permits) / 2;
}

// From the first process without the table to the last.
void Fleet::note_degraded(Host& host) {
    const Part& part = *host.part;
    const bool is = part.breaker.open() || (part.blocks && part.blocks->degraded()) ||
                    (part.leases && part.leases->degraded());
    if (is == host.degraded) {
        return;
    }
    host.degraded = is;
    trace(host, is ? "is on its own: the table does not answer" : "hears the table again");
    degraded_since_ = degraded_ == 0 ? now() : degraded_since_;
    degraded_ += is ? 1 : -1;
    if (degraded_ == 0) {
        result_.seen.degraded += now() - degraded_since_;
    }
}

}  // namespace holdfast::sim

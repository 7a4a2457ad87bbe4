// From the wish for a connection to the permit to open it: at once, or by way of the shared table.
#include <algorithm>
#include <utility>

#include "fleet.hpp"
#include "latency.hpp"

namespace holdfast::sim {
namespace {

constexpr Time retry_pause =
    std::chrono::milliseconds{50};  // At most, before the first; it doubles.

}  // namespace

void Fleet::seek_permit(Process& process, pool::ConnectionId connection) {
    switch (scenario_.limiter.kind) {
        case LimiterKind::none:
            return use_permit(process, connection, now());
        case LimiterKind::ideal:
            return use_permit(process, connection, shared_.reserve(now()));
        case LimiterKind::local:
            return use_permit(process, connection, process.bucket.reserve(now()));
        case LimiterKind::counter:
        case LimiterKind::bucket:
        case LimiterKind::reserve:
            break;
    }
    Part& part = *process.part;
    if (!part.breaker.may_ask(steady(now()))) {
        return take_share(process, connection);
    }
    auto& request = part.requests[connection.slot];
    request = request_permits(
        permits_, limits_, 1, steady(now() + limits_.permit_wait), part.memory, process.permits);
    pursue(process, connection, request->next(moment(process)));
}

// The table does not answer. The share of a process is its own, as long as that lasts.
void Fleet::take_share(Process& process, pool::ConnectionId connection) {
    process.part->requests.erase(connection.slot);
    if (process.bucket.due(now()) > now() + limits_.permit_wait) {
        return forgo(process, connection, Outcome::too_fast);
    }
    use_permit(process, connection, process.bucket.reserve(now()));
}

void Fleet::pursue(Process& process, pool::ConnectionId connection, const pool::PermitStep& step) {
    if (const auto* write = std::get_if<pool::PermitWrite>(&step)) {
        return ask_table(process, *write, connection);
    }
    if (const auto* pause = std::get_if<pool::PauseUntil>(&step)) {
        return at(pause->when - steady(Time{0}), Step::pause_end, process, connection);
    }
    process.part->requests.erase(connection.slot);
    if (const auto* permits = std::get_if<pool::Permits>(&step)) {
        return use_permit(
            process, connection, std::max(now(), Time{permits->first - steady(Time{0})}));
    }
    forgo(process, connection, Outcome::too_fast);
}

void Fleet::use_permit(Process& process, pool::ConnectionId connection, Time when) {
    const Time asked = process.connections[connection.slot].asked;
    process.counters.denies += when > asked ? 1 : 0;
    result_.seen.permits.push_back({.asked = asked, .usable = when, .service = process.number});
    at(when, Step::connect, process, connection);
}

// Told a moment later: this may be the answer to an action that is still being carried out.
void Fleet::forgo(Process& process, pool::ConnectionId connection, Outcome why) {
    --process.permits_waiting;
    if (why == Outcome::too_fast) {
        give_slot_back(process);
    }
    agenda_.after(Time{0},
                  {.step = Step::forgo,
                   .outcome = why,
                   .process = process.number,
                   .life = process.life,
                   .connection = connection});
}

// --- The way to the table ---

void Fleet::ask_table(Process& process, Ask ask, pool::ConnectionId connection) {
    if (calls_free_.empty()) {
        calls_free_.push_back(calls_.size());
        calls_.emplace_back();
    }
    const std::uint64_t number = calls_free_.back();
    calls_free_.pop_back();
    calls_[number] = {.ask = std::move(ask),
                      .owner = {.process = process.number, .life = process.life},
                      .connection = connection,
                      .sent = clock_of(process),
                      .said = moment(process).wall};
    agenda_.after(half_way(process),
                  {.step = Step::call, .process = process.number, .request = number});
}

void Fleet::reach_table(Process& process, const What& what) {
    Call& call = calls_[what.request];
    ++result_.seen.table_calls;
    if (!table_away_) {
        call.reply = table_.ask(now(), call.owner, call.said, call.ask);
    }
    What next = what;
    next.step = Step::reply;
    Time wait = table_away_ ? scenario_.table.timeout : half_way(process);
    if (!call.reply && call.tries < scenario_.table.retries) {
        next.step = Step::call;
        wait += draw_part(retry_pause * (1 << std::min(call.tries, 8)), process.permits);
        ++call.tries;
    }
    agenda_.after(wait, next);
}

void Fleet::hear_table(Process& process, const What& what) {
    const Call call = std::exchange(calls_[what.request], {});
    calls_free_.push_back(what.request);
    if (call.owner.life != process.life) {
        return;
    }
    result_.seen.table_unanswered += call.reply ? 0 : 1;
    if (call.reply && scenario_.table.skew_corrected) {
        const Wall received = clock_of(process);
        process.part->clock.observe(
            call.sent, received, std::chrono::floor<std::chrono::seconds>(wall_of(now())));
    }
    const Reply reply = call.reply ? *call.reply : Table::silence(call.ask);
    if (const auto* answer = std::get_if<pool::PermitAnswer>(&reply)) {
        hear_permit(process, call, *answer);
    } else if (const auto* event = std::get_if<pool::SlotEvent>(&reply)) {
        process.part->asking = false;
        tell_slots(process, *event);
    } else {
        tell_leases(process, std::get<pool::LeaseEvent>(reply));
    }
    note_degraded(process);
}

void Fleet::hear_permit(Process& process, const Call& call, const pool::PermitAnswer& answer) {
    Part& part = *process.part;
    if (std::holds_alternative<pool::NoAnswer>(answer)) {
        part.breaker.failed(steady(now()));
        if (part.breaker.open()) {
            return take_share(process, call.connection);
        }
    } else {
        part.breaker.answered();
    }
    if (std::holds_alternative<pool::NotWritten>(answer)) {
        count_open(result_.seen.table_refused, now());
    }
    const auto& request = part.requests.at(call.connection.slot);
    pursue(process, call.connection, request->answered(moment(process), answer));
}

Wall Fleet::clock_of(const Process& process) const {
    return wall_of(now() + process.skew);
}

pool::Moment Fleet::moment(const Process& process) const {
    return {.steady = steady(now()), .wall = clock_of(process) - process.part->clock.ahead()};
}

Time Fleet::half_way(Process& process) const {
    return draw(scenario_.table.latency, process.permits) / 2;
}

// From the first process that is on its own to the last.
void Fleet::note_degraded(Process& process) {
    const Part& part = *process.part;
    const bool is = part.breaker.open() || (part.blocks && part.blocks->degraded()) ||
                    (part.leases && part.leases->degraded());
    if (is == process.degraded) {
        return;
    }
    process.degraded = is;
    trace(process, is ? "is on its own: the table does not answer" : "hears the table again");
    degraded_since_ = degraded_ == 0 ? now() : degraded_since_;
    degraded_ += is ? 1 : -1;
    if (degraded_ == 0) {
        result_.seen.degraded += now() - degraded_since_;
    }
}

}  // namespace holdfast::sim

// Slots and leases: the right to have a connection open, shared through a table.
#include <algorithm>

#include "fleet/fleet.hpp"
#include <fmt/core.h>

namespace holdfast::sim {
namespace {

constexpr Time slot_patience = std::chrono::seconds{5};  // As in the real opener.

}  // namespace

void Fleet::join(Host& host) {
    const Slots& slots = scenario_.slots;
    const std::uint64_t seed = seed_of(seed_, host.name, fmt::format("slots {}", host.life));
    if (slots.kind == SlotsKind::blocks) {
        const pool::SlotBlocksConfig config{.size = slots.block,
                                            .count = scenario_.cluster.ceiling / slots.block,
                                            .ttl = slots.ttl,
                                            .renew_every = slots.renew_every,
                                            .local_cap = slots.local_cap};
        host.part->blocks = std::make_unique<pool::SlotBlocks>(config, limits_, seed);
        want_slots(host);
    } else if (slots.kind == SlotsKind::leases) {
        host.part->leases = std::make_unique<pool::Leases>(
            pool::LeasesConfig{.limit = scenario_.cluster.ceiling, .local_cap = slots.local_cap},
            limits_,
            seed,
            [this] { return fmt::format("{:032x}", ++leases_made_); });
    }
}

void Fleet::want_slots(Host& host) {
    if (host.part->blocks) {
        int wanted = 0;
        for (const Pool* pool : host.pools) {
            wanted += pool->target;
        }
        tell_slots(host, pool::WantSlots{wanted});
    }
}

// Permits expire and slots do not, so the slot comes first.
void Fleet::seek_slot(Pool& pool, pool::ConnectionId connection) {
    Part& part = *pool.host.part;
    if (part.blocks) {
        part.line.push_back({&pool, connection});
        at(now() + slot_patience, Step::no_slot, pool, connection);
        return tell_slots(pool.host, pool::SlotsTick{});
    }
    if (part.leases) {
        const std::uint64_t wish = ++part.wishes_made;
        part.wishes.emplace(wish, Opening{&pool, connection});
        return tell_leases(pool.host,
                           pool::WantLease{.wish = pool::LeaseWish{wish},
                                           .deadline = steady(now() + slot_patience)});
    }
    seek_permit(pool, connection);
}

void Fleet::give_slot_back(Host& host) {
    Part& part = *host.part;
    if (part.blocks) {
        part.blocks->release(steady(now()), part.slots.back());
        part.slots.pop_back();
        tell_slots(host, pool::SlotsTick{});
    } else if (part.leases) {
        const pool::LeaseId lease = part.held.back();
        part.held.pop_back();
        tell_leases(host, pool::GiveLeaseBack{lease});
    }
}

void Fleet::end_waiting(Pool& pool, pool::ConnectionId connection) {
    auto& line = pool.host.part->line;
    const auto found = std::ranges::find_if(line, [&](const Opening& opening) {
        return opening.pool == &pool && opening.connection == connection;
    });
    if (found != line.end()) {
        line.erase(found);
        forgo(pool, connection, Outcome::full);
    }
}

void Fleet::tell_slots(Host& host, const pool::SlotEvent& event) {
    Part& part = *host.part;
    pool::SlotActions actions;
    const auto step = [&](const pool::SlotEvent& what) {
        part.blocks->step(steady(now()), what, actions);
    };
    step(event);
    while (!part.line.empty()) {
        const auto slot = part.blocks->acquire(steady(now()));
        if (!slot) {
            break;
        }
        part.slots.push_back(*slot);
        const Opening served = part.line.front();
        part.line.pop_front();
        seek_permit(*served.pool, served.connection);
    }
    step(pool::SlotsTick{});  // Perhaps it is time for another block.
    for (const pool::SlotAction& action : actions) {
        const bool ask = std::holds_alternative<pool::TakeBlock>(action) ||
                         std::holds_alternative<pool::RenewBlock>(action) ||
                         std::holds_alternative<pool::GiveBlockBack>(action);
        if (ask) {
            part.questions.push_back(action);
        }
    }
    if (!part.asking && !part.questions.empty()) {
        part.asking = true;
        ask_table(host, part.questions.front(), {});
        part.questions.pop_front();
    }
    plan_tending(host, part.blocks->next_wake());
    plan_shedding(host);
}

void Fleet::tell_leases(Host& host, const pool::LeaseEvent& event) {
    pool::LeaseActions actions;
    host.part->leases->step(steady(now()), event, actions);
    for (const pool::LeaseAction& action : actions) {
        on_lease(host, action);
    }
    plan_tending(host, host.part->leases->next_wake());
    plan_shedding(host);
}

void Fleet::on_lease(Host& host, const pool::LeaseAction& action) {
    Part& part = *host.part;
    const auto take = [&](pool::LeaseWish wish) {
        const auto found = part.wishes.find(static_cast<std::uint64_t>(wish));
        const Opening opening = found->second;
        part.wishes.erase(found);
        return opening;
    };
    if (const auto* granted = std::get_if<pool::LeaseGranted>(&action)) {
        part.held.push_back(granted->lease);
        const Opening opening = take(granted->wish);
        seek_permit(*opening.pool, opening.connection);
    } else if (const auto* denied = std::get_if<pool::LeaseDenied>(&action)) {
        const Opening opening = take(denied->wish);
        forgo(*opening.pool, opening.connection, Outcome::full);
    } else {
        ask_table(host, action, {});
    }
}

void Fleet::tend(Host& host) {
    if (host.part->wake != now()) {
        return;
    }
    host.part->wake = Time::max();
    if (host.part->blocks) {
        tell_slots(host, pool::SlotsTick{});
    } else {
        tell_leases(host, pool::LeasesTick{});
    }
    note_degraded(host);
}

void Fleet::plan_tending(Host& host, Steady wanted) {
    if (wanted == Steady::max()) {
        return;
    }
    const Time when = std::max(now(), Time{wanted - steady(Time{0})});
    if (when < host.part->wake) {
        host.part->wake = when;
        at(when, Step::tend, host);
    }
}

// So many connections have lost their slots.
int Fleet::excess(const Part& part) const {
    if (part.blocks) {
        return part.blocks->excess(steady(now()));
    }
    return part.leases ? part.leases->excess() : 0;
}

// A moment later: it may be a machine's own action that showed it.
void Fleet::plan_shedding(Host& host) {
    Part& part = *host.part;
    if (!part.shed_planned && (part.shed_told || excess(part) > 0)) {
        part.shed_planned = true;
        at(now(), Step::shed, host);
    }
}

// Each pool gets its share of what must be closed, by its target, as in the real keeper.
void Fleet::shed(Host& host) {
    Part& part = *host.part;
    part.shed_planned = false;
    const std::int64_t lost = excess(part);
    part.shed_told = lost > 0;
    std::int64_t all = 0;
    for (const Pool* pool : host.pools) {
        all += pool->target;
    }
    for (Pool* pool : host.pools) {
        tell(*pool, pool::Shed{static_cast<int>((lost * pool->target + all - 1) / all)});
    }
}

}  // namespace holdfast::sim

// The right to have a connection exist, where the fleet shares it through a table.
#include <algorithm>

#include "fleet.hpp"
#include <fmt/core.h>

namespace holdfast::sim {
namespace {

constexpr Time slot_patience = std::chrono::seconds{5};  // As the opener that ships.

}  // namespace

void Fleet::join(Process& process) {
    const Slots& slots = scenario_.slots;
    const std::uint64_t seed =
        seed_of(seed_, process.service.name, fmt::format("slots {}", process.life));
    if (slots.kind == SlotsKind::blocks) {
        const pool::SlotBlocksConfig config{.size = slots.block,
                                            .count = scenario_.cluster.ceiling / slots.block,
                                            .ttl = slots.ttl,
                                            .renew_every = slots.renew_every,
                                            .local_cap = slots.local_cap};
        process.part->blocks = std::make_unique<pool::SlotBlocks>(config, limits_, seed);
        want_slots(process);
    } else if (slots.kind == SlotsKind::leases) {
        process.part->leases = std::make_unique<pool::Leases>(
            pool::LeasesConfig{.limit = scenario_.cluster.ceiling, .local_cap = slots.local_cap},
            limits_,
            seed,
            [this] { return fmt::format("{:032x}", ++leases_made_); });
    }
}

void Fleet::want_slots(Process& process) {
    if (process.part->blocks) {
        tell_slots(process, pool::WantSlots{process.target});
    }
}

// Permits perish and slots do not, so the slot comes first.
void Fleet::seek_slot(Process& process, pool::ConnectionId connection) {
    Part& part = *process.part;
    if (part.blocks) {
        part.line.push_back(connection);
        at(now() + slot_patience, Step::no_slot, process, connection);
        return tell_slots(process, pool::SlotsTick{});
    }
    if (part.leases) {
        part.wishes.emplace(connection.birth, connection);
        return tell_leases(process,
                           pool::WantLease{.wish = pool::LeaseWish{connection.birth},
                                           .deadline = steady(now() + slot_patience)});
    }
    seek_permit(process, connection);
}

void Fleet::give_slot_back(Process& process) {
    Part& part = *process.part;
    if (part.blocks) {
        part.blocks->release(steady(now()), part.slots.back());
        part.slots.pop_back();
        tell_slots(process, pool::SlotsTick{});
    } else if (part.leases) {
        const pool::LeaseId lease = part.held.back();
        part.held.pop_back();
        tell_leases(process, pool::GiveLeaseBack{lease});
    }
}

void Fleet::end_waiting(Process& process, pool::ConnectionId connection) {
    const auto found = std::ranges::find(process.part->line, connection);
    if (found != process.part->line.end()) {
        process.part->line.erase(found);
        forgo(process, connection, Outcome::full);
    }
}

void Fleet::tell_slots(Process& process, const pool::SlotEvent& event) {
    Part& part = *process.part;
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
        const pool::ConnectionId served = part.line.front();
        part.line.pop_front();
        seek_permit(process, served);
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
        ask_table(process, part.questions.front());
        part.questions.pop_front();
    }
    plan_tending(process, part.blocks->next_wake());
}

void Fleet::tell_leases(Process& process, const pool::LeaseEvent& event) {
    pool::LeaseActions actions;
    process.part->leases->step(steady(now()), event, actions);
    for (const pool::LeaseAction& action : actions) {
        on_lease(process, action);
    }
    plan_tending(process, process.part->leases->next_wake());
}

void Fleet::on_lease(Process& process, const pool::LeaseAction& action) {
    Part& part = *process.part;
    const auto take = [&](pool::LeaseWish wish) {
        const auto found = part.wishes.find(static_cast<std::uint64_t>(wish));
        const pool::ConnectionId connection = found->second;
        part.wishes.erase(found);
        return connection;
    };
    if (const auto* granted = std::get_if<pool::LeaseGranted>(&action)) {
        part.held.push_back(granted->lease);
        seek_permit(process, take(granted->wish));
    } else if (const auto* denied = std::get_if<pool::LeaseDenied>(&action)) {
        forgo(process, take(denied->wish), Outcome::full);
    } else {
        ask_table(process, action);
    }
}

void Fleet::tend(Process& process) {
    if (process.part->wake != now()) {
        return;
    }
    process.part->wake = Time::max();
    if (process.part->blocks) {
        tell_slots(process, pool::SlotsTick{});
    } else {
        tell_leases(process, pool::LeasesTick{});
    }
    note_degraded(process);
}

void Fleet::plan_tending(Process& process, Steady wanted) {
    if (wanted == Steady::max()) {
        return;
    }
    const Time when = std::max(now(), Time{wanted - steady(Time{0})});
    if (when < process.part->wake) {
        process.part->wake = when;
        at(when, Step::tend, process);
    }
}

}  // namespace holdfast::sim

// Observations of a fleet.
#include <algorithm>
#include <ranges>

#include "fleet/fleet.hpp"
#include <fmt/core.h>

#include <holdfast/base/units.hpp>

namespace holdfast::sim {
namespace {

constexpr int age_rows_max = 60;
constexpr int age_parts = 24;

}  // namespace

void Fleet::sample() {
    for (const Sample& one : row(now())) {
        result_.samples.push_back(one);
    }
    const auto& rows = result_.seen.age_rows;
    if (rows.empty() || now() - rows.back().at >= scenario_.duration / age_rows_max) {
        note_ages();
    }
    events_.after(scenario_.sample_every, {.step = Step::sample});
}

void Fleet::note_ages() {
    Time longest{1};
    for (const Service& service : scenario_.services) {
        longest = std::max(longest, service.life + service.life_jitter);
    }
    result_.seen.age_part = longest / age_parts + Time{1};
    AgeRow row{.at = now(), .counts = std::vector<std::uint32_t>(age_parts)};
    for (const Pool& pool : pools_) {
        for (const Connection& connection : pool.connections) {
            if (connection.open && !connection.dead) {
                const auto part = (now() - connection.opened) / result_.seen.age_part;
                ++row.counts[static_cast<std::size_t>(std::min<Time::rep>(part, age_parts - 1))];
            }
        }
    }
    result_.seen.age_rows.push_back(std::move(row));
}

std::vector<Sample> Fleet::row(Time now) const {
    std::vector<Sample> row;
    row.reserve(pools_.size());
    for (const Pool& pool : pools_) {
        const int lent = pool.machine ? pool.machine->counts().in_use : 0;
        row.push_back({.at = now,
                       .service = pool.number,
                       .ready = std::max(0, pool.owned - lent),
                       .lent = std::min(lent, pool.owned),
                       .target = pool.target,
                       .counters = pool.counters});
    }
    return row;
}

// How many of its openings wait for one.
int Fleet::without_slot(const Pool& pool) {
    const Part& part = *pool.host.part;
    const auto waits = [&](const Opening& opening) { return opening.pool == &pool; };
    const auto wishes = part.wishes | std::views::values;
    return static_cast<int>(std::ranges::count_if(part.line, waits) +
                            std::ranges::count_if(wishes, waits));
}

// Why the fleet has fewer connections than it wants, pool by pool.
void Fleet::explain() {
    int owned = 0;
    int target = 0;
    std::vector<std::string> lines;
    for (const Pool& pool : pools_) {
        owned += pool.owned;
        target += pool.target;
        if (pool.owned >= pool.target) {
            continue;
        }
        std::string why;
        const auto add = [&](bool so, const std::string& what) {
            why += so ? fmt::format("{}{}", why.empty() ? "" : ", ", what) : "";
        };
        add(!pool.machine, "it is down");
        const int slotless = without_slot(pool);
        add(slotless > 0, fmt::format("{} wait for a slot", slotless));
        add(pool.permits_waiting > slotless,
            fmt::format("{} wait for a permit", pool.permits_waiting - slotless));
        add(pool.host.degraded, "the shared table does not answer");
        add(pool.connecting > 0, fmt::format("{} are being opened", pool.connecting));
        const auto unnoticed = std::ranges::count_if(pool.connections, &Connection::dead);
        add(unnoticed > 0, fmt::format("{} are dead and not yet detected", unnoticed));
        if (pool.machine && pool.machine->paused_until() > steady(now())) {
            add(true,
                fmt::format("it pauses for {} after failed openings",
                            format_duration(pool.machine->paused_until() - steady(now()))));
        }
        lines.push_back(fmt::format("{}: {} of {}: {}",
                                    pool.service.name,
                                    pool.owned,
                                    pool.target,
                                    why.empty() ? "it has no room for another" : why));
    }
    result_.explanation.push_back(
        fmt::format("at {}: {} of {} connections", format_duration(now()), owned, target));
    result_.explanation.insert(result_.explanation.end(), lines.begin(), lines.end());
}

bool Fleet::traced(const Pool& pool) const {
    return watch_.trace && pool.service.name == watch_.traced;
}

void Fleet::trace(const Host& host, std::string_view what) const {
    for (const Pool* pool : host.pools) {
        trace(*pool, [&] { return what; });
    }
}

}  // namespace holdfast::sim

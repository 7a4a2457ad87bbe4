// What is seen of a fleet.
#include <algorithm>

#include "fleet.hpp"
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
    agenda_.after(scenario_.sample_every, {.step = Step::sample});
}

void Fleet::note_ages() {
    Time longest{1};
    for (const Service& service : scenario_.services) {
        longest = std::max(longest, service.life + service.life_jitter);
    }
    result_.seen.age_part = longest / age_parts + Time{1};
    AgeRow row{.at = now(), .counts = std::vector<std::uint32_t>(age_parts)};
    for (const Process& process : processes_) {
        for (const Connection& connection : process.connections) {
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
    row.reserve(processes_.size());
    for (const Process& process : processes_) {
        const int lent = process.machine ? process.machine->counts().in_use : 0;
        row.push_back({.at = now,
                       .service = process.number,
                       .ready = std::max(0, process.owned - lent),
                       .lent = std::min(lent, process.owned),
                       .target = process.target,
                       .counters = process.counters});
    }
    return row;
}

// Why the fleet has fewer connections than it wants, process by process.
void Fleet::explain() {
    int owned = 0;
    int target = 0;
    std::vector<std::string> lines;
    for (const Process& process : processes_) {
        owned += process.owned;
        target += process.target;
        if (process.owned >= process.target) {
            continue;
        }
        std::string why;
        const auto add = [&](bool so, const std::string& what) {
            why += so ? fmt::format("{}{}", why.empty() ? "" : ", ", what) : "";
        };
        add(!process.machine, "it is down");
        const auto slotless =
            static_cast<int>(process.part->line.size() + process.part->wishes.size());
        add(slotless > 0, fmt::format("{} wait for a slot", slotless));
        add(process.permits_waiting > slotless,
            fmt::format("{} wait for a permit", process.permits_waiting - slotless));
        add(process.degraded, "the shared table does not answer");
        add(process.connecting > 0, fmt::format("{} are being opened", process.connecting));
        const auto unnoticed = std::ranges::count_if(process.connections, &Connection::dead);
        add(unnoticed > 0, fmt::format("{} are dead and nobody has noticed", unnoticed));
        if (process.machine && process.machine->paused_until() > steady(now())) {
            add(true,
                fmt::format("it pauses for {} after failed openings",
                            format_duration(process.machine->paused_until() - steady(now()))));
        }
        lines.push_back(fmt::format("{}: {} of {}: {}",
                                    process.service.name,
                                    process.owned,
                                    process.target,
                                    why.empty() ? "it has no room for another" : why));
    }
    result_.explanation.push_back(
        fmt::format("at {}: {} of {} connections", format_duration(now()), owned, target));
    result_.explanation.insert(result_.explanation.end(), lines.begin(), lines.end());
}

void Fleet::trace(const Process& process, std::string_view what) const {
    if (watch_.trace && process.service.name == watch_.traced) {
        watch_.trace(now(), what);
    }
}

}  // namespace holdfast::sim

// holdfast poolsim sweep and compare: many scenarios side by side.
#include <algorithm>
#include <deque>
#include <optional>

#include "poolsim/access.hpp"
#include "poolsim/poolsim.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/sim/page.hpp>

namespace holdfast::app {
namespace {

// One point of a sweep, and what came of it.
struct Point {
    std::vector<sim::Override> at;
    std::vector<sim::Outcome> outcomes;
    std::size_t passed = 0;
};

void require_few_runs(std::size_t runs) {
    if (runs > sim::runs_max) {
        throw InvalidArgument(fmt::format(
            "these are {} runs, {} are allowed; take fewer seeds or points", runs, sim::runs_max));
    }
}

// Runs every scenario with every seed in one batch, so that all cores have work to the end.
std::vector<std::vector<sim::Outcome>> run_all(const Context& context,
                                               const PoolsimRequest& request,
                                               const std::deque<sim::Scenario>& scenarios) {
    std::vector<sim::Job> jobs;
    std::vector<std::size_t> counts;
    for (const sim::Scenario& scenario : scenarios) {
        const auto seeds = seeds_of(request, scenario);
        counts.push_back(seeds.size());
        for (const std::uint64_t seed : seeds) {
            jobs.push_back({&scenario, seed});
        }
    }
    std::vector<sim::Outcome> all = run_jobs(context, request, jobs);
    std::vector<std::vector<sim::Outcome>> grouped;
    auto from = all.begin();
    for (const std::size_t count : counts) {
        const auto to = from + static_cast<std::ptrdiff_t>(count);
        grouped.emplace_back(std::make_move_iterator(from), std::make_move_iterator(to));
        from = to;
    }
    return grouped;
}

// All values are checked before the first is simulated, and few scenarios are kept at a time: with
// a thousand processes each they are large. After a stop request the complete points are returned.
std::vector<Point> run_sweep(const Context& context,
                             const PoolsimRequest& request,
                             const std::vector<sim::Axis>& axes) {
    constexpr std::size_t together = 512;
    const auto all = sim::combinations(axes);
    const auto load = [&](std::size_t i, const Context& told) {
        return load_scenario(told, request, request.files.at(0), all[i]);
    };
    const std::size_t seeds = seeds_of(request, load(0, context)).size();
    require_few_runs(all.size() * seeds);
    for (std::size_t i = 1; i < all.size(); ++i) {  // Warn once.
        if (context.stop.stop_requested()) {
            throw stopped(0, all.size(), "points");
        }
        (void)load(i, quietly(context));
    }
    std::vector<Point> points;
    points.reserve(all.size());
    while (points.size() < all.size() && !context.stop.stop_requested()) {
        const std::size_t from = points.size();
        std::deque<sim::Scenario> scenarios;
        for (std::size_t i = from; i < std::min(from + together, all.size()); ++i) {
            if (context.stop.stop_requested()) {
                return points;
            }
            scenarios.push_back(load(i, quietly(context)));
        }
        auto grouped = run_all(context, request, scenarios);
        for (std::size_t i = 0; i < grouped.size(); ++i) {
            if (!std::ranges::all_of(grouped[i], &sim::Outcome::finished)) {
                return points;
            }
            const std::size_t passed = passing(grouped[i]);
            points.push_back(
                {.at = all[from + i], .outcomes = std::move(grouped[i]), .passed = passed});
        }
    }
    return points;
}

Json point_json(const Point& point) {
    Json at = Json::object();
    for (const sim::Override& value : point.at) {
        at[value.key] = value.value;
    }
    return {{"at", at},
            {"runs", point.outcomes.size()},
            {"passed_runs", point.passed},
            {"figures", to_json(sim::spread_of(point.outcomes))}};
}

std::string table_of(const std::vector<sim::Axis>& axes, const std::vector<Point>& points) {
    std::vector<Column> columns;
    columns.reserve(axes.size());
    for (const sim::Axis& axis : axes) {
        columns.push_back({axis.key, Align::right});
    }
    columns.push_back({"holds", Align::right});
    const auto first = sim::spread_of(points.front().outcomes);
    for (const sim::Spread& spread : first) {
        columns.push_back({spread.name, Align::right});
    }
    Table table{std::move(columns)};
    for (const Point& point : points) {
        std::vector<std::string> cells;
        cells.reserve(point.at.size());
        for (const sim::Override& value : point.at) {
            cells.push_back(value.value);
        }
        cells.push_back(fmt::format("{}/{}", point.passed, point.outcomes.size()));
        for (const sim::Spread& spread : sim::spread_of(point.outcomes)) {
            cells.push_back(short_number(spread.mean));
        }
        table.add(std::move(cells));
    }
    return table.text();
}

// A map for each figure that is not the same everywhere.
std::string page_of(const PoolsimRequest& request,
                    const std::vector<sim::Axis>& axes,
                    const std::vector<Point>& points) {
    std::vector<sim::SweepMap> maps;
    const std::size_t figures = sim::spread_of(points.front().outcomes).size();
    for (std::size_t i = 0; i < figures; ++i) {
        sim::SweepMap map{
            .title = sim::spread_of(points.front().outcomes)[i].name + ", mean",
            .column_key = axes.back().key,
            .row_key = axes.size() == 2 ? axes.front().key : "",
            .cells = {},
            .more_is_worse = points.front().outcomes.front().figures[i].more_is_worse};
        for (const Point& point : points) {
            map.cells.push_back({.column = point.at.back().value,
                                 .row = axes.size() == 2 ? point.at.front().value : "",
                                 .value = sim::spread_of(point.outcomes)[i].mean,
                                 .holds = enough(request, point.passed, point.outcomes.size())});
        }
        const auto differs = [&](const sim::SweepCell& cell) {
            return cell.value != map.cells.front().value;
        };
        if (i == 0 || std::ranges::any_of(map.cells, differs)) {
            maps.push_back(std::move(map));
        }
    }
    return sim::page_of(request.files.at(0), maps);
}

// Whether enough runs hold with this value. `known` is the largest so far that does, to report it
// if the search is stopped.
bool holds_with(const Context& context,
                const PoolsimRequest& request,
                const std::string& key,
                const std::string& value,
                const std::string& known) {
    std::deque<sim::Scenario> scenarios;
    scenarios.push_back(
        load_scenario(quietly(context), request, request.files.at(0), {{key, value, "--bisect"}}));
    const auto outcomes = run_all(quietly(context), request, scenarios).front();
    if (!std::ranges::all_of(outcomes, &sim::Outcome::finished)) {
        throw Error(Code::cancelled,
                    Outcome::not_applied,
                    known.empty() ? fmt::format("stopped before any {} was found to hold", key)
                                  : fmt::format("stopped; {} holds with {}, perhaps with more",
                                                request.files.at(0),
                                                key + "=" + known));
    }
    return enough(request, passing(outcomes), outcomes.size());
}

// --bisect KEY=LOW..HIGH, or KEY alone.
int bisect(const Context& context, const PoolsimRequest& request) {
    if (!(request.sweeps.empty() && request.plot.empty())) {
        throw InvalidArgument("--bisect looks for one value; leave --sweep and --plot out");
    }
    const sim::Bounds wanted = sim::parse_bounds(request.bisect);
    Heartbeat progress{context.quiet};
    std::optional<std::int64_t> known;
    const auto passes = [&](std::int64_t value) {
        progress.show(fmt::format("{} = {}", wanted.key, wanted.text(value)));
        try {
            const bool holds = holds_with(
                context, request, wanted.key, wanted.text(value), known ? wanted.text(*known) : "");
            known = holds ? std::max(known.value_or(value), value) : known;
            return holds;
        } catch (const InvalidArgument&) {
            // A value that is refused is beyond the edge, unless the key is.
            if (!wanted.open || value == wanted.low) {
                throw;
            }
            return false;
        }
    };
    const sim::Bounds bounds = wanted.open ? sim::narrowed(wanted, passes) : wanted;
    const std::int64_t best = sim::largest_passing(bounds.low, bounds.high, passes);
    progress.clear();
    if (best < bounds.low) {
        say(context,
            {{"key", wanted.key}, {"largest", nullptr}},
            fmt::format("no {} from {} to {} holds",
                        wanted.key,
                        wanted.text(wanted.low),
                        wanted.text(wanted.high)));
        return exit_refused;
    }
    return say(
        context,
        {{"key", wanted.key},
         {"largest",
          wanted.unit == sim::Time{0} ? Json::parse(wanted.text(best)) : Json(wanted.text(best))}},
        fmt::format("the largest {} that holds is {}", wanted.key, wanted.text(best)));
}

// --what-if burst=0: short names for the keys.
std::vector<sim::Override> what_if(const std::vector<std::string>& wishes) {
    const std::string option = "--what-if";
    std::vector<sim::Override> overrides;
    for (const std::string& wish : wishes) {
        const auto equals = wish.find('=');
        if (equals == std::string::npos || equals == 0) {
            throw InvalidArgument(fmt::format("--what-if takes KEY=VALUE, not '{}'", wish));
        }
        const std::string key = wish.substr(0, equals);
        const std::string value = wish.substr(equals + 1);
        if (key == "burst") {  // Without a burst one permit is still a permit.
            const std::string burst = value == "0" ? "1" : value;
            overrides.push_back({"cluster.burst", burst, option});
            overrides.push_back({"limiter.burst", burst, option});
        } else if (key == "rate") {
            overrides.push_back({"cluster.rate", value, option});
            overrides.push_back({"limiterPerSec", value, option});
        } else if (key == "ceiling") {
            overrides.push_back({"cluster.ceiling", value, option});
        } else {
            overrides.push_back({key, value, option});
        }
    }
    return overrides;
}

}  // namespace

int poolsim_sweep(const Context& context, const PoolsimRequest& request) {
    require_one_file(request);
    if (!request.bisect.empty()) {
        return bisect(context, request);
    }
    std::vector<sim::Axis> axes;
    axes.reserve(request.sweeps.size());
    for (const std::string& text : request.sweeps) {
        axes.push_back(sim::parse_axis(text));
    }
    if (axes.empty()) {
        throw InvalidArgument(
            "nothing to sweep; give --sweep KEY=VALUES or --bisect KEY=LOW..HIGH");
    }
    if (!request.plot.empty() && axes.size() > 2) {
        throw InvalidArgument("--plot shows one or two keys; sweep fewer");
    }
    require_writable(request);
    const std::vector<Point> points = run_sweep(context, request, axes);
    const std::size_t wanted = sim::combinations(axes).size();
    const bool complete = points.size() == wanted;
    if (points.empty()) {
        throw stopped(0, wanted, "points");
    }
    if (!request.plot.empty() && complete) {
        write_text_file(request.plot, page_of(request, axes, points));
    }
    Json all = Json::array();
    bool holds = complete;
    for (const Point& point : points) {
        all.push_back(point_json(point));
        holds = holds && enough(request, point.passed, point.outcomes.size());
    }
    print(context.json
              ? Json{{"schema", poolsim_schema_version}, {"stopped", !complete}, {"points", all}}
                        .dump() +
                    "\n"
              : table_of(axes, points));
    if (!complete) {
        throw stopped(points.size(), wanted, "points");
    }
    return holds ? exit_done : exit_refused;
}

int poolsim_compare(const Context& context, const PoolsimRequest& request) {
    if (request.files.size() + (request.what_if.empty() ? 0 : 1) != 2) {
        throw InvalidArgument("give two scenarios, or one with --what-if KEY=VALUE");
    }
    std::deque<sim::Scenario> scenarios;
    scenarios.push_back(load_scenario(context, request, request.files[0]));
    scenarios.push_back(
        load_scenario(context, request, request.files.back(), what_if(request.what_if)));
    if (scenarios[0].profile != scenarios[1].profile) {
        throw InvalidArgument("the two have different profiles; choose one with --profile");
    }
    const auto outcomes = run_all(context, request, scenarios);
    for (const auto& one : outcomes) {
        if (!std::ranges::all_of(one, &sim::Outcome::finished)) {
            throw stopped(0, 2, "scenarios");
        }
    }
    const auto before = sim::spread_of(outcomes[0]);
    const auto after = sim::spread_of(outcomes[1]);
    Json all = Json::object();
    Table table{{{"figure"},
                 {request.files[0], Align::right},
                 {request.what_if.empty() ? request.files.back() : "what if", Align::right},
                 {"difference", Align::right}}};
    for (std::size_t i = 0; i < before.size(); ++i) {
        all[before[i].name] = {before[i].mean, after[i].mean};
        table.add({before[i].name,
                   short_number(before[i].mean),
                   short_number(after[i].mean),
                   short_number(after[i].mean - before[i].mean)});
    }
    const std::size_t held = passing(outcomes[0]);
    const std::size_t holds = passing(outcomes[1]);
    table.add({"holds",
               fmt::format("{}/{}", held, outcomes[0].size()),
               fmt::format("{}/{}", holds, outcomes[1].size()),
               ""});
    print(context.json ? Json{{"schema", poolsim_schema_version},
                              {"passed_runs", {held, holds}},
                              {"figures", all}}
                                 .dump() +
                             "\n"
                       : table.text());
    return exit_done;
}

}  // namespace holdfast::app

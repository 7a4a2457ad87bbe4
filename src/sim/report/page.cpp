#include <holdfast/sim/page.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/chart.hpp"
#include "seconds.hpp"
#include <fmt/core.h>

#include <holdfast/base/units.hpp>
#include <holdfast/sim/figures.hpp>
#include <holdfast/sim/report.hpp>

namespace holdfast::sim {
namespace {

// More points than pixels only make the file large.
constexpr std::size_t points_max = 600;

constexpr std::string_view style = R"css(
:root { color-scheme: light dark; --page: #fff; --ink: #1d2430; --soft: #667085; --grid: #e4e7ec;
  --a: #1f6feb; --b: #c8731c; --c: #22805a; --d: #c0392b; --fault: #8e44ad; }
@media (prefers-color-scheme: dark) { :root { --page: #12161d; --ink: #e6e9ef; --soft: #98a2b3;
  --grid: #2a313c; --a: #6ea8fe; --b: #f0a35e; --c: #5fd0a0; --d: #ff7b6b; --fault: #c792ea; } }
body { background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif;
  max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: .2rem; }
figure { margin: 1.6rem 0; } figcaption { font-weight: 600; }
.legend { margin: .1rem 0 .3rem; color: var(--soft); font-size: .85rem; }
.key { margin-right: 1.2rem; } .key i { display: inline-block; width: .8rem; height: .8rem;
  border-radius: 2px; margin-right: .35rem; vertical-align: -1px; background: var(--soft); }
svg { width: 100%; height: auto; }
.grid { stroke: var(--grid); } .tick { fill: var(--soft); font-size: 12px; }
.tick.x { text-anchor: middle; } .tick.y, .tick.unit { text-anchor: end; }
.line { fill: none; stroke-width: 1.8; } .band { opacity: .22; stroke: none; }
.level { stroke-dasharray: 5 4; stroke-width: 1.4; } .fault { stroke: var(--fault); }
.line.a, .level.a { stroke: var(--a); } .line.b, .level.b { stroke: var(--b); }
.line.c, .level.c { stroke: var(--c); } .line.d, .level.d { stroke: var(--d); }
.band.a, .column.a { fill: var(--a); } .column.b { fill: var(--b); } .column.c { fill: var(--c); }
.column.d { fill: var(--d); } .cell-of-map.a { fill: var(--a); }
i.a { background: var(--a) !important; } i.b { background: var(--b) !important; }
i.c { background: var(--c) !important; } i.d { background: var(--d) !important; }
i.f { background: var(--fault) !important; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: right; }
td:first-child, th:first-child { text-align: left; } th { color: var(--soft); font-weight: 500; }
.cell { padding: .35rem .6rem; border: 1px solid var(--page); color: #10151c; text-align: center; }
.cell.fails { outline: 2px solid var(--d); outline-offset: -3px; }
.cell.fails::after { content: " \2717"; } tr > th + th { text-align: center; }
.ok { color: var(--c); } .bad { color: var(--d); }
)css";

std::string page(const std::string& title, const std::string& body) {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
        "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
        "<style>{}</style></head>\n<body>\n{}</body></html>\n",
        escape_xml(title),
        style,
        body);
}

// The fleet at one sample.
struct ChartMoment {
    double at = 0;
    double owned = 0;
    double target = 0;
    double expired = 0;
    double surplus = 0;
    double lost = 0;
    std::vector<double> shares{};  // Of each service.
};

std::vector<ChartMoment> moments_of(const Result& result) {
    std::vector<ChartMoment> moments;
    for (const Sample& sample : result.samples) {
        if (sample.service == 0) {
            moments.push_back({.at = seconds_of(sample.at)});
        }
        ChartMoment& moment = moments.back();
        const Counters& c = sample.counters;
        moment.owned += sample.owned();
        moment.target += sample.target;
        moment.expired += static_cast<double>(c.discard_expired + c.discard_guard + c.closed_age);
        moment.surplus += static_cast<double>(c.discard_full);
        moment.lost += static_cast<double>(c.dropped + c.closed_server);
        moment.shares.push_back(100.0 * sample.owned() / sample.target);
    }
    return moments;
}

// Every n-th, so that few enough are left; the worst of the n by `worse`.
template <class Worse>
std::vector<ChartMoment> thinned(const std::vector<ChartMoment>& moments, Worse worse) {
    const std::size_t step = moments.size() / points_max + 1;
    std::vector<ChartMoment> kept;
    for (std::size_t i = 0; i < moments.size(); i += step) {
        const auto from = moments.begin() + static_cast<std::ptrdiff_t>(i);
        const auto to =
            moments.begin() + static_cast<std::ptrdiff_t>(std::min(i + step, moments.size()));
        kept.push_back(*std::min_element(from, to, worse));
    }
    return kept;
}

class RunPage {
public:
    RunPage(const Scenario& scenario, const Result& result)
        : scenario_(scenario),
          result_(result),
          moments_(moments_of(result)),
          duration_(seconds_of(scenario.duration)) {}

    [[nodiscard]] std::string text() const {
        std::string body = head();
        body += owned() + shares() + opens() + closed();
        if (!result_.seen.permits.empty()) {
            body += permits();
        }
        if (!result_.seen.waits.empty()) {
            body += served("Waits: the share of borrowers that waited no longer, %",
                           "borrowers",
                           result_.seen.waits);
        }
        if (!result_.seen.idles.empty()) {
            body += served(
                "Time in the reservoir: the share lent within, %", "lent", result_.seen.idles);
        }
        if (!result_.seen.age_rows.empty()) {
            body += age_map();
        }
        if (!result_.seen.ages.empty()) {
            body += ages();
        }
        return page(scenario_.name, body + figures());
    }

private:
    [[nodiscard]] std::string head() const {
        std::string verdict = "<p class=\"ok\">OK</p>\n";
        if (!result_.passed()) {
            verdict = "<ul class=\"bad\">";
            for (const Violation& violation : result_.violations) {
                verdict += fmt::format("<li>{}</li>", escape_xml(told(violation)));
            }
            verdict += "</ul>\n";
        }
        return fmt::format(
            "<h1>{}</h1><p>{} simulated, {} services, {} connections, {} new ones "
            "per second, profile {}</p>{}",
            escape_xml(scenario_.name),
            format_duration(scenario_.duration),
            scenario_.services.size(),
            scenario_.target(),
            scenario_.limit_per_second,
            to_string(scenario_.profile),
            verdict);
    }

    void mark_faults(Chart& chart) const {
        for (const Strike& strike : result_.seen.struck) {
            chart.marker(fmt::format("{}{} at {}",
                                     to_string(strike.kind),
                                     strike.over ? " is over" : "",
                                     format_duration(strike.at)),
                         seconds_of(strike.at));
        }
    }

    template <class Value>
    static std::vector<ChartPoint> line_of(const std::vector<ChartMoment>& moments, Value value) {
        std::vector<ChartPoint> points;
        points.reserve(moments.size());
        for (const ChartMoment& moment : moments) {
            points.push_back({moment.at, value(moment)});
        }
        return points;
    }

    [[nodiscard]] std::string owned() const {
        const auto kept = thinned(
            moments_, [](const ChartMoment& a, const ChartMoment& b) { return a.owned < b.owned; });
        double most = 1;
        for (const ChartMoment& moment : kept) {
            most = std::max({most, moment.owned, moment.target});
        }
        Chart chart("Connections of the fleet", "seconds", duration_, 1.08 * most);
        chart.line("b", "target", line_of(kept, [](const ChartMoment& m) { return m.target; }));
        chart.line("a", "owned", line_of(kept, [](const ChartMoment& m) { return m.owned; }));
        mark_faults(chart);
        return chart.svg();
    }

    [[nodiscard]] std::string shares() const {
        auto kept = thinned(
            moments_, [](const ChartMoment& a, const ChartMoment& b) { return a.owned < b.owned; });
        double most = 100;
        for (ChartMoment& moment : kept) {
            std::ranges::sort(moment.shares);
            most = std::max(most, moment.shares.back());
        }
        const auto middle = [](const ChartMoment& m) { return m.shares[m.shares.size() / 2]; };
        Chart chart("Share of its target that a process has, %", "seconds", duration_, 1.08 * most);
        chart.band("a",
                   "from the worst process to the best",
                   line_of(kept, [](const ChartMoment& m) { return m.shares.front(); }),
                   line_of(kept, [](const ChartMoment& m) { return m.shares.back(); }));
        chart.line("a", "the one in the middle", line_of(kept, middle));
        mark_faults(chart);
        return chart.svg();
    }

    [[nodiscard]] std::string opens() const {
        const std::size_t step = result_.opens.size() / points_max + 1;
        std::vector<ChartPoint> points;
        double most = scenario_.limit_per_second;
        for (std::size_t i = 0; i < result_.opens.size(); i += step) {
            double worst = 0;
            for (std::size_t j = i; j < std::min(i + step, result_.opens.size()); ++j) {
                worst = std::max<double>(worst, result_.opens[j]);
            }
            points.push_back({static_cast<double>(i), worst});
            most = std::max(most, worst);
        }
        Chart chart("New connections per second", "seconds", duration_, 1.08 * most);
        chart.columns("a", "opened in a second", points, static_cast<double>(step));
        chart.level("d", "the limit", scenario_.limit_per_second);
        mark_faults(chart);
        return chart.svg();
    }

    struct Closed {
        double expired = 0;
        double surplus = 0;
        double lost = 0;
    };

    // In each part of the time, `wide` seconds long; what happens between two of them is the later
    // one's, as the line of a fault there says.
    [[nodiscard]] std::vector<Closed> closed_in(double wide, std::size_t parts) const {
        std::vector<Closed> all(parts);
        const auto part_of = [&](double at) -> Closed& {
            return all[std::min(parts - 1, static_cast<std::size_t>(at / wide))];
        };
        for (const Closing& closing : result_.seen.closed) {
            Closed& part = part_of(seconds_of(closing.at));
            part.expired += closing.why == Gone::aged ? 1 : 0;
            part.surplus += closing.why == Gone::surplus ? 1 : 0;
            part.lost += closing.why == Gone::lost ? 1 : 0;
        }
        if (scenario_.profile != Profile::standard) {  // The older models have samples only.
            ChartMoment before;
            for (const ChartMoment& moment : moments_) {
                Closed& part = part_of(before.at);
                part.expired += moment.expired - before.expired;
                part.surplus += moment.surplus - before.surplus;
                part.lost += moment.lost - before.lost;
                before = moment;
            }
        }
        return all;
    }

    // Stacked by reason, in some sixty parts of the time.
    [[nodiscard]] std::string closed() const {
        const std::size_t step = moments_.size() / 60 + 1;
        const double wide = static_cast<double>(step) * seconds_of(scenario_.sample_every);
        const std::vector<Closed> parts = closed_in(wide, (moments_.size() + step - 1) / step);
        std::vector<ChartPoint> expired;
        std::vector<ChartPoint> surplus;
        std::vector<ChartPoint> lost;
        std::vector<double> second;
        std::vector<double> third;
        double most = 1;
        for (const Closed& part : parts) {
            const double at = wide * static_cast<double>(expired.size());
            expired.push_back({at, part.expired});
            surplus.push_back({at, part.surplus});
            lost.push_back({at, part.lost});
            second.push_back(part.expired);
            third.push_back(part.expired + part.surplus);
            most = std::max(most, third.back() + part.lost);
        }
        Chart chart(
            fmt::format("Connections closed, per {:g} s", wide), "seconds", duration_, 1.08 * most);
        chart.columns("c", "aged", expired, wide);
        chart.columns("b", "one too many", surplus, wide, second);
        chart.columns("d", "lost by a fault", lost, wide, third);
        mark_faults(chart);
        return chart.svg();
    }

    // Openings that have asked for a permit and may not use one yet.
    [[nodiscard]] std::string permits() const {
        std::vector<std::pair<Time, int>> changes;
        for (const Permit& permit : result_.seen.permits) {
            changes.emplace_back(permit.asked, 1);
            changes.emplace_back(permit.usable, -1);
        }
        std::ranges::sort(changes);
        const double part = duration_ / static_cast<double>(points_max);
        std::vector<ChartPoint> points(points_max + 1);
        double most = 1;
        int waiting = 0;
        std::size_t next = 0;
        for (std::size_t i = 0; i < points.size(); ++i) {
            points[i] = {part * static_cast<double>(i), static_cast<double>(waiting)};
            const double end = part * static_cast<double>(i + 1);
            for (; next < changes.size() && seconds_of(changes[next].first) < end; ++next) {
                waiting += changes[next].second;
                points[i].y = std::max<double>(points[i].y, waiting);
            }
            most = std::max(most, points[i].y);
        }
        Chart chart("Openings that wait for a permit", "seconds", duration_, 1.08 * most);
        chart.line("a", "in line", points);
        mark_faults(chart);
        return chart.svg();
    }

    // Requires: sorted, and not empty.
    static std::string served(const char* title,
                              const char* label,
                              const std::vector<Time>& times) {
        constexpr int parts = 200;
        std::vector<ChartPoint> points;
        const double most = std::max(1.0, 1e3 * seconds_of(times.back()));
        for (int i = 0; i <= parts; ++i) {
            const double part = static_cast<double>(i) / parts;
            points.push_back({1e3 * seconds_of(quantile(times, part)), 100 * part});
        }
        points.push_back({most, 100});
        Chart chart(title, "milliseconds", most, 105);
        chart.line("a", label, points);
        return chart.svg();
    }

    // Bands that climb together are connections that will die together.
    [[nodiscard]] std::string age_map() const {
        const std::vector<AgeRow>& rows = result_.seen.age_rows;
        const double part = seconds_of(result_.seen.age_part);
        double most = 1;
        for (const AgeRow& row : rows) {
            most = std::max<double>(most, *std::ranges::max_element(row.counts));
        }
        const double wide = rows.size() > 1 ? seconds_of(rows[1].at - rows[0].at)
                                            : duration_ - seconds_of(rows[0].at);
        std::vector<Chart::Cell> cells;
        for (const AgeRow& row : rows) {
            for (std::size_t i = 0; i < row.counts.size(); ++i) {
                cells.push_back({.x = seconds_of(row.at),
                                 .y = part * static_cast<double>(i),
                                 .part = row.counts[i] / most});
            }
        }
        Chart chart("Ages of the connections over time, seconds",
                    "seconds",
                    duration_,
                    part * static_cast<double>(rows.front().counts.size()));
        chart.cells("a", fmt::format("up to {:g} of one age", most), cells, wide, part);
        mark_faults(chart);
        return chart.svg();
    }

    [[nodiscard]] std::string ages() const {
        constexpr std::size_t parts = 60;
        const double most = std::max(1.0, seconds_of(result_.seen.ages.back()));
        std::vector<ChartPoint> points(parts);
        for (std::size_t i = 0; i < parts; ++i) {
            points[i].x = most * static_cast<double>(i) / parts;
        }
        double highest = 1;
        for (const Time age : result_.seen.ages) {
            const auto bin = static_cast<std::size_t>(seconds_of(age) / most * parts);
            ChartPoint& point = points[std::min(bin, parts - 1)];
            point.y += 1;
            highest = std::max(highest, point.y);
        }
        Chart chart("Age at which connections were closed", "seconds", most, 1.08 * highest);
        chart.columns("c", "connections", points, most / parts);
        return chart.svg();
    }

    [[nodiscard]] std::string figures() const {
        std::string rows;
        for (const Figure& figure : figures_of(scenario_, result_)) {
            rows += fmt::format(
                "<tr><td>{}</td><td>{:g}</td></tr>\n", escape_xml(figure.name), figure.value);
        }
        return "<table><tr><th>figure</th><th>value</th></tr>\n" + rows + "</table>\n";
    }

    const Scenario& scenario_;
    const Result& result_;
    std::vector<ChartMoment> moments_;
    double duration_;
};

// From green through yellow to red.
std::string colour_of(double part) {
    return fmt::format("hsl({:.0f} 62% 62%)", 130 * (1 - std::clamp(part, 0.0, 1.0)));
}

std::string map_of(const SweepMap& map) {
    std::vector<std::string> columns;
    std::vector<std::string> rows;
    double low = map.cells.front().value;
    double high = low;
    std::map<std::pair<std::string, std::string>, const SweepCell*> cells;
    for (const SweepCell& cell : map.cells) {
        if (std::ranges::find(columns, cell.column) == columns.end()) {
            columns.push_back(cell.column);
        }
        if (std::ranges::find(rows, cell.row) == rows.end()) {
            rows.push_back(cell.row);
        }
        low = std::min(low, cell.value);
        high = std::max(high, cell.value);
        cells[{cell.row, cell.column}] = &cell;
    }
    const auto worse = [&](double value) {
        const double part = high > low ? (value - low) / (high - low) : 0;
        return map.more_is_worse || high == low ? part : 1 - part;
    };
    std::string text =
        fmt::format("<figure><figcaption>{}</figcaption>\n<table><tr><th>{} \\ {}</th>",
                    escape_xml(map.title),
                    escape_xml(map.row_key),
                    escape_xml(map.column_key));
    for (const std::string& column : columns) {
        text += fmt::format("<th>{}</th>", escape_xml(column));
    }
    text += "</tr>\n";
    for (const std::string& row : rows) {
        text += fmt::format("<tr><th>{}</th>", escape_xml(row));
        for (const std::string& column : columns) {
            const SweepCell& cell = *cells.at({row, column});
            text += fmt::format("<td class=\"cell{}\" style=\"background: {}\">{:.4g}</td>",
                                cell.holds ? "" : " fails",
                                colour_of(worse(cell.value)),
                                cell.value);
        }
        text += "</tr>\n";
    }
    return text + "</table></figure>\n";
}

}  // namespace

std::string page_of(const Scenario& scenario, const Result& result) {
    return RunPage(scenario, result).text();
}

std::string page_of(const std::string& title, const std::vector<SweepMap>& maps) {
    std::string body = fmt::format(
        "<h1>{}</h1><p>Framed in red, with a cross: not every assertion holds there.</p>\n",
        escape_xml(title));
    for (const SweepMap& map : maps) {
        body += map_of(map);
    }
    return page(title, body);
}

}  // namespace holdfast::sim

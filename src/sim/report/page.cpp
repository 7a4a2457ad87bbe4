#include <holdfast/sim/page.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "seconds.hpp"
#include <fmt/core.h>

#include <holdfast/base/report.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/sim/figures.hpp>
#include <holdfast/sim/report.hpp>

namespace holdfast::sim {
namespace {

using report::Chart;
using report::Point;

// More points than pixels only make the file large.
constexpr std::size_t points_max = 600;

constexpr std::string_view style = R"css(
td, th { padding: .15rem .8rem .15rem 0; }
.cell { padding: .35rem .6rem; border: 1px solid var(--page); color: #10151c; text-align: center; }
.cell.fails { outline: 2px solid var(--d); outline-offset: -3px; }
.cell.fails::after { content: " \2717"; } tr > th + th { text-align: center; }
.ok { color: var(--c); } .bad { color: var(--d); }
)css";

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
        return report::page(scenario_.name, style, body + figures());
    }

private:
    [[nodiscard]] std::string head() const {
        std::string verdict = "<p class=\"ok\">OK</p>\n";
        if (!result_.passed()) {
            verdict = "<ul class=\"bad\">";
            for (const Violation& violation : result_.violations) {
                verdict += fmt::format("<li>{}</li>", report::escaped(told(violation)));
            }
            verdict += "</ul>\n";
        }
        return fmt::format(
            "<h1>{}</h1><p>{} simulated, {} services, {} connections, {} new ones "
            "per second, profile {}</p>{}",
            report::escaped(scenario_.name),
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
    static std::vector<Point> line_of(const std::vector<ChartMoment>& moments, Value value) {
        std::vector<Point> points;
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
        return std::move(chart).figure();
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
        return std::move(chart).figure();
    }

    [[nodiscard]] std::string opens() const {
        const std::size_t step = result_.opens.size() / points_max + 1;
        std::vector<Point> points;
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
        return std::move(chart).figure();
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
        std::vector<Point> expired;
        std::vector<Point> surplus;
        std::vector<Point> lost;
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
        return std::move(chart).figure();
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
        std::vector<Point> points(points_max + 1);
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
        return std::move(chart).figure();
    }

    // Requires: sorted, and not empty.
    static std::string served(const char* title,
                              const char* label,
                              const std::vector<Time>& times) {
        constexpr int parts = 200;
        std::vector<Point> points;
        const double most = std::max(1.0, 1e3 * seconds_of(times.back()));
        for (int i = 0; i <= parts; ++i) {
            const double part = static_cast<double>(i) / parts;
            points.push_back({1e3 * seconds_of(quantile(times, part)), 100 * part});
        }
        points.push_back({most, 100});
        Chart chart(title, "milliseconds", most, 105);
        chart.line("a", label, points);
        return std::move(chart).figure();
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
        return std::move(chart).figure();
    }

    [[nodiscard]] std::string ages() const {
        constexpr std::size_t parts = 60;
        const double most = std::max(1.0, seconds_of(result_.seen.ages.back()));
        std::vector<Point> points(parts);
        for (std::size_t i = 0; i < parts; ++i) {
            points[i].x = most * static_cast<double>(i) / parts;
        }
        double highest = 1;
        for (const Time age : result_.seen.ages) {
            const auto bin = static_cast<std::size_t>(seconds_of(age) / most * parts);
            Point& point = points[std::min(bin, parts - 1)];
            point.y += 1;
            highest = std::max(highest, point.y);
        }
        Chart chart("Age at which connections were closed", "seconds", most, 1.08 * highest);
        chart.columns("c", "connections", points, most / parts);
        return std::move(chart).figure();
    }

    [[nodiscard]] std::string figures() const {
        std::string rows;
        for (const Figure& figure : figures_of(scenario_, result_)) {
            rows += fmt::format(
                "<tr><td>{}</td><td>{:g}</td></tr>\n", report::escaped(figure.name), figure.value);
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
                    report::escaped(map.title),
                    report::escaped(map.row_key),
                    report::escaped(map.column_key));
    for (const std::string& column : columns) {
        text += fmt::format("<th>{}</th>", report::escaped(column));
    }
    text += "</tr>\n";
    for (const std::string& row : rows) {
        text += fmt::format("<tr><th>{}</th>", report::escaped(row));
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
        report::escaped(title));
    for (const SweepMap& map : maps) {
        body += map_of(map);
    }
    return report::page(title, style, body);
}

}  // namespace holdfast::sim

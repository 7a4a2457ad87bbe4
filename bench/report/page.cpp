// The page with the pictures. Static: no scripts, no fonts, nothing fetched.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "report/plot.hpp"
#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/report.hpp>
#include <holdfast/bench/report.hpp>

namespace holdfast::bench {
namespace {

constexpr std::string_view data_begin =
    "<script type=\"application/json\" id=\"holdfast-reports\">";
constexpr std::string_view data_end = "</script>";

constexpr std::string_view style = R"css(
:root { --one: #8a8c90; --limit: #b9bcc2; --floor: #c77700; }
@media (prefers-color-scheme: dark) {
  :root { --one: #7d8188; --limit: #5a5e66; --floor: #f0a73a; }
}
h2 { font-size: 1.25rem; margin: 2.6rem 0 .2rem; }
h3 { font-size: .95rem; margin: 0 0 .1rem; }
p { margin: .2rem 0 1rem; color: var(--soft); }
p.lead { max-width: 46rem; }
section.card {
  background: var(--card); border: 1px solid var(--edge); border-radius: 10px;
  padding: 1.1rem 1.3rem; margin: 1rem 0; overflow-x: auto;
}
section.card p { font-size: .86rem; margin-bottom: .6rem; }
svg { min-width: 620px; }
svg text { fill: var(--ink); font-size: 13px; }
svg .name { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px; }
svg .tick, svg .small, svg .note { fill: var(--soft); font-size: 12px; }
svg .value { font-weight: 650; font-size: 15px; }
svg .one { stroke: var(--one); stroke-width: 1.5; }
svg .round { fill: var(--a); opacity: .35; }
svg .whisker { stroke: var(--a); stroke-width: 9; stroke-linecap: round; opacity: .3; }
svg .median { fill: var(--a); stroke: var(--card); stroke-width: 1.5; }
svg .median.below { fill: var(--d); }
svg .note.below { fill: var(--d); font-weight: 600; }
svg .floor { stroke: var(--floor); stroke-width: 2; }
svg .ours { fill: var(--a); rx: 2px; }
svg .limit { fill: var(--limit); rx: 2px; }
svg .error { stroke: var(--ink); stroke-width: 1.5; opacity: .6; }
.key {
  display: inline-block; width: .75em; height: .75em; border-radius: 2px;
  margin: 0 .35em 0 .1em;
}
.key.l { margin-left: .9em; }
p strong { color: var(--ink); }
.key.o { background: var(--a); } .key.l { background: var(--limit); }
.key.f { background: var(--floor); width: .2em; }
table { width: 100%; font-size: .86rem; }
th { vertical-align: bottom; }
th, td { padding: .38rem .5rem; border-bottom: 1px solid var(--grid); }
th:first-child { width: 9rem; }
td { white-space: nowrap; }
th:first-child, td:first-child { padding-left: 0; }
td:first-child { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
td small { color: var(--soft); }
tr:last-child td { border-bottom: 0; }
.below { color: var(--d); }
)css";

void add(std::string& page, std::string_view text) {
    page += text;
}

std::string group_of(const Result& result) {
    return result.name.substr(0, result.name.rfind('.'));
}

std::string durability_text(const Durability& durability) {
    std::string text;
    for (const auto& [database, settings] : durability) {
        std::string list;
        for (const auto& [name, value] : settings) {
            list += fmt::format("{}{} {}", list.empty() ? "" : ", ", name, value);
        }
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", database, list);
    }
    return text;
}

void add_table(std::string& page, const std::vector<Result>& results) {
    std::set<std::string> counts;
    for (const Result& result : results) {
        for (const Count& count : result.counts) {
            counts.insert(count.name);
        }
    }
    add(page,
        "<table><thead><tr><th>benchmark</th><th>ours</th><th>limit</th><th>unit</th>"
        "<th>ratio <small>quartiles</small></th><th>floor</th><th>processor µs<br>"
        "<small>ours / limit</small></th>");
    for (const std::string& name : counts) {
        std::string shown = name;
        std::ranges::replace(shown, '_', ' ');
        page += fmt::format("<th>{}</th>", report::escaped(shown));
    }
    add(page, "<th>rounds</th></tr></thead><tbody>\n");
    for (const Result& result : results) {
        page += fmt::format(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td{}>{:.3f} <small>{:.3f}–{:.3f}"
            "</small></td><td>{}</td><td>{:.1f} / {:.1f}</td>",
            report::escaped(result.name),
            grouped(result.ours.median),
            grouped(result.limit.median),
            report::escaped(result.unit),
            result.below_floor() ? " class=\"below\"" : "",
            result.ratio.median,
            result.ratio.lower,
            result.ratio.upper,
            result.floor ? fmt::format("{:g}", *result.floor) : "",
            result.ours_cpu_us,
            result.limit_cpu_us);
        for (const std::string& name : counts) {
            const auto found = std::ranges::find(result.counts, name, &Count::name);
            page += found == result.counts.end() ? std::string("<td></td>")
                                                 : fmt::format("<td>{:.3g}</td>", found->value);
        }
        page += fmt::format("<td>{}</td></tr>\n", result.ratio.rounds.size());
    }
    add(page, "</tbody></table>\n");
}

// "2 of 4 floors are reached."
std::string verdict(const std::vector<Result>& results) {
    const auto with_floor = std::ranges::count_if(
        results, [](const Result& result) { return result.floor.has_value(); });
    const auto below = std::ranges::count_if(results, &Result::below_floor);
    return fmt::format("{} of {} floors are reached.", with_floor - below, with_floor);
}

void add_heading(std::string& page, const Report& report) {
    const Machine& machine = report.machine;
    page += fmt::format(
        "<h2>{}</h2>\n<p><strong>{}</strong> {}. {}, {} cores, {:.0f} GB, {}; a flush takes {:.0f} "
        "µs "
        "on {}. {}. Peak memory {:.0f} MB.</p>\n",
        report::escaped(report.bench),
        verdict(report.results),
        report::escaped(report.time),
        report::escaped(machine.cpu),
        machine.cores,
        static_cast<double>(machine.memory_bytes) / 1e9,
        report::escaped(machine.kernel),
        machine.flush_us,
        report::escaped(machine.filesystem),
        report::escaped(durability_text(report.durability)),
        static_cast<double>(report.peak_memory_bytes) / 1e6);
    if (machine.busy()) {
        page += fmt::format(
            "<p class=\"below\">Other programs kept the machine busy (load {:.1f}), which flatters "
            "the ratios of many threads against one. Measure again when it is quiet.</p>\n",
            machine.load);
    }
    for (const Unmeasured& unmeasured : report.failed) {
        page += fmt::format("<p class=\"below\">{} could not be measured: {}</p>\n",
                            report::escaped(unmeasured.name),
                            report::escaped(unmeasured.error));
    }
}

// Results that belong together share one picture and one scale.
void add_rates(std::string& page, const std::vector<Result>& results) {
    for (auto begin = results.begin(); begin != results.end();) {
        const std::string group = group_of(*begin);
        const auto end = std::find_if(begin, results.end(), [&group](const Result& result) {
            return group_of(result) != group;
        });
        page += fmt::format(
            "<section class=\"card\"><h3>{}, {}</h3>\n<p><span class=\"key o\"></span>ours <span "
            "class=\"key l\"></span>the limit; medians, with the quartiles as a line</p>\n",
            report::escaped(group),
            report::escaped(begin->unit));
        add(page, rate_plot({begin, end}));
        add(page, "</section>\n");
        begin = end;
    }
}

void add_report(std::string& page, const Report& report) {
    add_heading(page, report);
    add(page,
        "<section class=\"card\"><h3>Against the limit</h3>\n<p>The dot is the median, the band "
        "spans the quartiles, and below it is each round. <span class=\"key f\"></span>the least "
        "that we promise</p>\n");
    add(page, ratio_plot(report.results));
    add(page, "</section>\n");
    add_rates(page, report.results);
    add(page,
        "<section class=\"card\"><h3>Figures and counts</h3>\n<p>Counts are per operation of "
        "ours. Unlike rates they do not depend on the machine.</p>\n");
    add_table(page, report.results);
    add(page, "</section>\n");
}

// In JSON a '<' is always inside a string. As it stands it could end the element that holds the
// data.
std::string embeddable(const std::string& json) {
    std::string out;
    for (const char c : json) {
        out += c == '<' ? std::string("\\u003c") : std::string(1, c);
    }
    return out;
}

}  // namespace

std::string to_page(std::span<const Report> reports) {
    std::string page;
    add(page,
        "<h1>Holdfast benchmarks</h1>\n<p class=\"lead\">Each benchmark runs our code and its "
        "limit in turns: the same work, on the same database, in the same minute, with nothing "
        "of ours in the way. What counts is the ratio of the two.</p>\n");
    std::string data;
    for (const Report& report : reports) {
        add_report(page, report);
        data += (data.empty() ? "[" : ",\n") + to_json(report);
    }
    page += fmt::format("{}{}]{}\n", data_begin, embeddable(data.empty() ? "[" : data), data_end);
    return report::page("Holdfast benchmarks", style, page);
}

std::vector<Report> reports_in_page(std::string_view page) {
    const std::size_t begin = page.find(data_begin);
    if (begin == std::string_view::npos) {
        return {};
    }
    const std::string_view rest = page.substr(begin + data_begin.size());
    const auto data = nlohmann::json::parse(rest.substr(0, rest.find(data_end)), nullptr, false);
    if (!data.is_array()) {
        return {};
    }
    std::vector<Report> reports;
    for (const auto& entry : data) {
        reports.push_back(report_from_json(entry.dump()));
    }
    return reports;
}

void merge_into_page(const std::filesystem::path& file, const Report& report) {
    std::vector<Report> reports;
    if (std::filesystem::exists(file)) {
        std::ostringstream text;
        text << std::ifstream(file).rdbuf();
        reports = reports_in_page(text.str());
        if (reports.empty()) {
            throw InvalidArgument(fmt::format(
                "{} is not a page of benchmark results; name another file", file.string()));
        }
        std::erase_if(reports, [&](const Report& old) { return old.bench == report.bench; });
    }
    reports.push_back(report);
    std::ranges::sort(reports, {}, &Report::bench);

    // Beside the page and then renamed, so that a page is never half-written.
    std::filesystem::path fresh = file;
    fresh += ".new";
    std::ofstream out(fresh, std::ios::trunc);
    out << to_page(reports);
    out.close();
    std::error_code failure;
    if (out) {
        std::filesystem::rename(fresh, file, failure);
    }
    if (!out || failure) {
        std::filesystem::remove(fresh, failure);
        throw Error(
            Code::unavailable,
            Outcome::not_applied,
            fmt::format("cannot write {}; choose another file with --report", file.string()));
    }
}

}  // namespace holdfast::bench

#include <holdfast/sim/report.hpp>

#include <span>

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/format.h>

#include <holdfast/base/report.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast::sim {
namespace {

constexpr std::chrono::sys_days start{std::chrono::year{2026} / std::chrono::January / 1};

struct CsvColumn {
    const char* name;
    std::int64_t (*value)(const Sample& sample);
};

constexpr CsvColumn reservoir_columns[] = {
    {"size", [](const Sample& s) -> std::int64_t { return s.ready; }},
    {"target", [](const Sample& s) -> std::int64_t { return s.target; }},
    {"in_use", [](const Sample& s) -> std::int64_t { return s.lent; }},
    {"checkouts", [](const Sample& s) { return s.counters.checkouts; }},
    {"empty_events", [](const Sample& s) { return s.counters.empty; }},
    {"discards", [](const Sample& s) { return s.counters.discards(); }},
    {"discard_expired", [](const Sample& s) { return s.counters.discard_expired; }},
    {"discard_guard", [](const Sample& s) { return s.counters.discard_guard; }},
    {"discard_full", [](const Sample& s) { return s.counters.discard_full; }},
    {"refills", [](const Sample& s) { return s.counters.opens; }},
    {"refill_failures", [](const Sample& s) { return s.counters.open_failures; }},
    {"scan_evictions", [](const Sample& s) { return s.counters.scan_evictions; }},
    {"limiter_denies", [](const Sample& s) { return s.counters.denies; }},
    {"work_started", [](const Sample& s) { return s.counters.work_started; }},
    {"work_completed", [](const Sample& s) { return s.counters.work_completed; }},
};

constexpr CsvColumn keeper_columns[] = {
    {"open", [](const Sample& s) -> std::int64_t { return s.owned(); }},
    {"idle", [](const Sample& s) -> std::int64_t { return s.ready; }},
    {"in_use", [](const Sample& s) -> std::int64_t { return s.lent; }},
    {"target", [](const Sample& s) -> std::int64_t { return s.target; }},
    {"closed_lifetime", [](const Sample& s) { return s.counters.closed_age; }},
    {"closed_server", [](const Sample& s) { return s.counters.closed_server; }},
    {"warmup_opens", [](const Sample& s) { return s.counters.warmup_opens; }},
    {"keeper_opens", [](const Sample& s) { return s.counters.keeper_opens; }},
    {"workload_opens", [](const Sample& s) { return s.counters.workload_opens; }},
    {"limiter_denies", [](const Sample& s) { return s.counters.denies; }},
    {"pool_waits", [](const Sample& s) { return s.counters.waits; }},
    {"work_started", [](const Sample& s) { return s.counters.work_started; }},
    {"work_completed", [](const Sample& s) { return s.counters.work_completed; }},
};

std::span<const CsvColumn> columns_of(const Scenario& scenario) {
    if (scenario.profile == Profile::compat_s) {
        return keeper_columns;
    }
    return reservoir_columns;
}

// A spreadsheet runs a cell that begins with one of these as a formula, quoted or not; after an
// apostrophe it shows it as text.
bool is_formula(const std::string& cell) {
    return cell.find_first_of("=+-@\t\r") == 0;
}

// A name as a field of a CSV file.
std::string csv_field(const std::string& name) {
    const bool formula = is_formula(name);
    if (!formula && name.find_first_of(",\"\r\n") == std::string::npos) {
        return name;
    }
    std::string quoted = formula ? "\"'" : "\"";
    for (const char c : name) {
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    }
    return quoted + "\"";
}

std::string keeper_line(const Sample& s) {
    return fmt::format(
        "open {}/{}, opened {} by warm-up, {} by keeper, closed {} by age, {} by "
        "server",
        s.owned(),
        s.target,
        s.counters.warmup_opens,
        s.counters.keeper_opens,
        s.counters.closed_age,
        s.counters.closed_server);
}

std::string reservoir_line(const Sample& s) {
    const Counters& c = s.counters;
    return fmt::format(
        "size {}/{}, checkouts {}, empty {}, refills {}, discards {} (expired {}, guard {}, full "
        "{})",
        s.ready,
        s.target,
        c.checkouts,
        c.empty,
        c.opens,
        c.discards(),
        c.discard_expired,
        c.discard_guard,
        c.discard_full);
}

// What was asked of the table that the fleet shares; nothing if it was not.
std::string table_line(const Observations& seen) {
    if (seen.table_calls == 0) {
        return "";
    }
    std::string text =
        fmt::format("shared table: {} calls for {} permits, {} throttled, {} in conflict",
                    seen.table_calls,
                    seen.permits.size(),
                    seen.table_throttled,
                    seen.table_conflicts);
    if (seen.degraded > Time{0}) {
        const auto degraded = std::chrono::ceil<std::chrono::milliseconds>(seen.degraded);
        text += fmt::format("; degraded for {}: some processes could not ask it",
                            format_duration(degraded));
    }
    if (seen.shed > 0) {
        text += fmt::format("; {} connections given up, as their slots were lost", seen.shed);
    }
    return text + "\n";
}

std::string junit_suite(const Suite& suite) {
    std::string cases;
    std::size_t failures = 0;
    for (const Outcome& outcome : suite.outcomes) {
        cases += fmt::format("  <testcase classname=\"{}\" name=\"seed {}\">",
                             report::escaped(suite.scenario),
                             outcome.seed);
        for (const Violation& violation : outcome.violations) {
            cases += fmt::format("<failure message=\"{}\"/>", report::escaped(told(violation)));
        }
        cases += "</testcase>\n";
        failures += outcome.passed() ? 0 : 1;
    }
    return fmt::format("<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n{}</testsuite>\n",
                       report::escaped(suite.scenario),
                       suite.outcomes.size(),
                       failures,
                       cases);
}

}  // namespace

std::string told(const Violation& violation) {
    const bool named = !violation.service.empty();
    return fmt::format("{}: {}{} (at {}{})",
                       violation.assertion,
                       named && !violation.fleet ? violation.service + ": " : "",
                       violation.what,
                       format_duration(violation.at),
                       named && violation.fleet ? ", " + violation.service : "");
}

std::string moment_text(Time at) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       start + std::chrono::floor<std::chrono::seconds>(at));
}

std::string start_of(const Scenario& scenario) {
    return fmt::format("simulating {} for {}: {} services, {} connections",
                       scenario.name,
                       format_duration(scenario.duration),
                       scenario.services.size(),
                       scenario.target());
}

std::string progress_of(const Moment& moment) {
    const auto day = std::chrono::floor<std::chrono::days>(moment.now);
    return fmt::format("{}{:%H:%M:%S}: {} events, {} waiting",
                       day.count() == 0 ? "" : fmt::format("day {}, ", day.count() + 1),
                       std::chrono::floor<std::chrono::seconds>(moment.now - day),
                       moment.executed,
                       moment.waiting);
}

std::string summary_of(const Scenario& scenario, const Result& result) {
    std::string text = fmt::format("{}: {} simulated, {} services, {} new connections per second\n",
                                   scenario.name,
                                   format_duration(scenario.duration),
                                   scenario.services.size(),
                                   scenario.limit_per_second);
    std::int64_t empty = 0;
    for (const Sample& sample : result.last) {
        const bool keeper = scenario.profile == Profile::compat_s;
        text += fmt::format("  {}: {}\n",
                            scenario.services[sample.service].name,
                            keeper ? keeper_line(sample) : reservoir_line(sample));
        empty += sample.counters.empty;
    }
    text += fmt::format("most opened in a second: {}", result.opens_max());
    if (scenario.opens_per_second_max >= 0) {
        text += fmt::format(" (allowed: {})", scenario.opens_per_second_max);
    }
    text += fmt::format("\nempty events: {}\n", empty) + table_line(result.seen);
    return text + fmt::format("events: {}\n", result.events);
}

std::string verdict_of(const Result& result) {
    if (result.passed()) {
        return "OK\n";
    }
    std::string text;
    for (const Violation& violation : result.violations) {
        text += fmt::format("FAIL: {}\n", told(violation));
    }
    return text;
}

std::string junit_of(const std::vector<Suite>& suites) {
    std::string text;
    for (const Suite& suite : suites) {
        text += junit_suite(suite);
    }
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}",
        suites.size() == 1 ? text : fmt::format("<testsuites>\n{}</testsuites>\n", text));
}

std::string wide_csv_of(const Scenario& scenario, const Result& result) {
    const std::span<const CsvColumn> columns = columns_of(scenario);
    std::string text = "t_rfc3339";
    for (const Service& service : scenario.services) {
        for (const CsvColumn& column : columns) {
            text += "," + csv_field(fmt::format("{}.{}", service.name, column.name));
        }
    }
    for (const Sample& sample : result.samples) {
        if (sample.service == 0) {
            text += fmt::format("\n{}", moment_text(sample.at));
        }
        for (const CsvColumn& column : columns) {
            text += fmt::format(",{}", column.value(sample));
        }
    }
    return text + "\n";
}

std::string csv_of(const Scenario& scenario, const Result& result) {
    const std::span<const CsvColumn> columns = columns_of(scenario);
    fmt::memory_buffer out;
    const auto to = std::back_inserter(out);
    fmt::format_to(to, "t_rfc3339,service");
    for (const CsvColumn& column : columns) {
        fmt::format_to(to, ",{}", column.name);
    }
    out.push_back('\n');
    std::vector<std::string> names;
    names.reserve(scenario.services.size());
    for (const Service& service : scenario.services) {
        names.push_back(csv_field(service.name));
    }
    std::string moment;
    Time at = Time::min();
    for (const Sample& sample : result.samples) {
        if (sample.at != at) {
            at = sample.at;
            moment = moment_text(at);
        }
        fmt::format_to(to, "{},{}", moment, names[sample.service]);
        for (const CsvColumn& column : columns) {
            fmt::format_to(to, ",{}", column.value(sample));
        }
        out.push_back('\n');
    }
    return fmt::to_string(out);
}

}  // namespace holdfast::sim

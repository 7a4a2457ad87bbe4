#include "poolsim/poolsim.hpp"

#include <algorithm>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "poolsim/access.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/sim/keys.hpp>
#include <holdfast/sim/page.hpp>
#include <holdfast/sim/plan.hpp>
#include <holdfast/sim/report.hpp>
#include <holdfast/sim/scenario.hpp>
#include <holdfast/sim/shipped.hpp>
#include <holdfast/sim/simulation.hpp>

namespace holdfast::app {
namespace {

// The default scenario of the older program.
constexpr const char* built_in = "local";

Json ms_or_null(sim::Time time) {
    return time == sim::Time::max() ? Json(nullptr) : Json(time / std::chrono::milliseconds{1});
}

Json violations_json(const std::vector<sim::Violation>& violations) {
    Json all = Json::array();
    for (const sim::Violation& violation : violations) {
        all.push_back(to_json(violation));
    }
    return all;
}

// Of the runs that do not hold: which they are, and why.
Json failures_json(const std::vector<sim::Outcome>& outcomes) {
    Json all = Json::array();
    for (const sim::Outcome& outcome : outcomes) {
        if (!outcome.passed()) {
            all.push_back(
                {{"seed", outcome.seed}, {"violations", violations_json(outcome.violations)}});
        }
    }
    return all;
}

Json run_json(const sim::Scenario& scenario, std::uint64_t seed, const sim::Result& result) {
    Json services = Json::array();
    for (const sim::Sample& sample : result.last) {
        const sim::Counters& c = sample.counters;
        services.push_back({{"name", scenario.services[sample.service].name},
                            {"ready", sample.ready},
                            {"in_use", sample.lent},
                            {"target", sample.target},
                            {"opens", c.opens},
                            {"checkouts", c.checkouts},
                            {"empty_events", c.empty},
                            {"discards", c.discards() + c.closed_age},
                            {"dropped", c.dropped + c.closed_server},
                            {"limiter_denies", c.denies}});
    }
    if (scenario.profile == sim::Profile::standard) {
        for (std::size_t i = 0; i < services.size(); ++i) {
            services[i]["fill_ms"] = ms_or_null(result.seen.filled[i]);
        }
    }
    Json recoveries = Json::array();
    for (const sim::Recovery& recovery : sim::recoveries_of(result)) {
        recoveries.push_back({{"fault", sim::to_string(recovery.strike.kind)},
                              {"at_ms", recovery.strike.at / std::chrono::milliseconds{1}},
                              {"over", recovery.strike.over},
                              {"took_ms", ms_or_null(recovery.took)}});
    }
    Json figures = Json::object();
    for (const sim::Figure& figure : sim::figures_of(scenario, result)) {
        figures[figure.name] = figure.value;
    }
    return {{"schema", poolsim_schema_version},
            {"scenario", scenario.name},
            {"profile", sim::to_string(scenario.profile)},
            {"seed", seed},
            {"duration_ms", scenario.duration / std::chrono::milliseconds{1}},
            {"passed", result.passed()},
            {"violations", violations_json(result.violations)},
            {"opens_per_second_max", result.opens_max()},
            {"events", result.events},
            {"figures", figures},
            {"recoveries", recoveries},
            {"services", services}};
}

// "617s", or "t=617s".
sim::Time explained_moment(const std::string& text, sim::Time duration) {
    sim::Time moment{};
    try {
        moment = parse_duration(text.starts_with("t=") ? text.substr(2) : text);
    } catch (const InvalidArgument& bad) {
        throw InvalidArgument(fmt::format("--explain {}: {}", text, bad.what()));
    }
    if (moment > duration) {
        throw InvalidArgument(fmt::format(
            "--explain {}: the simulation ends at {}", text, format_duration(duration)));
    }
    return moment;
}

// The first line of a report for people. In those of the older models progress is a part.
bool prints_start(const Context& context) {
    return !(context.json || context.quiet);
}

sim::Result simulate(const Context& context,
                     const PoolsimRequest& request,
                     const sim::Scenario& scenario,
                     std::uint64_t seed) {
    if (scenario.profile != sim::Profile::standard &&
        !(request.traced.empty() && request.explain.empty())) {
        throw InvalidArgument(
            "--trace and --explain need the profile default; the older models do not support them");
    }
    Heartbeat progress{context.quiet};
    sim::Watch watch;
    watch.stop = context.stop;
    if (prints_start(context) && scenario.profile != sim::Profile::standard) {
        watch.minute = [](const sim::Moment& moment) { print(sim::progress_of(moment) + "\n"); };
    } else {
        watch.minute = [&](const sim::Moment& moment) {
            progress.show(fmt::format("{}: {}", scenario.name, sim::progress_of(moment)));
        };
    }
    watch.traced = request.traced;
    if (!request.traced.empty()) {
        if (std::ranges::find(scenario.services, request.traced, &sim::Service::name) ==
            scenario.services.end()) {
            throw InvalidArgument(fmt::format("--trace {}: {} has no such service; its first is {}",
                                              request.traced,
                                              scenario.name,
                                              scenario.services.front().name));
        }
        watch.trace = [&](sim::Time at, std::string_view what) {
            fmt::print(stderr, "{} {}: {}\n", format_duration(at), request.traced, what);
        };
    }
    if (!request.explain.empty()) {
        watch.explain_at = explained_moment(request.explain, scenario.duration);
    }
    if (prints_start(context)) {
        print(sim::start_of(scenario) + "\n");
    }
    return sim::simulate(scenario, seed, watch);
}

// How long the fleet was short after each fault, and after each that passed.
std::string recoveries_text(const sim::Result& result) {
    std::string text;
    for (const sim::Recovery& recovery : sim::recoveries_of(result)) {
        text += fmt::format("after {} {} at {}: full {}\n",
                            sim::to_string(recovery.strike.kind),
                            recovery.strike.over ? "ended" : "struck",
                            format_duration(recovery.strike.at),
                            recovery.took == sim::Time::max()
                                ? "never again"
                                : fmt::format("again within {}", format_duration(recovery.took)));
    }
    return text;
}

std::string figures_text(const sim::Scenario& scenario, const sim::Result& result) {
    Table table{{{"figure"}, {"value", Align::right}}};
    for (const sim::Figure& figure : sim::figures_of(scenario, result)) {
        table.add({figure.name, short_number(figure.value)});
    }
    return table.text();
}

int run_once(const Context& context,
             const PoolsimRequest& request,
             const sim::Scenario& scenario,
             std::uint64_t seed,
             std::vector<sim::Suite>& suites) {
    sim::Result result = simulate(context, request, scenario, seed);
    keep_asserted(request, result.violations);
    // The table first: it shows the cause of a failure.
    if (!request.csv.empty()) {
        write_text_file(
            request.csv,
            request.wide ? sim::wide_csv_of(scenario, result) : sim::csv_of(scenario, result));
    }
    suites.push_back({scenario.name, {{.seed = seed, .violations = result.violations}}});
    if (!request.plot.empty()) {
        write_text_file(request.plot, sim::page_of(scenario, result));
    }
    if (context.json) {
        print(run_json(scenario, seed, result).dump() + "\n");
        return result.passed() ? exit_done : exit_refused;
    }
    print(sim::summary_of(scenario, result));
    if (scenario.profile == sim::Profile::standard) {
        print(recoveries_text(result) + figures_text(scenario, result));
    }
    for (const std::string& line : result.explanation) {
        print(line + "\n");
    }
    if (!result.passed()) {
        fmt::print(stderr, "{}", sim::verdict_of(result));
        return exit_refused;
    }
    print(sim::verdict_of(result));
    return exit_done;
}

std::string spreads_text(const std::vector<sim::Spread>& spreads) {
    Table table{{{"figure"},
                 {"mean", Align::right},
                 {"deviation", Align::right},
                 {"p5", Align::right},
                 {"p50", Align::right},
                 {"p95", Align::right},
                 {"p99", Align::right},
                 {"worst", Align::right},
                 {"seed", Align::right}}};
    for (const sim::Spread& s : spreads) {
        table.add({s.name,
                   short_number(s.mean),
                   short_number(s.deviation),
                   short_number(s.p5),
                   short_number(s.p50),
                   short_number(s.p95),
                   short_number(s.p99),
                   short_number(s.worst),
                   fmt::format("{}", s.worst_seed)});
    }
    return table.text();
}

Json many_json(const sim::Scenario& scenario,
               const std::vector<sim::Outcome>& outcomes,
               bool holds,
               bool stopped_early) {
    return {{"schema", poolsim_schema_version},
            {"scenario", scenario.name},
            {"profile", sim::to_string(scenario.profile)},
            {"runs", outcomes.size()},
            {"passed_runs", passing(outcomes)},
            {"passed", holds},
            {"stopped", stopped_early},
            {"failures", failures_json(outcomes)},
            {"figures", to_json(sim::spread_of(outcomes))}};
}

int run_many(const Context& context,
             const PoolsimRequest& request,
             const sim::Scenario& scenario,
             const std::vector<std::uint64_t>& seeds,
             std::vector<sim::Suite>& suites) {
    if (!(request.csv.empty() && request.plot.empty() && request.traced.empty() &&
          request.explain.empty())) {
        throw InvalidArgument(
            "--out, --plot, --trace and --explain work on one run; give one seed");
    }
    std::vector<sim::Job> jobs;
    jobs.reserve(seeds.size());
    for (const std::uint64_t seed : seeds) {
        jobs.push_back({&scenario, seed});
    }
    if (prints_start(context)) {
        print(fmt::format("{}, {} seeds\n", sim::start_of(scenario), seeds.size()));
    }
    std::vector<sim::Outcome> outcomes = run_jobs(context, request, jobs);
    std::erase_if(outcomes, [](const sim::Outcome& outcome) { return !outcome.finished; });
    const bool all = outcomes.size() == jobs.size();
    const std::size_t passed = passing(outcomes);
    const bool holds = all && enough(request, passed, outcomes.size());
    if (context.json) {
        print(many_json(scenario, outcomes, holds, !all).dump() + "\n");
    } else if (!outcomes.empty()) {
        print(fmt::format("{}: {} runs\n", scenario.name, outcomes.size()));
        print(spreads_text(sim::spread_of(outcomes)));
    }
    if (!all) {
        throw stopped(outcomes.size(), jobs.size(), "runs");
    }
    suites.push_back({scenario.name, outcomes});
    if (context.json) {
        return holds ? exit_done : exit_refused;
    }
    const std::string verdict = fmt::format("holds in {} of {} runs\n", passed, outcomes.size());
    if (!holds) {
        const auto bad = std::ranges::find_if(outcomes, [](const auto& o) { return !o.passed(); });
        fmt::print(stderr,
                   "FAIL: {}seed {}: {}\n",
                   verdict,
                   bad->seed,
                   sim::told(bad->violations.front()));
        return exit_refused;
    }
    print(verdict + "OK\n");
    return exit_done;
}

}  // namespace

int poolsim_run_as_before(const Context& context, const PoolsimRequest& request) {
    PoolsimRequest ours = request;
    if (ours.profile.empty()) {
        ours.profile = "compat";
    }
    ours.files.insert(ours.files.end(), ours.old_files.begin(), ours.old_files.end());
    if (ours.files.empty()) {
        ours.files.emplace_back(built_in);
    }
    if (!ours.cpu_profile.empty()) {
        fmt::print(stderr, "holdfast: -cpuprofile writes nothing here; use perf record\n");
    }
    return poolsim_run(context, ours);
}

int poolsim_run(const Context& context, const PoolsimRequest& request) {
    const std::vector<std::string>& files = request.files;
    if (files.size() > 1 && !(request.csv.empty() && request.plot.empty())) {
        throw InvalidArgument("--out and --plot work on one scenario; name one file");
    }
    require_writable(request);
    std::vector<sim::Scenario> scenarios;  // All are read before the first is simulated.
    scenarios.reserve(files.size());
    for (const std::string& file : files) {
        scenarios.push_back(load_scenario(context, request, file));
    }
    int worst = exit_done;
    std::vector<sim::Suite> suites;
    for (const sim::Scenario& scenario : scenarios) {
        const std::vector<std::uint64_t> seeds = seeds_of(request, scenario);
        worst =
            std::max(worst,
                     seeds.size() == 1 ? run_once(context, request, scenario, seeds.front(), suites)
                                       : run_many(context, request, scenario, seeds, suites));
    }
    if (!request.junit.empty()) {
        write_text_file(request.junit, sim::junit_of(suites));
    }
    return worst;
}

int poolsim_plan(const Context& context, const PoolsimRequest& request) {
    require_one_file(request);
    const sim::Scenario scenario = load_scenario(quietly(context), request, request.files.at(0));
    Json all = Json::array();
    Table table{{{"figure"}, {"value", Align::right}, {"formula"}, {"trouble"}}};
    bool feasible = true;
    for (const sim::PlanLine& line : sim::plan_of(scenario)) {
        all.push_back({{"name", line.name},
                       {"value", line.value},
                       {"formula", line.formula},
                       {"trouble", line.trouble}});
        table.add({line.name, short_number(line.value), line.formula, line.trouble});
        feasible = feasible && line.trouble.empty();
    }
    print(context.json ? all.dump() + "\n" : table.text());
    return feasible ? exit_done : exit_refused;
}

int poolsim_check(const Context& context, const PoolsimRequest& request) {
    Json checked = Json::array();
    std::string lines;
    for (const std::string& file : request.files) {
        const sim::Scenario scenario = load_scenario(context, request, file);
        checked.push_back({{"file", file},
                           {"profile", sim::to_string(scenario.profile)},
                           {"services", scenario.services.size()},
                           {"connections", scenario.target()}});
        lines += fmt::format("{}: {} services, {} connections, profile {}\n",
                             file,
                             scenario.services.size(),
                             scenario.target(),
                             sim::to_string(scenario.profile));
    }
    print(context.json ? checked.dump() + "\n" : lines);
    return exit_done;
}

int poolsim_schema(const Context& context, const PoolsimRequest& request) {
    const sim::Profile profile =
        request.profile.empty() ? sim::Profile::standard : sim::parse_profile(request.profile);
    Json all = Json::array();
    Table table{{{"key"}, {"default"}, {"kind"}}};
    for (const sim::ScenarioKey& key : sim::scenario_keys(profile)) {
        all.push_back({{"key", key.path}, {"kind", key.kind}, {"default", key.fallback}});
        table.add({key.path, key.fallback, key.kind});
    }
    print(context.json ? Json{{"schema", poolsim_schema_version}, {"keys", all}}.dump() + "\n"
                       : table.text());
    return exit_done;
}

int poolsim_list(const Context& context, const PoolsimRequest& /*request*/) {
    Json all = Json::array();
    Table table{{{"scenario"}, {"what it shows"}}};
    for (const sim::Shipped& shipped : sim::shipped_scenarios()) {
        const std::string_view first = shipped.yaml.substr(2, shipped.yaml.find('\n') - 2);
        all.push_back({{"name", shipped.name}, {"about", first}});
        table.add({std::string(shipped.name), std::string(first)});
    }
    print(context.json ? all.dump() + "\n" : table.text());
    return exit_done;
}

std::vector<std::string> without_old_poolsim_flags(std::vector<std::string> words) {
    const auto noun = std::ranges::find(words, "poolsim");
    const auto old = [](const std::string& word) {
        const std::string name = word.substr(0, word.find('='));
        return name == "-config" || name == "-out" || name == "-cpuprofile";
    };
    if (words.end() - noun < 2 || std::none_of(noun, words.end(), old)) {
        return words;
    }
    const std::string next = *(noun + 1);
    if (next != "run" && !next.starts_with('-')) {
        return words;  // A verb that the older program did not have.
    }
    for (auto word = noun; word != words.end(); ++word) {
        if (old(*word)) {
            *word = "--" + (word->starts_with("-c") ? "old-" + word->substr(1) : word->substr(1));
        }
    }
    if (next == "run") {
        *(noun + 1) = "old";
    } else {
        words.insert(noun + 1, "old");
    }
    return words;
}

std::string with_old_poolsim_flags(std::string text) {
    for (const auto& [ours, theirs] :
         {std::pair<std::string, std::string>{"--old-", "-"}, {"poolsim old", "poolsim run"}}) {
        for (auto at = text.find(ours); at != std::string::npos; at = text.find(ours, at)) {
            text.replace(at, ours.size(), theirs);
        }
    }
    return text;
}

}  // namespace holdfast::app

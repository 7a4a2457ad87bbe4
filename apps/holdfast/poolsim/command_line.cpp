// Command line of `holdfast poolsim`.
#include "cli/command_line.hpp"

#include <charconv>

#include <fmt/core.h>

#include <holdfast/sim/batch.hpp>

namespace holdfast::app {

void CommandLine::add_poolsim() {
    CLI::App* noun =
        add(root_, "poolsim", "Simulate the connections of a fleet, without a database.");
    noun->require_subcommand(1);
    add_poolsim_run(*noun);
    add_poolsim_many(*noun);
    add_poolsim_verb(
        *noun, "plan", "Compute the expected figures without a simulation.", &poolsim_plan);
    add_poolsim_verb(*noun, "check", "Validate scenarios.", &poolsim_check);
    CLI::App* schema = add(*noun,
                           "schema",
                           "List the keys of a scenario, with their defaults.",
                           [this](const Context& c) { return poolsim_schema(c, poolsim_); });
    takes_choice(schema->add_option("--profile", poolsim_.profile, "Profile whose keys are listed"),
                 {"default", "compat", "compat-s"});
    add(*noun, "list", "List the built-in scenarios.", [this](const Context& c) {
        return poolsim_list(c, poolsim_);
    });
}

CLI::App* CommandLine::add_poolsim_verb(CLI::App& noun,
                                        const char* name,
                                        const char* help,
                                        int (*run)(const Context&, const PoolsimRequest&)) {
    CLI::App* verb = add(
        noun, name, help, [this, run](const Context& context) { return run(context, poolsim_); });
    takes_choice(verb->add_option(
                     "--profile",
                     poolsim_.profile,
                     "Model: default is the current pool; compat and compat-s are older models"),
                 {"default", "compat", "compat-s"});
    verb->add_option(
            "--set",
            poolsim_.set,
            "Value that replaces the file's: KEY=VALUE, services[*].jitter=30s; repeatable")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    hints_[verb->add_option(
                   "files", poolsim_.files, "Scenario files, or names of built-in scenarios")
               ->required()]
        .takes = Takes::file;
    verb->add_flag("--strict", poolsim_.strict, "Errors for what an older model would ignore");
    return verb;
}

void CommandLine::add_poolsim_seeds(CLI::App& verb) {
    verb.add_option(
        "--seed,--seeds", poolsim_.seeds, "Seed or range of seeds (1..200); default is the file's");
    verb.add_option("--jobs", poolsim_.jobs, "Number of threads; 0 is one per core")
        ->check([](const std::string& text) {
            unsigned jobs = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), jobs);
            const bool fine = error == std::errc{} && end == text.data() + text.size() &&
                              jobs <= sim::threads_max;
            return fine ? std::string()
                        : fmt::format("must be a number from 0 to {}", sim::threads_max);
        })
        ->capture_default_str();
    verb.add_option("--confidence",
                    poolsim_.confidence,
                    "Share of runs in which the assertions must hold, 0 to 1")
        ->check([](const std::string& text) {
            double share = -1;
            (void)std::from_chars(text.data(), text.data() + text.size(), share);
            const bool fine = share >= 0 && share <= 1;  // False for NaN.
            return fine ? std::string() : "must be a number from 0 to 1";
        })
        ->capture_default_str();
    verb.add_option("--assert", poolsim_.assertion, "Name of the only assertion that counts");
}

void CommandLine::add_poolsim_plot(CLI::App& verb) {
    hints_[verb.add_option("--plot", poolsim_.plot, "HTML file for the charts")].takes =
        Takes::file;
}

void CommandLine::add_poolsim_run(CLI::App& noun) {
    const auto add_options = [this](CLI::App& run) {
        add_poolsim_seeds(run);
        hints_[run.add_option("--out", poolsim_.csv, "CSV file for the samples")].takes =
            Takes::file;
        run.add_flag("--wide", poolsim_.wide, "CSV with one row per sample for all services");
        hints_[run.add_option("--junit", poolsim_.junit, "JUnit XML file for the verdict")].takes =
            Takes::file;
        add_poolsim_plot(run);
        run.add_option("--trace", poolsim_.traced, "Service whose events are printed");
        run.add_option("--explain",
                       poolsim_.explain,
                       "Moment (617s) at which to explain why connections are missing");
    };
    add_options(*add_poolsim_verb(
        noun, "run", "Simulate scenarios and check their assertions.", &poolsim_run));

    // The same with the flags of the older program, see without_old_poolsim_flags.
    CLI::App* old = add_poolsim_verb(noun, "old", "", &poolsim_run_as_before);
    old->group("");
    add_options(*old);
    old->get_option("files")->required(false);
    old->add_option("--old-config", poolsim_.old_files);
    old->add_option("--old-cpuprofile", poolsim_.cpu_profile);
}

void CommandLine::add_poolsim_many(CLI::App& noun) {
    const auto many = [](CLI::Option* option) {
        option->expected(1)->allow_extra_args(false)->multi_option_policy(
            CLI::MultiOptionPolicy::TakeAll);
    };
    CLI::App* sweep =
        add_poolsim_verb(noun, "sweep", "Simulate every combination of values.", &poolsim_sweep);
    add_poolsim_seeds(*sweep);
    many(sweep->add_option(
        "--sweep",
        poolsim_.sweeps,
        "Values of a key: KEY=20,50, KEY=0.1..0.9/0.2 or KEY=0s..10m/30s; repeatable"));
    sweep->add_option("--bisect",
                      poolsim_.bisect,
                      "Key whose largest value that holds is searched: KEY or KEY=LOW..HIGH");
    add_poolsim_plot(*sweep);
    CLI::App* compare = add_poolsim_verb(
        noun, "compare", "Compare two scenarios, or one with changed values.", &poolsim_compare);
    add_poolsim_seeds(*compare);
    many(compare->add_option(
        "--what-if",
        poolsim_.what_if,
        "Changed value: burst=0, rate=200, ceiling=20000 or any KEY=VALUE; repeatable"));
}

}  // namespace holdfast::app

#include "poolsim/access.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sim/keys.hpp>
#include <holdfast/sim/plan.hpp>

namespace holdfast::app {
namespace {

sim::Override parse_override(const std::string& pair) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
        throw InvalidArgument(fmt::format("expected KEY=VALUE, not '{}'", pair));
    }
    return {pair.substr(0, equals), pair.substr(equals + 1)};
}

// A misspelt assertion would always hold.
void check_assertion(const PoolsimRequest& request, const sim::Scenario& scenario) {
    const std::vector<std::string> names = sim::assertion_names(scenario);
    if (!request.assertion.empty() && std::ranges::find(names, request.assertion) == names.end()) {
        throw InvalidArgument(fmt::format("{} has no assertion '{}'; it has: {}",
                                          scenario.name,
                                          request.assertion,
                                          fmt::join(names, ", ")));
    }
}

[[noreturn]] void refuse_output(const std::string& path, const std::string& why) {
    throw InvalidArgument(fmt::format("cannot write '{}': {}", path, why));
}

// Only for plain files: /dev/null may be named more than once.
bool same_file(const std::string& a, const std::string& b) {
    namespace fs = std::filesystem;
    std::error_code unknown;
    if (fs::exists(a, unknown)) {
        return fs::is_regular_file(a, unknown) && fs::equivalent(a, b, unknown);
    }
    return fs::weakly_canonical(fs::absolute(a, unknown), unknown) ==
           fs::weakly_canonical(fs::absolute(b, unknown), unknown);
}

void require_place(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code unknown;
    if (!folder.empty() && !std::filesystem::is_directory(folder, unknown)) {
        refuse_output(path,
                      fmt::format("there is no folder '{}'; create it first", folder.string()));
    }
    if (std::filesystem::is_directory(path, unknown)) {
        refuse_output(path, "it is a folder; name a file in it");
    }
    // A pipe must not be opened twice: its reader would take the first end for the last.
    const bool there = std::filesystem::exists(path, unknown);
    if (!there && std::filesystem::is_symlink(path, unknown)) {
        return;  // A test write would create the link's target and remove the link.
    }
    const bool fine = there ? ::access(path.c_str(), W_OK) == 0
                            : static_cast<bool>(std::ofstream(path, std::ios::app));
    if (!fine) {
        refuse_output(path, std::generic_category().message(errno) + "; choose another file");
    }
    if (!there) {
        std::filesystem::remove(path, unknown);
    }
}

}  // namespace

void Heartbeat::show(std::string_view text) {
    if (progress_.live()) {
        return progress_.show(text);
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ >= pause) {
        last_ = now;
        progress_.note(text);
    }
}

void require_writable(const PoolsimRequest& request) {
    std::vector<std::string> others = request.files;
    for (const std::string& path : {request.csv, request.junit, request.plot}) {
        if (path.empty()) {
            continue;
        }
        require_place(path);
        if (std::ranges::any_of(others, [&](const auto& one) { return same_file(path, one); })) {
            refuse_output(path, "it is named twice on the command line; choose another name");
        }
        others.push_back(path);
    }
}

void write_text_file(const std::string& path, const std::string& text) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text;
    if (!out.flush()) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    fmt::format("cannot write '{}'; check whether its disk is full", path));
    }
}

sim::Scenario load_scenario(const Context& context,
                            const PoolsimRequest& request,
                            const std::string& file,
                            const std::vector<sim::Override>& more) {
    sim::LoadOptions options;
    options.strict = request.strict;
    if (!request.profile.empty()) {
        options.profile = sim::parse_profile(request.profile);
    }
    for (const std::string& pair : request.set) {
        options.overrides.push_back(parse_override(pair));
    }
    options.overrides.insert(options.overrides.end(), more.begin(), more.end());
    sim::Loaded loaded = sim::load_scenario(file, options);
    check_assertion(request, loaded.scenario);
    if (context.quiet) {
        return std::move(loaded.scenario);
    }
    for (const std::string& warning : loaded.warnings) {
        fmt::print(stderr, "holdfast: {}\n", warning);
    }
    for (const sim::PlanLine& line : sim::plan_of(loaded.scenario)) {
        if (!line.trouble.empty()) {
            fmt::print(stderr,
                       "holdfast: {}: {} is {}: {}\n",
                       file,
                       line.name,
                       short_number(line.value),
                       line.trouble);
        }
    }
    return std::move(loaded.scenario);
}

void require_one_file(const PoolsimRequest& request) {
    if (request.files.size() != 1) {
        throw InvalidArgument("this command takes one scenario; name one file");
    }
}

Context quietly(Context context) {
    context.quiet = true;
    return context;
}

std::vector<std::uint64_t> seeds_of(const PoolsimRequest& request, const sim::Scenario& scenario) {
    return request.seeds.empty() ? std::vector{scenario.seed} : sim::parse_seeds(request.seeds);
}

std::vector<sim::Outcome> run_jobs(const Context& context,
                                   const PoolsimRequest& request,
                                   const std::vector<sim::Job>& jobs) {
    Heartbeat progress{context.quiet};
    const auto show = [&](std::size_t done) {
        progress.show(fmt::format("{} of {} runs", done, jobs.size()));
    };
    std::vector<sim::Outcome> outcomes =
        sim::run_batch(jobs, {.threads = request.jobs, .stop = context.stop, .progress = show});
    for (sim::Outcome& outcome : outcomes) {
        keep_asserted(request, outcome.violations);
    }
    return outcomes;
}

void keep_asserted(const PoolsimRequest& request, std::vector<sim::Violation>& violations) {
    if (!request.assertion.empty()) {
        std::erase_if(violations, [&](const sim::Violation& violation) {
            return violation.assertion != request.assertion;
        });
    }
}

Error stopped(std::size_t done, std::size_t of, const char* what) {
    return {Code::cancelled,
            Outcome::not_applied,
            fmt::format("stopped after {} of {} {}; {}, and there is no verdict",
                        done,
                        of,
                        what,
                        done == 0 ? "nothing is shown" : "only those are shown")};
}

std::size_t passing(const std::vector<sim::Outcome>& outcomes) {
    return static_cast<std::size_t>(std::ranges::count_if(outcomes, &sim::Outcome::passed));
}

bool enough(const PoolsimRequest& request, std::size_t passed, std::size_t of) {
    // The quotient is rounded as the number on the command line was; a product would not be.
    return static_cast<double>(passed) / static_cast<double>(of) >= request.confidence;
}

Json to_json(const sim::Violation& violation) {
    return {{"assertion", violation.assertion},
            {"service", violation.service},
            {"at_ms", violation.at / std::chrono::milliseconds{1}},
            {"value", violation.value ? Json(*violation.value) : Json(nullptr)},
            {"limit", violation.limit},
            {"unit", violation.unit},
            {"scope", violation.fleet ? "fleet" : "service"},
            {"what", violation.what}};
}

Json to_json(const std::vector<sim::Spread>& spreads) {
    Json all = Json::object();
    for (const sim::Spread& spread : spreads) {
        all[spread.name] = {{"mean", spread.mean},
                            {"deviation", spread.deviation},
                            {"p5", spread.p5},
                            {"p50", spread.p50},
                            {"p95", spread.p95},
                            {"p99", spread.p99},
                            {"worst", spread.worst},
                            {"worst_seed", spread.worst_seed}};
    }
    return all;
}

std::string short_number(double value) {
    const bool whole = std::abs(value - std::round(value)) < 1e-9 && std::abs(value) < 1e15;
    if (whole) {
        return fmt::format("{:.0f}", value);
    }
    return std::abs(value) >= 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.3g}", value);
}

}  // namespace holdfast::app

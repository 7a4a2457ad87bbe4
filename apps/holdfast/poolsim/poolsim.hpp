// holdfast poolsim: simulates whether a fleet fills, stays full and recovers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command.hpp"

namespace holdfast::app {

struct PoolsimRequest {
    std::vector<std::string> files;  // Or names of built-in scenarios.
    std::string profile;             // Empty: the file's own.
    std::vector<std::string> set;    // KEY=VALUE
    std::string seeds;               // N, or A..B; empty: the file's own.
    unsigned jobs = 0;               // Threads; 0: all cores.
    double confidence = 1;           // The share of runs that must hold.
    std::string csv;                 // Where to write what; empty: nowhere.
    bool wide = false;               // A row per sample, not per service and sample.
    std::string junit;
    std::string plot;
    std::string traced;   // The service whose events are printed.
    std::string explain;  // The moment that is explained.
    bool strict = false;
    std::vector<std::string> old_files;  // Of -config, a flag of the older program;
    std::string cpu_profile;             // and of -cpuprofile: nothing is written.

    std::vector<std::string> sweeps;  // KEY=VALUES
    std::string assertion;            // Only this one counts; empty: all.
    std::string bisect;               // KEY=LOW..HIGH, or KEY
    std::vector<std::string> what_if;
};

int poolsim_run(const Context& context, const PoolsimRequest& request);
// Called as the older program was: the profile is compat, and a scenario need not be named.
int poolsim_run_as_before(const Context& context, const PoolsimRequest& request);
int poolsim_sweep(const Context& context, const PoolsimRequest& request);
int poolsim_compare(const Context& context, const PoolsimRequest& request);
int poolsim_plan(const Context& context, const PoolsimRequest& request);
int poolsim_check(const Context& context, const PoolsimRequest& request);
int poolsim_schema(const Context& context, const PoolsimRequest& request);
int poolsim_list(const Context& context, const PoolsimRequest& request);

// The flags of the older program, with their single dash, as ours: `poolsim -config FILE` and
// `poolsim run -config FILE` become `poolsim old --old-config FILE`. Other command lines are left
// as they are.
[[nodiscard]] std::vector<std::string> without_old_poolsim_flags(std::vector<std::string> words);
// The reverse, for messages.
[[nodiscard]] std::string with_old_poolsim_flags(std::string text);

}  // namespace holdfast::app

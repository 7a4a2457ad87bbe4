// What the verbs of poolsim share: reading scenarios, running many, writing files.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "command.hpp"
#include "poolsim/poolsim.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/sim/batch.hpp>
#include <holdfast/sim/figures.hpp>
#include <holdfast/sim/scenario.hpp>
#include <holdfast/sim/sweep.hpp>

namespace holdfast::app {

// Of the JSON; grows when a program that reads it would have to change.
inline constexpr int poolsim_schema_version = 1;

// Progress of a long command: always on a terminal, elsewhere a line now and then, for the log.
// From one thread at a time.
class Heartbeat {
public:
    explicit Heartbeat(bool quiet) : progress_(quiet) {}
    void show(std::string_view text);
    void clear() { progress_.clear(); }

private:
    static constexpr std::chrono::seconds pause{10};

    Progress progress_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Invalid_argument if a file that is to be written cannot be, or is another one of them or a
// scenario: better before a long run than after it.
void require_writable(const PoolsimRequest& request);

// Unavailable if it cannot be written.
void write_text_file(const std::string& path, const std::string& text);

// Prints warnings on standard error: ignored keys, and scenarios that cannot work.
[[nodiscard]] sim::Scenario load_scenario(const Context& context,
                                          const PoolsimRequest& request,
                                          const std::string& file,
                                          const std::vector<sim::Override>& more = {});

// Invalid_argument unless there is one.
void require_one_file(const PoolsimRequest& request);

// The same, without progress and warnings.
[[nodiscard]] Context quietly(Context context);

[[nodiscard]] std::vector<std::uint64_t> seeds_of(const PoolsimRequest& request,
                                                  const sim::Scenario& scenario);

// On all cores, with a line of progress. Only violations of request.assertion are left, if it is
// set. After a stop request some are not finished. Requires: the scenarios outlive the call.
[[nodiscard]] std::vector<sim::Outcome> run_jobs(const Context& context,
                                                 const PoolsimRequest& request,
                                                 const std::vector<sim::Job>& jobs);

// Only a part was done; reports which.
[[nodiscard]] Error stopped(std::size_t done, std::size_t of, const char* what);

// Leaves those that count.
void keep_asserted(const PoolsimRequest& request, std::vector<sim::Violation>& violations);

// How many of them hold.
[[nodiscard]] std::size_t passing(const std::vector<sim::Outcome>& outcomes);
// Whether so many are enough.
[[nodiscard]] bool enough(const PoolsimRequest& request, std::size_t passed, std::size_t of);

[[nodiscard]] Json to_json(const sim::Violation& violation);
[[nodiscard]] Json to_json(const std::vector<sim::Spread>& spreads);
// A number as people read it: few digits, no exponent for what is of everyday size.
[[nodiscard]] std::string short_number(double value);

}  // namespace holdfast::app

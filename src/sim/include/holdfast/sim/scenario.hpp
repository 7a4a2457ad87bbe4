// What is simulated: a fleet of processes, the limits they share, and what befalls them.
//
// A scenario is read from YAML or JSON. The profile says by which rules: `standard` runs the pool
// that ships, `compat_r` and `compat_s` two older models, exactly and with their oddities, so that
// figures published for them can be compared.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

// Since the start of the simulation.
using Time = std::chrono::nanoseconds;

enum class Profile {
    standard,  // "default": the production pool machine under a simulated clock.
    compat_r,  // "compat": a reservoir with a refiller and an expiry scanner.
    compat_s,  // "compat-s": a warm-up and a keeper.
};

[[nodiscard]] std::string_view to_string(Profile profile) noexcept;
// Requires: "default", "compat" or "compat-s". Else invalid_argument.
[[nodiscard]] Profile parse_profile(std::string_view text);

// Work that borrows connections.
struct Workload {
    bool enabled = false;
    int in_use_max = 0;
    Time hold = std::chrono::milliseconds{10};
    Time hold_jitter{};
    Time every = std::chrono::milliseconds{200};
    int burst = 5;
    Time wait_max = std::chrono::seconds{10};
};

// One process and its pool.
struct Service {
    std::string name;
    int target = 50;
    Time guard = std::chrono::seconds{45};
    Time life = std::chrono::minutes{11};
    Time life_jitter = std::chrono::minutes{2};
    Time start_delay{};
    Workload workload{};

    // Of the older model with a keeper.
    int open_max = 0;
    Time stagger{};
    Time keeper_tick = std::chrono::seconds{1};
    int opens_per_tick = 1;
};

enum class FaultKind { cold_start, rolling_restart, mass_drop };

struct Fault {
    FaultKind kind = FaultKind::cold_start;
    Time at = std::chrono::minutes{5};
    Time every = std::chrono::seconds{60};
    double fraction = 0.3;
};

struct Scenario {
    std::string name{};  // As people know it: the file, or the shipped scenario.
    Profile profile = Profile::standard;
    std::uint64_t seed = 42;
    std::string endpoint = "cluster.dsql.eu-west-1.on.aws";
    Time duration = std::chrono::minutes{20};
    Time sample_every = std::chrono::seconds{1};
    int limit_per_second = 100;
    Time idle_check = std::chrono::seconds{1};  // Of compat_r: how often a full reservoir looks.

    // The assertions of the older models. Negative: not asserted.
    int opens_per_second_max = 100;
    Time converge_within = std::chrono::seconds{60};
    Time stable_for = std::chrono::seconds{5};
    int closures_per_second_max = 200;
    bool zero_empty = false;

    std::vector<Service> services{};
    std::vector<Fault> faults{};
};

// Puts another value in the place of a key before the file is understood:
// "services[*].jitter" = "30s".
struct Override {
    std::string key;
    std::string value;
};

struct LoadOptions {
    std::optional<Profile> profile{};  // Else the file's own, else standard.
    bool strict = false;  // Refuses what the older models overlook: unknown keys and dead ones.
    std::vector<Override> overrides{};
};

struct Loaded {
    Scenario scenario;
    std::vector<std::string> warnings;  // What was overlooked or means something else, with places.
};

// A file, or the name of a shipped scenario. A file of that name wins. Not_found if neither is
// there; invalid_argument, with file, line and key, for what cannot be simulated.
[[nodiscard]] Loaded load_scenario(const std::string& path, const LoadOptions& options = {});

// The same from text. `name` is for messages; `read` gives the text of an included file.
[[nodiscard]] Loaded parse_scenario(
    const std::string& name,
    const std::string& text,
    const LoadOptions& options = {},
    const std::function<std::string(const std::string& path)>& read = {});

}  // namespace holdfast::sim

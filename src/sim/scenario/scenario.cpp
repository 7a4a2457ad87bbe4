#include <holdfast/sim/scenario.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

#include "scenario/document.hpp"
#include "scenario/fields.hpp"
#include "scenario/scenario_standard.hpp"
#include "scenario/templates.hpp"
#include <fmt/core.h>

#include <holdfast/base/config.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/pool/config.hpp>
#include <holdfast/sim/keys.hpp>
#include <holdfast/sim/shipped.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::minutes;

constexpr Time duration_max = std::chrono::hours{24 * 366};
constexpr Time::rep samples_max = 10'000'000;

Profile profile_of(const Node& root, const LoadOptions& options) {
    std::string text{to_string(Profile::standard)};
    Fields top(root, "", {});
    top.read("profile", text);
    try {
        return options.profile.value_or(parse_profile(text));
    } catch (const InvalidArgument& bad) {
        top.refuse("profile", bad.what());
    }
}

class Loader {
public:
    Loader(Node root,
           const LoadOptions& options,
           std::string name,
           std::vector<ScenarioKey>* keys = nullptr)
        : root_(std::move(root)), options_(options), keys_(keys) {
        loaded_.scenario.name = std::move(name);
    }

    Loaded load() {
        Scenario& scenario = loaded_.scenario;
        scenario.profile = profile_of(root_, options_);
        const bool compat = scenario.profile != Profile::standard;
        rules_ = {.zero_is_unset = compat,
                  .refuse_unknown = !compat || options_.strict,
                  .bare_durations = compat,
                  .warnings = &loaded_.warnings,
                  .keys = keys_};
        Fields top(root_, "", rules_);
        (void)top.below("profile");
        read_top(top);
        read_services(top.below("services"));
        require_few_samples(top);
        read_fault(top.below("scenario"));
        if (!compat) {
            read_standard(top, scenario);
        }
        top.finish();
        return std::move(loaded_);
    }

private:
    void read_top(Fields& top) {
        Scenario& scenario = loaded_.scenario;
        top.read("seed", scenario.seed);
        top.read("endpoint", scenario.endpoint);
        top.read("duration", scenario.duration);
        top.require(scenario.duration > Time{0} && scenario.duration <= duration_max,
                    "duration",
                    "give more than 0 and at most 366d");
        top.read("sampleEvery", scenario.sample_every);
        top.require(scenario.sample_every > Time{0}, "sampleEvery", "give more than 0");
        top.read("limiterPerSec", scenario.limit_per_second);
        top.require(scenario.limit_per_second > 0, "limiterPerSec", "give more than 0");
        scenario.opens_per_second_max = scenario.limit_per_second;
        top.read("assertMaxConnectsPerSec", scenario.opens_per_second_max);
        top.read("assertConvergeWithin", scenario.converge_within);
        top.read("assertStableFor", scenario.stable_for);
        if (scenario.profile == Profile::compat_s) {
            top.dead("assertZeroEmptyEvents", "this model does not use it");
        } else {
            top.read("assertZeroEmptyEvents", scenario.zero_empty);
        }
        if (scenario.profile == Profile::compat_r) {
            top.read("idleCheck", scenario.idle_check);
            top.require(scenario.idle_check >= tick_min, "idleCheck", "give 1ms or more");
            top.dead("assertMaxClosurePerSec", "this model does not use it");
        } else {
            top.read("assertMaxClosurePerSec", scenario.closures_per_second_max);
        }
    }

    // All are kept until the end.
    void require_few_samples(const Fields& top) const {
        const Scenario& scenario = loaded_.scenario;
        const auto rows = scenario.duration / scenario.sample_every *
                          static_cast<Time::rep>(scenario.services.size());
        top.require(rows <= samples_max,
                    "sampleEvery",
                    fmt::format("{} services would be sampled {} times, {} are allowed; choose a "
                                "longer one",
                                scenario.services.size(),
                                rows,
                                samples_max));
        top.require(
            scenario.profile != Profile::standard || scenario.sample_every <= scenario.duration,
            "sampleEvery",
            "longer than duration: nothing would be seen");
    }

    // What the product's reservoir is told when its configuration says nothing.
    static Service shipped() {
        Service service;
        const pool::Config config = pool::reservoir(service.target);
        service.guard = std::chrono::duration_cast<Time>(config.guard);
        service.life = std::chrono::duration_cast<Time>(config.life);
        service.life_jitter = std::chrono::duration_cast<Time>(config.life_jitter);
        service.in_flight = config.limits.opening_max;
        service.probe_every = std::chrono::duration_cast<Time>(config.look_every);
        return service;
    }

    void read_services(const Node& list) {
        const Scenario& scenario = loaded_.scenario;
        if (list.kind != Node::Kind::list || list.items.empty()) {
            throw InvalidArgument(fmt::format("{}: services: list at least one, with its name",
                                              list.place.empty() ? root_.place : list.place));
        }
        if (list.items.size() > services_max) {
            throw InvalidArgument(
                fmt::format("{}: services: at most {}", list.place, services_max));
        }
        std::set<std::string> names;
        for (std::size_t i = 0; i < list.items.size(); ++i) {
            Fields fields(list.items[i], fmt::format("services[{}]", i), rules_);
            Service service = scenario.profile == Profile::standard ? shipped() : Service{};
            fields.read("name", service.name);
            fields.require(!service.name.empty(), "name", "a service needs a name");
            fields.require(std::ranges::none_of(
                               service.name, [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
                           "name",
                           "it has a character that cannot be printed");
            fields.require(scenario.profile != Profile::standard ||
                               service.name.find('/') == std::string::npos,
                           "name",
                           "a / stands between a process and its pool");
            fields.require(names.insert(service.name).second,
                           "name",
                           fmt::format("there are two services '{}'", service.name));
            fields.read("startDelay", service.start_delay);
            fields.require(
                service.start_delay >= Time{0}, "startDelay", "a duration is not negative");
            if (service.start_delay > scenario.duration) {
                fields.warn("startDelay", "after the end, so it never starts");
            }
            if (scenario.profile == Profile::compat_s) {
                read_keeper(fields, service);
            } else {
                read_reservoir(fields, service);
            }
            int pools = 1;
            if (scenario.profile == Profile::standard) {
                read_standard_service(fields, service);
                pools = read_pools(fields, services_max - scenario.services.size());
            } else if (fields.has("pools")) {
                fields.refuse("pools", "the older models have one; use --profile default");
            }
            fields.finish();
            add_pools(service, pools);
        }
    }

    // Each is a row of its own, and so wants a name of its own.
    void add_pools(Service service, int pools) {
        service.process = service.name;
        for (int i = 1; i <= pools; ++i) {
            if (pools > 1) {
                service.name = fmt::format("{}/{}", service.process, i);
            }
            loaded_.scenario.services.push_back(service);
        }
    }

    static void read_target(Fields& fields, const char* key, Service& service) {
        fields.read(key, service.target);
        fields.require(service.target > 0, key, "give more than 0");
        fields.require(service.target <= pool::target_max,
                       key,
                       fmt::format("give at most {}", pool::target_max));
    }

    void read_reservoir(Fields& fields, Service& service) {
        if (fields.has("targetOpen") && !fields.has("targetReady")) {
            fields.refuse("targetOpen",
                          "this is a file of the older model; use --profile compat-s");
        }
        read_target(fields, "targetReady", service);
        fields.read("guardWindow", service.guard);
        fields.read("baseLifetime", service.life);
        fields.require(service.life > Time{0}, "baseLifetime", "give more than 0");
        fields.require(
            service.guard < service.life, "guardWindow", "must be shorter than baseLifetime");
        fields.read("jitter", service.life_jitter);
        Fields work(fields.below("workload"), fields.path_of("workload"), rules_);
        read_workload(work, service.workload, {});
        if (loaded_.scenario.profile == Profile::standard) {
            read_standard_work(work, service.workload);
        }
        work.finish();
    }

    void read_keeper(Fields& fields, Service& service) {
        if (fields.has("targetReady") && !fields.has("targetOpen")) {
            fields.refuse("targetReady",
                          "the model with a keeper does not have it; use --profile compat");
        }
        service.target = 0;
        read_target(fields, "targetOpen", service);
        service.open_max = service.target;
        fields.read("maxOpen", service.open_max);
        fields.require(service.open_max >= service.target, "maxOpen", "less than targetOpen");
        service.life = minutes{10};
        fields.read("maxConnLifetime", service.life);
        fields.require(service.life > Time{0}, "maxConnLifetime", "give more than 0");
        service.stagger = stagger_for(service.target);
        fields.read("warmupStagger", service.stagger);
        service.stagger = std::max(service.stagger, Time{0});
        fields.require(
            service.stagger <= std::chrono::hours{24}, "warmupStagger", "give at most 1d");
        fields.read("keeperTick", service.keeper_tick);
        fields.require(service.keeper_tick >= tick_min, "keeperTick", "give 1ms or more");
        service.opens_per_tick = std::clamp((service.target + 119) / 120, 1, 10);
        fields.read("maxConnsPerTick", service.opens_per_tick);
        // That generation knows these keys in lower case only, so work that is written as usual is
        // never started.
        Fields work(fields.below("workload"), fields.path_of("workload"), rules_);
        read_workload(work, service.workload, [](std::string key) {
            std::ranges::transform(key, key.begin(), [](char c) {
                return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
            });
            return key;
        });
        work.finish();
    }

    static Time stagger_for(int target) {
        if (target <= 100) {
            return Time{0};
        }
        return target <= 500 ? minutes{2} : minutes{std::max(3, target / 50 / 60 + 1)};
    }

    void read_workload(Fields& fields,
                       Workload& work,
                       const std::function<std::string(std::string)>& spelling) {
        const auto key = [&](const char* name) { return spelling ? spelling(name) : name; };
        fields.read("enabled", work.enabled);
        fields.read(key("maxInUse"), work.in_use_max);
        fields.read(key("holdTime"), work.hold);
        fields.require(work.hold >= Time{0}, key("holdTime"), "a duration is not negative");
        fields.read(key("holdJitter"), work.hold_jitter);
        fields.read(key("spawnEvery"), work.every);
        fields.require(work.every >= tick_min, key("spawnEvery"), "give 1ms or more");
        fields.read(key("arrivalBurst"), work.burst);
        if (loaded_.scenario.profile == Profile::compat_r) {
            fields.dead("maxWait", "this model never waits");
        } else {
            fields.read(key("maxWait"), work.wait_max);
        }
    }

    void read_fault(const Node& node) {
        Fields fields(node, "scenario", rules_);
        std::string kind = "cold_start";
        const std::string kinds = "cold_start, rolling_restart, mass_drop";
        fields.read("kind", kind, kinds);
        Fault fault;
        if (kind == "rolling_restart") {
            fault.kind = FaultKind::rolling_restart;
        } else if (kind == "mass_drop") {
            fault.kind = FaultKind::mass_drop;
        } else {
            fields.require(kind == "cold_start", "kind", "choose from " + kinds);
        }
        fields.read("rollEvery", fault.every);
        fields.require(fault.every >= tick_min, "rollEvery", "give 1ms or more");
        fields.read("dropAt", fault.at);
        fields.require(fault.at >= Time{0}, "dropAt", "a duration is not negative");
        double fraction = fault.fraction;
        fields.read("dropFraction", fraction);
        const bool fits = fraction > 0 && fraction <= 1;
        fields.require(fits || rules_.zero_is_unset, "dropFraction", "give more than 0, at most 1");
        fault.fraction = fits ? fraction : fault.fraction;
        fields.finish();
        loaded_.scenario.faults.push_back(fault);
    }

    Node root_;
    const LoadOptions& options_;
    std::vector<ScenarioKey>* keys_;
    ReadingRules rules_;
    Loaded loaded_;
};

// A default that every service overrides would be moved in vain, and a sweep or a search along it
// would find what is not there.
void require_heard(const Node& root, const std::string& key) {
    constexpr std::string_view defaults = "defaults.";
    const Node* services = root.find("services");
    if (!key.starts_with(defaults) || services == nullptr || services->items.empty()) {
        return;
    }
    const std::string name = key.substr(defaults.size());
    if (std::ranges::all_of(services->items,
                            [&](const Node& one) { return one.find(name) != nullptr; })) {
        throw InvalidArgument(fmt::format(
            "the key '{}' changes nothing, as every service sets its own; write services[*].{}",
            key,
            name));
    }
}

// "jitter" is said of services, as nothing else has one.
std::string whole_key(const std::string& key, Profile profile) {
    const std::vector<ScenarioKey> keys = scenario_keys(profile);
    const auto known = [&](const std::string& path) {
        return std::ranges::find(keys, path, &ScenarioKey::path) != keys.end();
    };
    return !known(key) && known("services[0]." + key) ? "services[*]." + key : key;
}

// A part of a file would be another scenario.
std::string read_whole(const std::string& path) {
    std::string text = read_config_file(path).yaml;
    if (text.size() > config_bytes_max) {
        throw InvalidArgument(fmt::format("{}: longer than {} bytes", path, config_bytes_max));
    }
    return text;
}

}  // namespace

std::string_view to_string(Profile profile) noexcept {
    switch (profile) {
        case Profile::standard:
            return "default";
        case Profile::compat_r:
            return "compat";
        case Profile::compat_s:
            return "compat-s";
    }
    return "default";
}

Profile parse_profile(std::string_view text) {
    for (const Profile profile : {Profile::standard, Profile::compat_r, Profile::compat_s}) {
        if (text == to_string(profile)) {
            return profile;
        }
    }
    throw InvalidArgument(
        fmt::format("there is no profile '{}'; choose from default, compat, compat-s", text));
}

Loaded parse_scenario(const std::string& name,
                      const std::string& text,
                      const LoadOptions& options,
                      const std::function<std::string(const std::string&)>& read) {
    Node root = parse_document(name, text);
    if (root.kind != Node::Kind::map) {
        throw InvalidArgument(
            fmt::format("{}: services: a scenario holds keys, this one among them",
                        root.place.empty() ? name + ":1:1" : root.place));
    }
    include_files(root, name, read);
    load_traces(root, name, read);
    for (const Override& other : options.overrides) {
        require_heard(root, other.key);
        set_value(root,
                  whole_key(other.key, profile_of(root, options)),
                  other.value,
                  fmt::format("{} {}", other.option, other.key));
    }
    expand_services(root);
    return Loader(std::move(root), options, name).load();
}

std::vector<std::string> assertion_names(const Scenario& scenario) {
    if (scenario.profile != Profile::standard) {
        return {"assertMaxConnectsPerSec",
                "assertConvergeWithin",
                "assertStableFor",
                scenario.profile == Profile::compat_s ? "assertMaxClosurePerSec"
                                                      : "assertZeroEmptyEvents"};
    }
    std::vector<std::string> names;
    names.reserve(scenario.assertions.size());
    for (const Assertion& assertion : scenario.assertions) {
        names.emplace_back(assertion.name.empty() ? to_string(assertion.kind) : assertion.name);
    }
    return names;
}

std::vector<ScenarioKey> scenario_keys(Profile profile) {
    // One of everything, so that all are asked for.
    Node root = parse_document("keys",
                               profile == Profile::compat_s ? "services: [{name: a, targetOpen: 1}]"
                               : profile == Profile::compat_r
                                   ? "services: [{name: a}]"
                                   : "faults: [{kind: cold_start}]\n"
                                     "assertions: [{kind: noLeak}]\n"
                                     "services: [{name: a, workload: {trace: [{at: 0s}]}}]");
    std::vector<ScenarioKey> keys;
    const LoadOptions options{.profile = profile};
    (void)Loader(std::move(root), options, "keys", &keys).load();
    return keys;
}

Loaded load_scenario(const std::string& path, const LoadOptions& options) {
    // A folder of that name does not hide a built-in scenario.
    if (!std::filesystem::exists(path) || std::filesystem::is_directory(path)) {
        const auto all = shipped_scenarios();
        const auto found = std::ranges::find(all, path, &Shipped::name);
        if (found == all.end()) {
            throw InvalidArgument(
                fmt::format("there is neither a file {} nor a built-in scenario of that name; see "
                            "`holdfast poolsim list`",
                            path));
        }
        return parse_scenario(path, std::string(found->yaml), options, read_whole);
    }
    return parse_scenario(path, read_whole(path), options, read_whole);
}

}  // namespace holdfast::sim

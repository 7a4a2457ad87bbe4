// What a scenario asserts, in its own words and in those of the older models.
#include "scenario/scenario_standard.hpp"
#include "scenario/scenario_words.hpp"

namespace holdfast::sim {
namespace {

constexpr std::array assertion_words{
    Word{"minOwnedFraction", AssertionKind::min_owned_fraction},
    Word{"recoverWithin", AssertionKind::recover_within},
    Word{"maxOpenRateSliding", AssertionKind::max_open_rate_sliding},
    Word{"maxServerRejects", AssertionKind::max_server_rejects},
    Word{"maxTotalConnections", AssertionKind::max_total_connections},
    Word{"maxWait", AssertionKind::max_wait},
    Word{"maxEmptyRate", AssertionKind::max_empty_rate},
    Word{"maxDiscardFullFraction", AssertionKind::max_discard_full_fraction},
    Word{"maxClosuresPerSec", AssertionKind::max_closures_per_sec},
    Word{"maxWastedOpens", AssertionKind::max_wasted_opens},
    Word{"noLeak", AssertionKind::no_leak},
    Word{"steadyOpenRate", AssertionKind::steady_open_rate},
    Word{"convergeWithin", AssertionKind::converge_within},
    Word{"stableFor", AssertionKind::stable_for},
    Word{"zeroEmpty", AssertionKind::zero_empty},
};

// What each kind looks at, besides its kind and its name.
constexpr std::array assertion_keys{
    Word{"after until value", AssertionKind::min_owned_fraction},
    Word{"within value fraction event", AssertionKind::recover_within},
    Word{"window value", AssertionKind::max_open_rate_sliding},
    Word{"value", AssertionKind::max_server_rejects},
    Word{"value", AssertionKind::max_total_connections},
    Word{"quantile within p50 p95 p99 max", AssertionKind::max_wait},
    Word{"window value", AssertionKind::max_empty_rate},
    Word{"value", AssertionKind::max_discard_full_fraction},
    Word{"value", AssertionKind::max_closures_per_sec},
    Word{"value", AssertionKind::max_wasted_opens},
    Word{"", AssertionKind::no_leak},
    Word{"after value max", AssertionKind::steady_open_rate},
    Word{"within", AssertionKind::converge_within},
    Word{"within", AssertionKind::stable_for},
    Word{"", AssertionKind::zero_empty},
};

// Most say nothing without a limit. Those that do have one of their own.
void require_limit(const Fields& fields, Assertion& assertion, int ceiling) {
    fields.require(assertion.value >= 0, "value", "give 0 or more");
    switch (assertion.kind) {
        case AssertionKind::recover_within:
        case AssertionKind::min_owned_fraction:
            return fields.require(assertion.value <= 1, "value", "a share: give 0 to 1");
        case AssertionKind::max_discard_full_fraction:
            return fields.require(
                fields.has("value") && assertion.value <= 1, "value", "a share: give 0 to 1");
        case AssertionKind::max_total_connections:
            assertion.value = fields.has("value") ? assertion.value : ceiling;
            return;
        case AssertionKind::converge_within:
        case AssertionKind::stable_for:
            return fields.require(fields.has("within"), "within", "say how long");
        case AssertionKind::max_open_rate_sliding:
        case AssertionKind::max_empty_rate:
        case AssertionKind::max_closures_per_sec:
            return fields.require(fields.has("value"), "value", "say how many");
        case AssertionKind::steady_open_rate:
            return fields.require(
                fields.has("value") || fields.has("max"), "value", "say how many");
        default:
            return;
    }
}

// Whether it is a time, as in "5s", and not a bare number.
bool is_duration(const Node& node) {
    return node.kind == Node::Kind::scalar &&
           node.scalar.find_first_of("dhmsun") != std::string::npos;
}

// How soon, as `within` or, beside a `fraction`, as `value`; and how much of the target.
void read_recovery(Fields& fields, Assertion& assertion) {
    assertion.value = 1;
    const bool soon = fields.has("value") && is_duration(fields.below("value"));
    fields.require(!soon || !fields.has("within"), "value", "within is set, too; keep one");
    fields.require(soon || !fields.has("value") || !fields.has("fraction"),
                   "fraction",
                   "value is a share already; keep one");
    if (soon) {
        fields.read("value", assertion.limit);
    } else {
        fields.read("value", assertion.value);
        fields.read("within", assertion.limit);
    }
    fields.read("fraction", assertion.value);
    fields.require(soon || fields.has("within"), "within", "say how soon");
    fields.require(assertion.value > 0 && assertion.value <= 1,
                   fields.has("fraction") ? "fraction" : "value",
                   "a share: give more than 0, at most 1");
}

// p50, p95, p99 and max, each of which is an assertion; or a quantile of one's own with `within`.
std::vector<Assertion> read_waits(Fields& fields, Assertion assertion) {
    constexpr std::array parts{std::pair{"p50", 0.5},
                               std::pair{"p95", 0.95},
                               std::pair{"p99", 0.99},
                               std::pair{"max", 1.0}};
    const std::string name =
        assertion.name.empty() ? std::string(to_string(assertion.kind)) : assertion.name;
    std::vector<Assertion> all;
    for (const auto& [key, part] : parts) {
        Assertion one = assertion;
        fields.read(key, one.limit);
        if (fields.has(key)) {
            one.quantile = part;
            one.name = fmt::format("{}.{}", name, key);
            all.push_back(one);
        }
    }
    fields.read("within", assertion.limit);
    fields.read("quantile", assertion.quantile);
    fields.require(assertion.quantile > 0 && assertion.quantile <= 1,
                   "quantile",
                   "give more than 0, at most 1");
    fields.require(fields.has("within") || (!all.empty() && !fields.has("quantile")),
                   "within",
                   "say how long, or give p50, p95, p99 or max");
    if (fields.has("within")) {
        all.push_back(assertion);
    }
    return all;
}

// What is never looked at holds always, which is not what was meant.
void warn_of_nothing(const Fields& fields, const Assertion& assertion, const Scenario& scenario) {
    if (assertion.after > scenario.duration) {
        fields.warn("after", "after the end, so it always holds");
    }
    const auto strikes = [&](const Fault& fault) {
        return fault.kind != FaultKind::cold_start && fault.at <= scenario.duration &&
               (!assertion.event || fault.kind == *assertion.event);
    };
    if (assertion.kind == AssertionKind::recover_within &&
        std::ranges::none_of(scenario.faults, strikes)) {
        fields.warn(assertion.event ? "event" : "kind",
                    "no such fault happens, so it always holds");
    }
}

std::vector<Assertion> read_assertion(Fields fields, const Scenario& scenario) {
    Assertion assertion;
    fields.require(fields.has("kind"), "kind", "say what is asserted");
    read_word(fields, "kind", assertion_words, assertion.kind);
    fields.read("name", assertion.name);
    std::string event;
    fields.read("event", event);  // Any, if it is missing.
    if (fields.has("event")) {
        read_word(fields, "event", fault_words, assertion.event.emplace());
    }
    fields.read("after", assertion.after);
    fields.read("until", assertion.until);
    fields.require(assertion.after <= assertion.until, "until", "give at least what after is");
    fields.read("window", assertion.window);
    fields.require(assertion.window > Time{0}, "window", "give more than 0");
    std::vector<Assertion> all;
    switch (assertion.kind) {
        case AssertionKind::max_wait:
            all = read_waits(fields, assertion);
            break;
        case AssertionKind::recover_within:
            read_recovery(fields, assertion);
            break;
        default:
            assertion.value = assertion.kind == AssertionKind::min_owned_fraction ? 1 : 0;
            fields.read("value", assertion.value);
            fields.require(!fields.has("value") || !fields.has("max"), "max", "value is set, too");
            if (fields.has("max")) {
                fields.read("max", assertion.value);
            }
            fields.read("within", assertion.limit);
            require_limit(fields, assertion, scenario.cluster.ceiling);
    }
    refuse_unheard(fields,
                   to_string(assertion.kind),
                   word_of(assertion_keys, assertion.kind),
                   {"event",
                    "after",
                    "until",
                    "value",
                    "within",
                    "window",
                    "quantile",
                    "fraction",
                    "p50",
                    "p95",
                    "p99",
                    "max"});
    warn_of_nothing(fields, assertion, scenario);
    fields.finish();
    return all.empty() ? std::vector{assertion} : all;
}

// What the older models assert, in the words of this one. Only the file's own wishes count.
void take_old_assertions(const Fields& top, Scenario& scenario) {
    if (scenario.opens_per_second_max >= 0 && top.has("assertMaxConnectsPerSec")) {
        scenario.assertions.push_back(
            {.kind = AssertionKind::max_open_rate_sliding,
             .name = "assertMaxConnectsPerSec",
             .value = static_cast<double>(scenario.opens_per_second_max)});
    }
    if (top.has("assertConvergeWithin")) {
        scenario.assertions.push_back({.kind = AssertionKind::converge_within,
                                       .name = "assertConvergeWithin",
                                       .limit = scenario.converge_within});
    }
    if (top.has("assertStableFor") && scenario.stable_for > Time{0}) {
        scenario.assertions.push_back({.kind = AssertionKind::stable_for,
                                       .name = "assertStableFor",
                                       .limit = scenario.stable_for});
    }
    if (scenario.closures_per_second_max >= 0 && top.has("assertMaxClosurePerSec")) {
        scenario.assertions.push_back(
            {.kind = AssertionKind::max_closures_per_sec,
             .name = "assertMaxClosurePerSec",
             .value = static_cast<double>(scenario.closures_per_second_max)});
    }
    if (scenario.zero_empty) {
        scenario.assertions.push_back(
            {.kind = AssertionKind::zero_empty, .name = "assertZeroEmptyEvents"});
    }
}

}  // namespace

std::string_view to_string(AssertionKind kind) noexcept {
    return word_of(assertion_words, kind);
}

void read_assertions(Fields& top, Scenario& scenario) {
    take_old_assertions(top, scenario);
    const int ceiling = scenario.cluster.ceiling;
    scenario.assertions.push_back(
        {.kind = AssertionKind::max_total_connections, .value = static_cast<double>(ceiling)});
    read_list(top, "assertions", [&](Fields one) {
        for (Assertion& assertion : read_assertion(std::move(one), scenario)) {
            scenario.assertions.push_back(std::move(assertion));
        }
    });
}

}  // namespace holdfast::sim

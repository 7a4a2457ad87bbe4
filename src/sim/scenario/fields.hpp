// Reads the fields of a map one by one, each with its rule, and knows at the end which of them were
// not read.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenario/document.hpp"

#include <holdfast/sim/keys.hpp>
#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

// Whatever is done over and over: more often than that nothing but the simulation gets slower.
inline constexpr Time tick_min = std::chrono::milliseconds{1};

// What to make of what the older models overlook.
struct ReadingRules {
    bool zero_is_unset = false;   // Zero means the default, with a warning.
    bool refuse_unknown = true;   // Else a warning.
    bool bare_durations = false;  // Whole numbers are nanoseconds.
    std::vector<std::string>* warnings = nullptr;
    std::vector<ScenarioKey>* keys = nullptr;  // Gets every key that is asked for.
};

class Fields {
public:
    // Requires: `map` outlives this. `path` names it in messages: "services[2].workload".
    // A null node is an empty map; anything else that is not a map is refused.
    Fields(const Node& map, std::string path, const ReadingRules& rules);

    // Each leaves `to`, the default, alone if the key is missing.
    void read(std::string_view key, std::string& to, const std::string& kind = "text");
    void read(std::string_view key, bool& to);
    void read(std::string_view key, int& to);
    void read(std::string_view key, std::uint64_t& to);
    void read(std::string_view key, double& to);
    void read(std::string_view key, Time& to);

    // The node below a key, which counts as asked for; a null node if it is missing.
    [[nodiscard]] const Node& below(std::string_view key);
    [[nodiscard]] bool has(std::string_view key) const { return map_.find(key) != nullptr; }
    [[nodiscard]] bool any() const noexcept { return !map_.fields.empty(); }
    [[nodiscard]] std::string path_of(std::string_view key) const;
    [[nodiscard]] const ReadingRules& rules() const noexcept { return rules_; }

    // Known, but without effect: a warning, or a refusal if the rules are strict.
    void dead(std::string_view key, std::string_view why);
    // Throws, or warns, about keys that were not read.
    void finish();

    // Invalid_argument with the place of the key, if it is there, and its path.
    [[noreturn]] void refuse(std::string_view key, const std::string& why) const;
    // refuse() unless it is so.
    void require(bool fine, std::string_view key, const std::string& why) const;
    // Once for each place: replicas share theirs.
    void warn(std::string_view key, const std::string& why) const;

private:
    // Of the key, if it is there, else of the map.
    [[nodiscard]] const std::string& place_of(std::string_view key) const;
    void note(std::string_view key, const std::string& kind, std::string fallback) const;
    // The scalar of a key, or null.
    [[nodiscard]] const Node* scalar(std::string_view key);
    template <class Number>
    void read_number(std::string_view key, Number& to, const char* kind);
    void accept_duration(std::string_view key, Time value, Time& to);
    template <class Value>
    void accept(std::string_view key, Value value, Value& to);

    const Node& map_;
    std::string path_;
    ReadingRules rules_;
    std::set<std::string, std::less<>> asked_;
};

// "-30s" too: how the older models switch something off.
[[nodiscard]] Time parse_signed_duration(std::string_view text);

}  // namespace holdfast::sim

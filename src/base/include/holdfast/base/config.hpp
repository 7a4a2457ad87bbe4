// Configuration that knows where each value came from.
//
// A program lists its settings once. Values come, the first one found, from a flag, the
// environment, a YAML file, or the default. Whatever is not understood is refused with its place,
// so that a misspelt key never silently means the default.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holdfast {

// What a setting holds. Bounds are inclusive.
struct IntegerKind {
    std::int64_t min = std::numeric_limits<std::int64_t>::min();
    std::int64_t max = std::numeric_limits<std::int64_t>::max();
};
struct NumberKind {
    double min = std::numeric_limits<double>::lowest();
    double max = std::numeric_limits<double>::max();
};
struct BoolKind {};  // true, false, yes, no, on, off, 1, 0.
struct DurationKind {
    std::chrono::nanoseconds min{0};
    std::chrono::nanoseconds max = std::chrono::nanoseconds::max();
};
struct SizeKind {
    std::uint64_t min = 0;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};
struct TextKind {};
struct ChoiceKind {
    std::vector<std::string> choices;
};
using SettingKind =
    std::variant<IntegerKind, NumberKind, BoolKind, DurationKind, SizeKind, TextKind, ChoiceKind>;

using ConfigValue =
    std::variant<std::int64_t, double, bool, std::chrono::nanoseconds, std::uint64_t, std::string>;

// What `effective()` may show of a value.
enum class Secrecy {
    open,
    url_password,  // All but the password in a URL.
    secret,        // Nothing. Such a value does not appear in error messages either.
};

struct Setting {
    // Dotted, e.g. `retry.max_retries`. One `*` stands for a name that the user chooses
    // (`retry.operations.*.max_retries`); such a setting has no default and no environment.
    std::string key;
    SettingKind kind;
    std::string fallback{};  // The default, as a user would write it.
    std::string description{};
    std::string environment{};  // Empty: it cannot be set there.
    Secrecy secrecy = Secrecy::open;
    // An environment value that is not understood becomes a warning instead of a refusal.
    bool lenient = false;
};
using Settings = std::vector<Setting>;

struct FlagValue {
    std::string key;
    std::string flag;  // As the user wrote it, e.g. `--db`.
    std::string value;
};

struct ConfigFile {
    std::string name;  // For messages.
    std::string yaml;
};

// Reads a file of at most config_bytes_max bytes. not_found or unavailable if it cannot.
inline constexpr std::size_t config_bytes_max = 1 << 20;
[[nodiscard]] ConfigFile read_config_file(const std::string& path);

// The process's own environment.
[[nodiscard]] std::optional<std::string> process_environment(const std::string& name);

struct ConfigSources {
    std::vector<FlagValue> flags{};  // The last one of a key wins.
    // Empty values count as not set.
    std::function<std::optional<std::string>(const std::string& name)> environment{};
    std::optional<ConfigFile> file{};
};

// An immutable value.
class Config {
public:
    // Invalid_argument for an unknown key or a value that does not fit, wherever it came from, even
    // if a stronger source hides it; the message names the place, the key and what was expected.
    [[nodiscard]] static Config load(const Settings& settings, const ConfigSources& sources);

    // Whether there is a value. Only keys of settings with a `*` may have none.
    [[nodiscard]] bool has(std::string_view key) const;
    // The names chosen for the `*` of settings that begin with `prefix.*`, in alphabetical order.
    [[nodiscard]] std::vector<std::string> names(std::string_view prefix) const;

    // Require: has(key), and its setting is of that kind. Else a bug, and the process stops.
    [[nodiscard]] std::int64_t integer(std::string_view key) const;
    [[nodiscard]] double number(std::string_view key) const;
    [[nodiscard]] bool boolean(std::string_view key) const;
    [[nodiscard]] std::chrono::nanoseconds duration(std::string_view key) const;
    [[nodiscard]] std::uint64_t size(std::string_view key) const;
    [[nodiscard]] const std::string& text(std::string_view key) const;  // Also of a choice.

    struct Effective {
        std::string key;
        std::string value;  // As a user would write it, without what is secret.
        std::string
            source;  // "flag --db", "environment HOLDFAST_DB", "holdfast.yaml:12", "default".
        std::string description;
    };
    // Everything in force, in alphabetical order.
    [[nodiscard]] std::vector<Effective> effective() const;

    // Values that lenient settings ignored; to be logged once there is a logger.
    [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

private:
    struct Entry {
        ConfigValue value;
        Effective shown;
        std::string prefix;  // What stands before the `*` of its setting, and the name that stands
        std::string name;    // for it.
    };
    class Loader;

    template <typename T>
    [[nodiscard]] const T& get(std::string_view key) const;

    std::map<std::string, Entry, std::less<>> entries_;
    std::vector<std::string> warnings_;
};

}  // namespace holdfast

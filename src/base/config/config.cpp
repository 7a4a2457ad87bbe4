#include <holdfast/base/config.hpp>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "config/config_key.hpp"
#include "config/config_value.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/document.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

constexpr std::size_t key_bytes_max = 512;

}  // namespace

// Puts values in from the weakest source to the strongest, each one over the one before.
class Config::Loader {
public:
    explicit Loader(const Settings& settings) : settings_(settings) {}

    Config load(const ConfigSources& sources) {
        take_defaults();
        if (sources.file) {
            take_file(*sources.file);
        }
        if (sources.environment) {
            take_environment(sources);
        }
        for (const FlagValue& flag : sources.flags) {
            take_flag(flag);
        }
        return std::move(config_);
    }

private:
    void take_defaults() {
        for (const Setting& setting : settings_) {
            const KeyMatch match = find_setting(settings_, setting.key);
            HOLDFAST_ASSERT(match.setting == &setting);  // No two settings share a key.
            const bool star = !match.name.empty();
            HOLDFAST_ASSERT(!star || setting.environment.empty());
            if (!star) {
                put(setting.key, match, setting.fallback, "default", "the default");
            }
        }
    }

    void take_environment(const ConfigSources& sources) {
        for (const Setting& setting : settings_) {
            if (setting.environment.empty()) {
                continue;
            }
            const auto text = sources.environment(setting.environment);
            if (!text || text->empty()) {
                continue;
            }
            const std::string place = "environment " + setting.environment;
            try {
                put(setting.key, {&setting}, *text, place, place);
            } catch (const InvalidArgument& error) {
                if (!setting.lenient) {
                    throw;
                }
                config_.warnings_.push_back(
                    fmt::format("{}; it is ignored, and '{}' is in force",
                                error.what(),
                                config_.entries_.at(setting.key).shown.value));
            }
        }
    }

    void take_flag(const FlagValue& flag) {
        const std::string place = "flag " + flag.flag;
        const KeyMatch match = find_setting(settings_, flag.key);
        if (match.setting == nullptr) {
            refuse_unknown(place, flag.key);
        }
        put(flag.key, match, flag.value, place, place);
    }

    void take_file(const ConfigFile& file) {
        if (file.yaml.size() > config_bytes_max) {
            throw InvalidArgument(
                fmt::format("{} has more than {} bytes; a configuration is smaller",
                            file.name,
                            config_bytes_max));
        }
        take_node("", parse_yaml(file.name, file.yaml));
    }

    // `key` is the path to `node`; empty for the document itself.
    void take_node(const std::string& key, const DocumentNode& node) {
        const KeyMatch match = find_setting(settings_, key);
        if (match.setting != nullptr) {
            take_scalar(key, match, node);
        } else if (node.kind == DocumentNode::Kind::map) {
            for (const auto& [name, child] : node.fields) {
                take_child(key, name, child);
            }
        } else if (node.kind != DocumentNode::Kind::null) {
            refuse_group_without_keys(key, node.place);
        }
    }

    void take_child(const std::string& parent, const std::string& name, const DocumentNode& node) {
        const std::string key = parent.empty() ? name : parent + "." + name;
        if (key.size() > key_bytes_max) {
            throw InvalidArgument(fmt::format("{}: a key is too long", node.key_place));
        }
        if (find_setting(settings_, key).setting == nullptr && !is_group(settings_, key)) {
            refuse_unknown(node.key_place, key);
        }
        take_node(key, node);
    }

    void take_scalar(const std::string& key, const KeyMatch& match, const DocumentNode& node) {
        if (node.kind != DocumentNode::Kind::scalar) {
            throw InvalidArgument(fmt::format(
                "{}: {}: expected {}", node.place, key, expectation(match.setting->kind)));
        }
        if (!seen_.insert(key).second) {
            throw InvalidArgument(fmt::format("{}: {} is set twice; keep one", node.place, key));
        }
        const std::string source = node.place.substr(0, node.place.rfind(':'));  // Its line.
        put(key, match, node.scalar, source, node.place);
    }

    void put(const std::string& key,
             const KeyMatch& match,
             const std::string& text,
             const std::string& source,
             const std::string& place) {
        const Setting& setting = *match.setting;
        Entry entry;
        try {
            entry.value = parse_value(setting.kind, text);
        } catch (const InvalidArgument& error) {
            const bool open = setting.secrecy == Secrecy::open;
            const std::string why = open ? error.what() : "expected " + expectation(setting.kind);
            throw InvalidArgument(fmt::format("{}: {}: {}", place, key, why));
        }
        entry.shown = {.key = key,
                       .value = show_value(entry.value, setting.secrecy),
                       .source = source,
                       .description = setting.description};
        entry.prefix = match.prefix;
        entry.name = match.name;
        config_.entries_.insert_or_assign(key, std::move(entry));
    }

    [[noreturn]] void refuse_group_without_keys(const std::string& key,
                                                const std::string& place) const {
        // Below a name of the user's own anything may be a group: a misspelt key, too.
        if (find_setting(settings_, nearest_key(settings_, key)).setting != nullptr) {
            refuse_unknown(place, key);
        }
        const std::string what = key.empty() ? "the file" : "'" + key + "'";
        throw InvalidArgument(fmt::format("{}: {} must hold keys, each with a value", place, what));
    }

    [[noreturn]] void refuse_unknown(const std::string& place, const std::string& key) const {
        const std::string nearest = nearest_key(settings_, key);
        const std::string cure = nearest.empty() ? "`holdfast config show` lists all keys"
                                                 : fmt::format("did you mean '{}'?", nearest);
        throw InvalidArgument(fmt::format("{}: unknown key '{}'; {}", place, key, cure));
    }

    const Settings& settings_;
    Config config_;
    std::set<std::string> seen_;  // In the file.
};

Config Config::load(const Settings& settings, const ConfigSources& sources) {
    return Loader(settings).load(sources);
}

bool Config::has(std::string_view key) const {
    return entries_.contains(key);
}

std::vector<std::string> Config::names(std::string_view prefix) const {
    std::set<std::string> names;
    for (const auto& [key, entry] : entries_) {
        if (!entry.name.empty() && entry.prefix == prefix) {
            names.insert(entry.name);
        }
    }
    return {names.begin(), names.end()};
}

template <typename T>
const T& Config::get(std::string_view key) const {
    const auto found = entries_.find(key);
    HOLDFAST_ASSERT(found != entries_.end());
    const T* value = std::get_if<T>(&found->second.value);
    HOLDFAST_ASSERT(value != nullptr);
    return *value;
}

std::int64_t Config::integer(std::string_view key) const {
    return get<std::int64_t>(key);
}

double Config::number(std::string_view key) const {
    return get<double>(key);
}

bool Config::boolean(std::string_view key) const {
    return get<bool>(key);
}

std::chrono::nanoseconds Config::duration(std::string_view key) const {
    return get<std::chrono::nanoseconds>(key);
}

std::uint64_t Config::size(std::string_view key) const {
    return get<std::uint64_t>(key);
}

const std::string& Config::text(std::string_view key) const {
    return get<std::string>(key);
}

std::vector<Config::Effective> Config::effective() const {
    std::vector<Effective> all;
    all.reserve(entries_.size());
    for (const auto& [key, entry] : entries_) {
        all.push_back(entry.shown);
    }
    return all;
}

ConfigFile read_config_file(const std::string& path) {
    const auto refuse = [&](Code code) {
        return Error(
            code,
            Outcome::not_applied,
            fmt::format("cannot read the configuration {}: {}; name a file that exists and "
                        "can be read",
                        path,
                        std::system_category().message(errno)));
    };
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    if (!stream) {
        throw refuse(errno == ENOENT ? Code::not_found : Code::unavailable);
    }
    // One byte more than allowed, so that a longer file is noticed and still not read whole.
    std::string yaml(config_bytes_max + 1, '\0');
    stream.read(yaml.data(), static_cast<std::streamsize>(yaml.size()));
    if (stream.bad()) {
        throw refuse(Code::unavailable);
    }
    yaml.resize(static_cast<std::size_t>(stream.gcount()));
    return {.name = path, .yaml = std::move(yaml)};
}

std::optional<std::string> process_environment(const std::string& name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment never changes.
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace holdfast

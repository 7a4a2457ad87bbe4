// The only file that knows yaml-cpp.
#include <holdfast/base/config.hpp>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "config/config_key.hpp"
#include "config/config_value.hpp"
#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

// Aliases make a small file mean a large or endless one; these end it.
constexpr std::size_t depth_max = 16;
constexpr std::size_t nodes_max = 10'000;
constexpr std::size_t key_bytes_max = 512;

// Remembers where a document begins, and nothing else.
class DocumentStart final : public YAML::EventHandler {
public:
    void OnDocumentStart(const YAML::Mark& mark) override { mark_ = mark; }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
    void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
    void OnScalar(const YAML::Mark& /*mark*/,
                  const std::string& /*tag*/,
                  YAML::anchor_t /*anchor*/,
                  const std::string& /*value*/) override {}
    void OnSequenceStart(const YAML::Mark& /*mark*/,
                         const std::string& /*tag*/,
                         YAML::anchor_t /*anchor*/,
                         YAML::EmitterStyle::value /*style*/) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark& /*mark*/,
                    const std::string& /*tag*/,
                    YAML::anchor_t /*anchor*/,
                    YAML::EmitterStyle::value /*style*/) override {}
    void OnMapEnd() override {}

    [[nodiscard]] const YAML::Mark& mark() const noexcept { return mark_; }

private:
    YAML::Mark mark_;
};

// Where a second document begins. Not with YAML::LoadAll, which fills the memory with empty
// documents when it meets a stray comma, and not with YAML::Load alone, which overlooks what it
// cannot read.
std::optional<YAML::Mark> second_document(const std::string& yaml) {
    std::istringstream stream(yaml);
    YAML::Parser parser(stream);
    DocumentStart document;
    const bool two = parser.HandleNextDocument(document) && parser.HandleNextDocument(document);
    return two ? std::optional(document.mark()) : std::nullopt;
}

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
        file_name_ = file.name;
        if (file.yaml.size() > config_bytes_max) {
            throw InvalidArgument(
                fmt::format("{} has more than {} bytes; a configuration is smaller",
                            file.name,
                            config_bytes_max));
        }
        try {
            if (const auto second = second_document(file.yaml)) {
                refuse_at(*second, "something follows the document; write one");
            }
            take_node("", YAML::Load(file.yaml), 0);
        } catch (const YAML::Exception& error) {
            refuse_at(error.mark, "this is not YAML: " + error.msg);
        }
    }

    // `key` is the path to `node`; empty for the document itself.
    void take_node(const std::string& key, const YAML::Node& node, std::size_t depth) {
        if (++nodes_ > nodes_max || depth > depth_max) {
            refuse_at(node.Mark(), "the keys are too many or too deep");
        }
        const KeyMatch match = find_setting(settings_, key);
        if (match.setting != nullptr) {
            take_scalar(key, match, node);
        } else if (node.IsMap()) {
            for (const auto& child : node) {
                take_child(key, child.first, child.second, depth);
            }
        } else if (!node.IsNull()) {
            refuse_group_without_keys(key, node.Mark());
        }
    }

    void take_child(const std::string& parent,
                    const YAML::Node& name,
                    const YAML::Node& node,
                    std::size_t depth) {
        if (!name.IsScalar() || name.Scalar().empty()) {
            refuse_at(name.Mark(), "a key must be a word");
        }
        const std::string key = parent.empty() ? name.Scalar() : parent + "." + name.Scalar();
        if (key.size() > key_bytes_max) {
            refuse_at(name.Mark(), "a key is too long");
        }
        if (find_setting(settings_, key).setting == nullptr && !is_group(settings_, key)) {
            refuse_unknown(place_of(name.Mark()), key);
        }
        take_node(key, node, depth + 1);
    }

    void take_scalar(const std::string& key, const KeyMatch& match, const YAML::Node& node) {
        const std::string place = place_of(node.Mark());
        if (!node.IsScalar()) {
            throw InvalidArgument(
                fmt::format("{}: {}: expected {}", place, key, expectation(match.setting->kind)));
        }
        if (!seen_.insert(key).second) {
            throw InvalidArgument(fmt::format("{}: {} is set twice; keep one", place, key));
        }
        const std::string source = fmt::format("{}:{}", file_name_, node.Mark().line + 1);
        put(key, match, node.Scalar(), source, place);
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

    [[nodiscard]] std::string place_of(const YAML::Mark& mark) const {
        return fmt::format("{}:{}:{}", file_name_, mark.line + 1, mark.column + 1);
    }

    [[noreturn]] void refuse_at(const YAML::Mark& mark, const std::string& why) const {
        throw InvalidArgument(mark.is_null() ? fmt::format("{}: {}", file_name_, why)
                                             : fmt::format("{}: {}", place_of(mark), why));
    }

    [[noreturn]] void refuse_group_without_keys(const std::string& key,
                                                const YAML::Mark& mark) const {
        // Below a name of the user's own anything may be a group: a misspelt key, too.
        if (find_setting(settings_, nearest_key(settings_, key)).setting != nullptr) {
            refuse_unknown(place_of(mark), key);
        }
        const std::string what = key.empty() ? "the file" : "'" + key + "'";
        refuse_at(mark, what + " must hold keys, each with a value");
    }

    [[noreturn]] void refuse_unknown(const std::string& place, const std::string& key) const {
        const std::string nearest = nearest_key(settings_, key);
        const std::string cure = nearest.empty() ? "`holdfast config show` lists all keys"
                                                 : fmt::format("did you mean '{}'?", nearest);
        throw InvalidArgument(fmt::format("{}: unknown key '{}'; {}", place, key, cure));
    }

    const Settings& settings_;
    Config config_;
    std::string file_name_;
    std::set<std::string> seen_;  // In the file.
    std::size_t nodes_ = 0;
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
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody here changes the environment.
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace holdfast

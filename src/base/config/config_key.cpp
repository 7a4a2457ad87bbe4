#include "config/config_key.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace holdfast {
namespace {

// A setting's key around its `*`, dots included: "retry.operations." and ".max_retries". Without a
// `*` all of it is `before`.
struct Pattern {
    std::string_view before;
    std::string_view after;
    bool star = false;
};

Pattern pattern_of(std::string_view key) {
    const std::size_t star = key.find('*');
    if (star == std::string_view::npos) {
        return {key, {}, false};
    }
    return {key.substr(0, star), key.substr(star + 1), true};
}

// The number of letters to insert, delete or change to make one of the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

// The setting's key with the user's own name in it, if the user got that far.
std::string spelled_for(std::string_view setting_key, std::string_view key) {
    const Pattern pattern = pattern_of(setting_key);
    const std::size_t last_dot = key.rfind('.');
    if (!pattern.star || !key.starts_with(pattern.before) || last_dot <= pattern.before.size()) {
        return std::string(setting_key);
    }
    const std::size_t begin = pattern.before.size();
    std::string spelled(pattern.before);
    spelled += key.substr(begin, last_dot - begin);
    spelled += pattern.after;
    return spelled;
}

}  // namespace

KeyMatch find_setting(const Settings& settings, std::string_view key) {
    for (const Setting& setting : settings) {
        const Pattern pattern = pattern_of(setting.key);
        if (!pattern.star) {
            if (key == setting.key) {
                return {&setting};
            }
            continue;
        }
        const std::size_t around = pattern.before.size() + pattern.after.size();
        if (key.size() > around && key.starts_with(pattern.before) &&
            key.ends_with(pattern.after)) {
            const std::string_view name = key.substr(pattern.before.size(), key.size() - around);
            return {&setting, pattern.before.substr(0, pattern.before.size() - 1), name};
        }
    }
    return {};
}

bool is_group(const Settings& settings, std::string_view key) {
    return std::any_of(settings.begin(), settings.end(), [&](const Setting& setting) {
        const Pattern pattern = pattern_of(setting.key);
        const bool above = pattern.before.size() > key.size() && pattern.before.starts_with(key) &&
                           pattern.before[key.size()] == '.';
        const bool name =
            pattern.star && key.size() > pattern.before.size() && key.starts_with(pattern.before);
        return above || name;
    });
}

std::string nearest_key(const Settings& settings, std::string_view key) {
    std::string nearest;
    std::size_t nearest_distance = std::max<std::size_t>(2, key.size() / 3) + 1;
    const auto consider = [&](const std::string& candidate) {
        const std::size_t distance = edit_distance(candidate, key);
        if (distance < nearest_distance) {
            nearest = candidate;
            nearest_distance = distance;
        }
    };
    for (const Setting& setting : settings) {
        const std::string spelled = spelled_for(setting.key, key);
        consider(spelled);
        for (std::size_t dot = spelled.find('.'); dot != std::string::npos;
             dot = spelled.find('.', dot + 1)) {
            consider(spelled.substr(0, dot));
        }
    }
    return nearest;
}

}  // namespace holdfast

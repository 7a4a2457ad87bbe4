// Which setting a dotted key belongs to, and which one was probably meant.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/base/config.hpp>

namespace holdfast {

struct KeyMatch {
    const Setting* setting = nullptr;  // Null: no setting has this key.
    std::string_view prefix{};         // What stands before the `*`, if there is one,
    std::string_view name{};           // and what the user put in its place.
};

// `key` is dotted, whatever nesting it was written with.
[[nodiscard]] KeyMatch find_setting(const Settings& settings, std::string_view key);

// Whether keys may follow below `key`.
[[nodiscard]] bool is_group(const Settings& settings, std::string_view key);

// The key or group nearest to `key` in spelling; empty if none is near.
[[nodiscard]] std::string nearest_key(const Settings& settings, std::string_view key);

}  // namespace holdfast

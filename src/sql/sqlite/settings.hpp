// What a `sqlite:` URL asks for.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <holdfast/sql/url.hpp>

namespace holdfast::sql::sqlite {

// How far a commit goes before it is answered. Full survives a power cut, normal a crash of the
// process, off neither.
enum class Synchronous : std::uint8_t { full, normal, off };

struct Settings {
    std::string path;  // Starts with / or ./, so that SQLite reads nothing special into it.
    bool memory = false;
    bool create = false;
    bool read_only = false;
    Synchronous synchronous = Synchronous::full;
    // The longest wait for another process's lock; without it, until the caller's deadline.
    std::optional<std::chrono::milliseconds> busy_timeout;
};

// Refuses unknown options and values, naming the ones there are.
[[nodiscard]] Settings settings_of(const Url& url, bool create);

}  // namespace holdfast::sql::sqlite

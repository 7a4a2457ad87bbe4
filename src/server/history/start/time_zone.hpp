// Local time of a place, by the machine's time zone tables. They are read once for each zone and do
// not change while the process lives.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "history/times.hpp"

namespace holdfast::server::history {

class TimeZone {
public:
    // Nothing if there is no zone of that name, as "Europe/Berlin" or "UTC".
    [[nodiscard]] static std::optional<TimeZone> named(const std::string& name);

    // While local time runs evenly.
    struct Stretch {
        std::chrono::seconds offset{};  // Local time less UTC.
        std::optional<Time> end;        // When the offset changes next; nothing if it never does.
    };
    [[nodiscard]] Stretch at(Time time) const;

private:
    struct Tables;
    explicit TimeZone(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)) {}

    std::shared_ptr<const Tables> tables_;
};

}  // namespace holdfast::server::history

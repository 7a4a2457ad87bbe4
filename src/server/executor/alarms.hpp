// Alarms: what should happen at a moment of the steady clock.
#pragma once

#include <cstdint>

#include "executor/job.hpp"

#include <holdfast/base/clock.hpp>

namespace holdfast::server {

enum class AlarmId : std::uint64_t {};

class Alarms {
public:
    Alarms() = default;
    Alarms(const Alarms&) = delete;
    Alarms& operator=(const Alarms&) = delete;
    virtual ~Alarms() = default;

    // `ring` runs once, at `at` or a little later, on the thread of the alarms: it must not block
    // and not throw.
    virtual AlarmId set(Steady at, Job ring) = 0;

    // True if it has not begun to ring, and then it never will. It does not wait for one that
    // rings.
    virtual bool cancel(AlarmId alarm) = 0;
};

}  // namespace holdfast::server

// The format of a log line.
//
// Text is `time=T level=L event=E name=value`, a value quoted where it would not stand alone;
// JSON is one object with the same names. Whatever the values hold, it is one line of valid UTF-8.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast {

// Without the line's end, and without the time if there is none.
[[nodiscard]] std::string log_line(LogFormat format,
                                   std::optional<Wall> now,
                                   Level level,
                                   std::string_view event,
                                   std::span<const Field> fields);

}  // namespace holdfast

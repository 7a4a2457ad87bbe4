#include <holdfast/base/log_capture.hpp>

#include <algorithm>
#include <optional>
#include <span>

#include "log/log_line.hpp"

namespace holdfast {

void CapturingLogger::write(Level level,
                            std::string_view event,
                            std::initializer_list<Field> fields) {
    if (!enabled(level)) {
        return;
    }
    const std::span all(fields.begin(), fields.size());
    std::string line = log_line(LogFormat::text, std::nullopt, level, event, all);
    const std::lock_guard lock(mutex_);
    if (lines_.size() == lines_max) {
        return;
    }
    lines_.push_back(std::move(line));
    written_.notify_all();
}

std::vector<std::string> CapturingLogger::lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
}

std::size_t CapturingLogger::count(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    return count_locked(part);
}

bool CapturingLogger::wait_for(std::string_view part, Deadline deadline) const {
    std::unique_lock lock(mutex_);
    return written_.wait_until(lock, deadline.when(), [&] { return count_locked(part) > 0; });
}

std::size_t CapturingLogger::count_locked(std::string_view part) const {
    const auto contains = [&](const std::string& line) {
        return line.find(part) != std::string::npos;
    };
    return static_cast<std::size_t>(std::count_if(lines_.begin(), lines_.end(), contains));
}

}  // namespace holdfast

// Locks as text and as JSON. Never with their ids.
#pragma once

#include <string>

#include "cli/answer.hpp"

#include <holdfast/lock/locks.hpp>

namespace holdfast::app {

[[nodiscard]] std::int64_t to_ms(lock::ServerTime time);

// With the hash of the id; the caller adds the id itself if it was requested.
[[nodiscard]] Json to_json(const std::string& key, const lock::Grant& grant);
[[nodiscard]] Json to_json(const lock::RawLockInfo& found, lock::ServerTime now);
[[nodiscard]] Json to_json(const lock::Listed& listed, lock::ServerTime now);

// The holder, since when and until when.
[[nodiscard]] std::string status_text(const lock::RawLockInfo& found, lock::ServerTime now);
// One line each.
[[nodiscard]] std::string list_text(const std::vector<lock::Listed>& locks, lock::ServerTime now);

// All of it in one line: what others have stored must not steer the reader's terminal.
[[nodiscard]] std::string in_one_line(const std::string& text);

}  // namespace holdfast::app

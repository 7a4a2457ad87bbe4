// SQLite as a driver: one writer connection with group commit, and a few readers.
//
//   sqlite:PATH[?create=1][&readonly=1][&synchronous=full|normal|off][&busy_timeout=MILLISECONDS]
//   sqlite::memory:
//
// A file is kept in WAL mode and flushed at every commit unless its URL says otherwise; `PRAGMA
// synchronous`, asked as a statement, tells what is in force. Several handles and processes may
// share a file. A handle must not be carried over a fork: SQLite's locks belong to a process, so a
// child opens its own.
#pragma once

#include <memory>

#include "driver.hpp"

#include <holdfast/sql/database.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::sql {

// Throws, and leaves everything as it was, if there is no such file, no right to it, or no database
// in it. Requires: what `options` points to outlives the driver.
[[nodiscard]] std::unique_ptr<Driver> open_sqlite(const Url& url, const DatabaseOptions& options);

}  // namespace holdfast::sql

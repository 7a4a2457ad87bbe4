// The driver for servers that speak PostgreSQL's protocol.
#pragma once

#include <memory>

#include "driver.hpp"

#include <holdfast/sql/database.hpp>
#include <holdfast/sql/source.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::sql {

// Opens one connection at once, to be sure that there is a server and that it lets us in; with a
// reservoir, waits until that is filled. Options of the URL besides libpq's: pool, reservoir,
// connect_timeout, statement_timeout, lock_timeout.
[[nodiscard]] std::unique_ptr<Driver> open_postgres(const Url& url,
                                                    const DatabaseOptions& options,
                                                    std::unique_ptr<ConnectionSource> source);

// Plain PostgreSQL: the same parameters for every connection.
[[nodiscard]] std::unique_ptr<ConnectionSource> postgres_source(const Url& url,
                                                                const DatabaseOptions& options);

}  // namespace holdfast::sql

// A real pgbouncer before a PostgreSQL server, on a unix socket in a folder of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sys/types.h>

#include <holdfast/testing/postgres.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::test {

// When pgbouncer gives a backend to the next client.
enum class PoolMode : std::uint8_t { session, transaction, statement };

[[nodiscard]] std::string_view to_string(PoolMode mode) noexcept;

struct PgBouncerOptions {
    PoolMode mode = PoolMode::transaction;
    int backends = 3;        // At most, per database: few, so that clients share them.
    std::string settings{};  // More lines of its section [pgbouncer].
};

// Runs from construction to destruction, or until the process ends. As root, it runs as the user
// `postgres`. Unavailable if pgbouncer is not installed or does not start.
// Requires: constructed by a thread that outlives it.
class PgBouncer {
public:
    explicit PgBouncer(const PostgresAddress& server, const PgBouncerOptions& options = {});
    ~PgBouncer();
    PgBouncer(const PgBouncer&) = delete;
    PgBouncer& operator=(const PgBouncer&) = delete;

    // Leads to a database of the server, through pgbouncer.
    [[nodiscard]] std::string url(std::string_view database) const {
        return address_.url(database);
    }

private:
    [[nodiscard]] std::string log() const;

    TempDir folder_;
    PostgresAddress address_;
    pid_t pid_ = -1;
};

}  // namespace holdfast::test

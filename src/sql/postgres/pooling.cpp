#include "postgres/pooling.hpp"

#include <charconv>
#include <string_view>

#include <fmt/core.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::sql::postgres {
namespace {

constexpr std::chrono::seconds compare_patience{2};
constexpr int compare_rounds = 3;

const Dialect& dialect() {
    return dialect_of(Product::postgres);
}

int first_number(const ResultPtr& answer) {
    HOLDFAST_ASSERT(answer != nullptr);
    const std::string_view text = libpq().PQgetvalue(answer.get(), 0, 0);
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

int backend_of(Connection& connection, Deadline deadline) {
    return first_number(connection.ask("SELECT pg_backend_pid()", deadline, dialect()));
}

// ", set_config('statement_timeout', '200', LOCAL)" for each. Names and values are ours: keywords
// and numbers.
std::string settings_text(const ConnectParams& settings, std::string_view local) {
    std::string text;
    for (const auto& [name, value] : settings) {
        text += fmt::format(", set_config('{}', '{}', {})", name, value, local);
    }
    return text;
}

DatabaseError refused(const std::string& why) {
    return {ErrorClass::unsupported_feature, SqlState{"0A000"}, Outcome::not_applied, why};
}

void refuse_statement_pooling(Connection& connection, Deadline deadline) {
    try {
        (void)connection.ask("BEGIN", deadline, dialect());
        (void)connection.ask("ROLLBACK", deadline, dialect());
    } catch (const DatabaseError& error) {
        if (error.state() != SqlState{"08P01"}) {
            throw;
        }
        throw refused(
            "the proxy before the server allows no transactions; set pool_mode = transaction or "
            "session in its configuration, or connect past it");
    }
}

// Whether `connection` gets another backend while `other` is in a transaction, or `other` gets the
// one that `connection` had.
bool backend_moves(Connection& connection, Connection& other, Deadline deadline) {
    const int before = backend_of(connection, deadline);
    (void)other.ask("BEGIN", deadline, dialect());
    if (backend_of(other, deadline) == before) {
        return true;
    }
    const bool moves = backend_of(connection, deadline) != before;
    (void)other.ask("ROLLBACK", deadline, dialect());
    return moves;
}

}  // namespace

void PoolingCheck::examine(Connection& connection,
                           const ConnectParams& settings,
                           Deadline deadline,
                           const Open& open) {
    const int greeted_by = libpq().PQbackendPID(connection.raw());
    // One statement asks who answers, and sets what a session of our own keeps. Behind a proxy it
    // sets it for itself only, so that nothing is left behind for other clients.
    const std::string question =
        fmt::format("SELECT pg_backend_pid(){}",
                    settings_text(settings, fmt::format("pg_backend_pid() <> {}", greeted_by)));
    if (first_number(connection.ask(question, deadline, dialect())) == greeted_by) {
        return;
    }
    if (session_kept_behind(connection, deadline, open)) {
        if (!settings.empty()) {
            (void)connection.ask(
                "SELECT 1" + settings_text(settings, "false"), deadline, dialect());
        }
        return;
    }
    if (const char* const options = libpq().PQoptions(connection.raw());
        options != nullptr && *options != '\0') {
        throw refused(
            "the proxy before the server does not keep sessions, so the settings in `options` of "
            "the database URL (or in PGOPTIONS) would be lost; leave them out and set them with "
            "ALTER ROLE, or set pool_mode = session in the proxy's configuration");
    }
    connection.lose_session();
    if (!settings.empty()) {
        connection.set_transaction_settings("SELECT 1" + settings_text(settings, "true"));
    }
}

bool PoolingCheck::session_kept_behind(Connection& connection,
                                       Deadline deadline,
                                       const Open& open) {
    const std::lock_guard lock(mutex_);
    if (kept_) {
        return *kept_;
    }
    const Deadline soon = deadline.earlier(Deadline::after(compare_patience));
    refuse_statement_pooling(connection, soon);
    bool kept = true;
    try {
        const std::unique_ptr<Connection> other = open(soon);
        for (int round = 0; kept && round < compare_rounds; ++round) {
            kept = !backend_moves(connection, *other, soon);
        }
    } catch (const Error&) {
        kept = false;  // Not known, so nothing is left to the session.
    }
    kept_ = kept;
    return kept;
}

}  // namespace holdfast::sql::postgres

#include <holdfast/sql/error.hpp>

#include <utility>

#include <fmt/core.h>

namespace holdfast::sql {
namespace {

// The code that callers see, for each class of error.
Code code_of(ErrorClass error_class, SqlState state) noexcept {
    switch (error_class) {
        case ErrorClass::condition_failed:
            return Code::condition_failed;
        case ErrorClass::cancelled:
            return Code::cancelled;
        case ErrorClass::deadline:
            return Code::deadline;
        case ErrorClass::retryable:
            return Code::conflict;
        case ErrorClass::unsupported_feature:
            return Code::unsupported;
        case ErrorClass::connection_limit:
            return Code::exhausted;
        case ErrorClass::limit_exceeded:
            return Code::limit_exceeded;
        case ErrorClass::duplicate:
            return Code::already_exists;
        case ErrorClass::connection_lost:
            return Code::unavailable;
        case ErrorClass::permanent:
            break;
    }
    const std::string_view category = state.category();
    // Of class 08 only a refused login is permanent; see classify_opening().
    if (category == "28" || category == "08" || state == SqlState{"42501"}) {
        return Code::unauthorized;
    }
    if (category == "22" || category == "23") {
        return Code::invalid_argument;
    }
    if (state == SqlState{"25006"}) {
        return Code::invalid_argument;
    }
    if (category == "53" || category == "55" || category == "57" || category == "58") {
        return Code::unavailable;
    }
    if (category == "3D") {
        return Code::not_found;
    }
    return Code::internal;
}

// Asks about an error and then its causes, from the outside in, until one says yes.
template <class Ask>
bool chain_any(const Error& error, Ask ask) noexcept {
    if (ask(error)) {
        return true;
    }
    if (!error.cause()) {
        return false;
    }
    try {
        std::rethrow_exception(error.cause());
    } catch (const Error& cause) {
        return chain_any(cause, ask);
    } catch (...) {
        return false;
    }
}

}  // namespace

std::string_view to_string(ErrorClass error_class) noexcept {
    switch (error_class) {
        case ErrorClass::condition_failed:
            return "condition_failed";
        case ErrorClass::cancelled:
            return "cancelled";
        case ErrorClass::deadline:
            return "deadline";
        case ErrorClass::retryable:
            return "retryable";
        case ErrorClass::unsupported_feature:
            return "unsupported_feature";
        case ErrorClass::connection_limit:
            return "connection_limit";
        case ErrorClass::limit_exceeded:
            return "limit_exceeded";
        case ErrorClass::duplicate:
            return "duplicate";
        case ErrorClass::connection_lost:
            return "connection_lost";
        case ErrorClass::permanent:
            return "permanent";
    }
    return "permanent";
}

ErrorClass classify(SqlState state) noexcept {
    const std::string_view text = state.text();
    if (text == "40001" || text == "40P01") {
        return ErrorClass::retryable;
    }
    if (text == "0A000") {
        return ErrorClass::unsupported_feature;
    }
    if (text == "53300" || text == "53400") {
        return ErrorClass::connection_limit;
    }
    // Two transactions that create the same table at once meet as a duplicate row, table or type.
    if (text == "23505" || text == "42P07" || text == "42710") {
        return ErrorClass::duplicate;
    }
    if (state.category() == "54") {
        return ErrorClass::limit_exceeded;
    }
    // 25P03: the server has hung up on a transaction in which nothing happened for too long. 25006:
    // it takes no writes, so it is a standby, or has become one; another connection may lead to the
    // one that does. (A write where we asked for a reading transaction is refused before it is
    // sent.)
    if (state.category() == "08" || text == "57P01" || text == "57P02" || text == "57P03" ||
        text == "25P03" || text == "25006") {
        return ErrorClass::connection_lost;
    }
    return ErrorClass::permanent;
}

ErrorClass classify_opening(SqlState state, std::string_view hint) noexcept {
    return state == SqlState{"08006"} && !hint.empty() ? ErrorClass::permanent : classify(state);
}

bool is_login_expired(const DatabaseError& refused) noexcept {
    return refused.state() == SqlState{"08006"} &&
           refused.hint().find("Signature expired") != std::string::npos;
}

ErrorClass classify(const Error& error) noexcept {
    if (chain_any(error, [](const Error& e) { return e.code() == Code::condition_failed; })) {
        return ErrorClass::condition_failed;
    }
    if (error.code() == Code::cancelled) {
        return ErrorClass::cancelled;
    }
    if (error.code() == Code::deadline) {
        return ErrorClass::deadline;
    }
    ErrorClass found = ErrorClass::permanent;
    chain_any(error, [&found](const Error& e) {
        const auto* database = dynamic_cast<const DatabaseError*>(&e);
        if (database != nullptr) {
            found = database->error_class();
        }
        return database != nullptr;
    });
    return found;
}

DatabaseError::DatabaseError(SqlState state,
                             Outcome outcome,
                             std::string message,
                             std::source_location where)
    : DatabaseError(classify(state), state, outcome, std::move(message), where) {}

DatabaseError::DatabaseError(ErrorClass error_class,
                             SqlState state,
                             Outcome outcome,
                             std::string message,
                             std::source_location where)
    : Error(code_of(error_class, state), outcome, std::move(message), where),
      state_(state),
      class_(error_class) {}

ConditionFailed::ConditionFailed(std::string what,
                                 std::string expected,
                                 std::string found,
                                 std::source_location where)
    : Error(Code::condition_failed,
            Outcome::not_applied,
            fmt::format("{} was expected to hold {}, but {} was found; reload it and decide again",
                        what,
                        expected,
                        found),
            where),
      what_(std::move(what)),
      expected_(std::move(expected)),
      found_(std::move(found)) {}

Exhausted::Exhausted(std::string_view operation,
                     int attempts,
                     std::exception_ptr last,
                     std::source_location where)
    : Error(Code::conflict,
            Outcome::not_applied,
            fmt::format("{} met a conflict in each of {} attempts and was not applied; try again "
                        "later or spread the load",
                        operation,
                        attempts),
            where),
      attempts_(attempts) {
    set_cause(std::move(last));
}

}  // namespace holdfast::sql

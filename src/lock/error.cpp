#include <holdfast/lock/error.hpp>

#include <algorithm>
#include <array>

#include <holdfast/sql/error.hpp>

namespace holdfast::lock {
namespace {

struct Meaning {
    LockCode code;
    bool retryable;
};

constexpr Meaning unavailable{LockCode::service_unavailable, true};
constexpr Meaning bug{LockCode::internal, false};

bool one_of(std::string_view state, std::initializer_list<std::string_view> states) {
    return std::ranges::find(states, state) != states.end();
}

// By the SQLSTATE alone; nothing if it says nothing particular.
std::optional<Meaning> by_state(const sql::SqlState& state) {
    const std::string_view text = state.text();
    const std::string_view category = state.category();
    if (text == "08P01") {
        return bug;
    }
    if (category == "08" || category == "40" ||
        one_of(text, {"57P01", "57P02", "57P03", "57P05", "25006", "25P03", "55P03"})) {
        return unavailable;
    }
    if (category == "28" || text == "42501") {
        return Meaning{LockCode::auth_failed, false};
    }
    if (one_of(text, {"53300", "53400"})) {
        return Meaning{LockCode::rate_limited, true};
    }
    if (category == "53") {
        return unavailable;
    }
    if (category == "58") {
        // A failing disk, the server's or SQLite's: not a bug, and waiting does not cure it.
        return Meaning{LockCode::service_unavailable, false};
    }
    if (category == "22" || one_of(text, {"23502", "23503", "23514", "54000"})) {
        return Meaning{LockCode::invalid_argument, false};
    }
    if (one_of(text, {"42P01", "42703", "42883", "3D000", "3F000"})) {
        return Meaning{LockCode::invalid_argument, false};
    }
    if (text == "57014") {
        return Meaning{LockCode::network_timeout, true};
    }
    return std::nullopt;
}

Meaning by_code(Code code) {
    switch (code) {
        case Code::invalid_argument:
        case Code::limit_exceeded:
            return {LockCode::invalid_argument, false};
        case Code::conflict:
        case Code::unavailable:
            return unavailable;
        case Code::cancelled:
            return {LockCode::aborted, false};
        case Code::deadline:
            return {LockCode::network_timeout, true};
        case Code::unauthorized:
            return {LockCode::auth_failed, false};
        case Code::exhausted:
            return {LockCode::rate_limited, true};
        case Code::condition_failed:
        case Code::unsupported:
        case Code::internal:
        case Code::not_found:
        case Code::already_exists:
            break;
    }
    return bug;
}

// The first of its causes that a database reported.
const sql::DatabaseError* database_error(const Error& error, std::exception_ptr& keep) {
    if (const auto* found = dynamic_cast<const sql::DatabaseError*>(&error)) {
        return found;
    }
    std::exception_ptr next = error.cause();
    while (next) {
        keep = next;
        try {
            std::rethrow_exception(next);
        } catch (const sql::DatabaseError& found) {
            return &found;  // Lives as long as `keep`.
        } catch (const Error& other) {
            next = other.cause();
        } catch (...) {
            break;
        }
    }
    return nullptr;
}

std::string message_of(Meaning meaning, const Error& error, std::string_view state) {
    if (one_of(state, {"42P01", "42703", "3F000"})) {
        return "the lock tables are not there or have other names; run `holdfast schema apply "
               "--part lock`";
    }
    if (meaning.code == LockCode::internal && state == "23505") {
        return "this lock id holds another key already; every lock needs an id of its own";
    }
    if (meaning.code == LockCode::aborted) {
        return "the operation was aborted by its stop token";
    }
    return error.what();
}

LockError translate(const Error& error, LockError::Context context) {
    std::exception_ptr keep;
    const sql::DatabaseError* reported = database_error(error, keep);
    Meaning meaning = by_code(error.code());
    if (reported != nullptr) {
        context.sqlstate = std::string(reported->state().text());
        // Cancelled and late calls also end in a SQLSTATE; what the caller did comes first.
        if (error.code() != Code::cancelled && error.code() != Code::deadline) {
            meaning = by_state(reported->state()).value_or(meaning);
        }
    }
    LockError result(
        meaning.code, message_of(meaning, error, context.sqlstate), error.outcome(), error.where());
    result.set_retryable(meaning.retryable);
    result.set_context(std::move(context));
    return result;
}

bool retryable_by_default(LockCode code) {
    return code == LockCode::service_unavailable || code == LockCode::rate_limited ||
           code == LockCode::network_timeout;
}

Code to_code(LockCode code) {
    switch (code) {
        case LockCode::service_unavailable:
            return Code::unavailable;
        case LockCode::auth_failed:
            return Code::unauthorized;
        case LockCode::invalid_argument:
            return Code::invalid_argument;
        case LockCode::rate_limited:
            return Code::exhausted;
        case LockCode::network_timeout:
        case LockCode::acquisition_timeout:
            return Code::deadline;
        case LockCode::aborted:
            return Code::cancelled;
        case LockCode::internal:
            break;
    }
    return Code::internal;
}

}  // namespace

std::string_view to_string(LockCode code) noexcept {
    switch (code) {
        case LockCode::service_unavailable:
            return "ServiceUnavailable";
        case LockCode::auth_failed:
            return "AuthFailed";
        case LockCode::invalid_argument:
            return "InvalidArgument";
        case LockCode::rate_limited:
            return "RateLimited";
        case LockCode::network_timeout:
            return "NetworkTimeout";
        case LockCode::acquisition_timeout:
            return "AcquisitionTimeout";
        case LockCode::aborted:
            return "Aborted";
        case LockCode::internal:
            return "Internal";
    }
    return "";
}

LockError::LockError(LockCode code,
                     std::string message,
                     Outcome outcome,
                     std::source_location where)
    : Error(to_code(code),
            outcome,
            message.empty() ? std::string(to_string(code)) : std::move(message),
            where),
      code_(code),
      retryable_(retryable_by_default(code)) {}

LockError to_lock_error(const std::exception_ptr& failure, LockError::Context context) {
    try {
        std::rethrow_exception(failure);
    } catch (const LockError& same) {
        return same;
    } catch (const Error& error) {
        LockError result = translate(error, std::move(context));
        result.set_cause(failure);
        return result;
    } catch (const std::exception& foreign) {
        LockError result(LockCode::internal, foreign.what());
        result.set_context(std::move(context));
        result.set_cause(failure);
        return result;
    } catch (...) {
        LockError result(LockCode::internal, "something other than an exception was thrown");
        result.set_context(std::move(context));
        result.set_cause(failure);
        return result;
    }
}

}  // namespace holdfast::lock

#include <holdfast/base/error.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <holdfast/base/assert.hpp>

namespace holdfast {

std::string_view to_string(Code code) noexcept {
    switch (code) {
        case Code::invalid_argument:
            return "invalid_argument";
        case Code::condition_failed:
            return "condition_failed";
        case Code::conflict:
            return "conflict";
        case Code::unavailable:
            return "unavailable";
        case Code::unsupported:
            return "unsupported";
        case Code::internal:
            return "internal";
        case Code::not_found:
            return "not_found";
        case Code::already_exists:
            return "already_exists";
        case Code::limit_exceeded:
            return "limit_exceeded";
        case Code::cancelled:
            return "cancelled";
        case Code::deadline:
            return "deadline";
        case Code::unauthorized:
            return "unauthorized";
        case Code::exhausted:
            return "exhausted";
    }
    return "internal";
}

std::string_view to_string(Outcome outcome) noexcept {
    return outcome == Outcome::not_applied ? "not_applied" : "unknown";
}

Error::Error(Code code, Outcome outcome, std::string message, std::source_location where)
    : code_(code), outcome_(outcome), message_(std::move(message)), where_(where) {}

void Error::add_context(std::string_view step) {
    std::string longer{step};
    longer += ": ";
    longer += message_;
    message_ = std::move(longer);
}

std::string describe(const std::exception_ptr& error) {
    if (!error) {
        return {};
    }
    try {
        std::rethrow_exception(error);
    } catch (const Error& e) {
        std::string text = e.what();
        const std::string why = describe(e.cause());
        if (text.find(why) == std::string::npos) {  // Some messages quote their cause already.
            text += ": caused by " + why;
        }
        return text;
    } catch (const std::exception& e) {
        return e.what();
    } catch (...) {
        return "an exception that is not a std::exception";
    }
}

void assertion_failed(const char* belief, std::source_location where) noexcept {
    std::fprintf(stderr,
                 "holdfast: broken invariant: %s (%s:%u in %s)\n",
                 belief,
                 where.file_name(),
                 where.line(),
                 where.function_name());
    std::abort();
}

}  // namespace holdfast

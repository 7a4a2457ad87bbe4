#include "postgres/connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <system_error>

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/pool/open_phases.hpp>

namespace holdfast::sql::postgres {
namespace {

std::string one_line(std::string_view text) {
    std::string line(text);
    std::replace(line.begin(), line.end(), '\n', ' ');
    while (!line.empty() && (line.back() == ' ' || line.back() == '.')) {
        line.pop_back();
    }
    return line;
}

std::string_view field(const PGresult* result, int code) {
    const char* const text = libpq().PQresultErrorField(result, code);
    return text == nullptr ? std::string_view{} : std::string_view{text};
}

// What the user can do about it.
std::string_view cure(std::string_view state) {
    if (state == "42P01" || state == "42703") {
        return "; apply the schema with `holdfast schema apply`";
    }
    if (state == "25006") {
        return "; the server is read only: connect to its primary";
    }
    if (state == "42501") {
        return "; grant the user the right it needs";
    }
    if (state == "53300") {
        return "; raise max_connections or use a smaller pool";
    }
    if (state == "57014") {
        return "; give it more time or make it smaller";
    }
    if (state == "55P03") {
        return "; another transaction holds the row, try again later";
    }
    return "";
}

// libpq has no field for the SQLSTATE of a failed opening. With verbose errors the text has a fixed
// place for it, "FATAL:  28P01: ...", whatever the server's language. Empty if no server spoke.
SqlState state_of_opening(std::string_view message) {
    constexpr std::string_view before = ":  ";
    for (std::size_t at = message.find(before); at != std::string_view::npos;
         at = message.find(before, at + 1)) {
        const std::string_view state = message.substr(at + before.size(), 5);
        const bool plausible = std::all_of(state.begin(), state.end(), [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
        });
        if (plausible && message.substr(at + before.size() + 5, 2) == ": ") {
            return SqlState{state};
        }
    }
    return {};
}

// The server's hint, from the same text. Empty if it gave none.
std::string hint_of_opening(std::string_view message) {
    constexpr std::string_view before = "\nHINT:  ";
    const std::size_t at = message.find(before);
    if (at == std::string_view::npos) {
        return {};
    }
    message.remove_prefix(at + before.size());
    return one_line(message.substr(0, message.find('\n')));
}

// 128 bits, as hexadecimal digits. A collision needs a hostile program.
std::string digest(std::string_view text, const std::vector<Oid>& types) {
    constexpr std::uint64_t prime = 0x100000001B3;  // FNV-1a, and the same with a stronger mix.
    std::uint64_t plain = 0xCBF29CE484222325;
    std::uint64_t mixed = 0x9E3779B97F4A7C15;
    const auto add = [&](std::uint64_t value) {
        plain = (plain ^ value) * prime;
        mixed = (mixed ^ value) * 0xBF58476D1CE4E5B9;
        mixed ^= mixed >> 31U;
    };
    for (const char c : text) {
        add(static_cast<unsigned char>(c));
    }
    for (const Oid type : types) {
        add(0x100000000 | type);  // No character's value.
    }
    return fmt::format("{:016x}{:016x}", plain, mixed);
}

std::string statement_name(std::string_view text, const std::vector<Oid>& types, int generation) {
    const std::string name = "holdfast_" + digest(text, types);
    return generation == 0 ? name : fmt::format("{}_{}", name, generation);
}

pool::FailureClass failure_class(const DatabaseError& error) {
    const SqlState state = error.state();
    if (state == SqlState{"53300"}) {
        return pool::FailureClass::full;
    }
    if (state == SqlState{"53400"}) {
        return pool::FailureClass::rate_limited;
    }
    if (error.code() == Code::unauthorized) {
        return pool::FailureClass::auth;
    }
    if (state.empty() || error.error_class() == ErrorClass::connection_lost) {
        return pool::FailureClass::transport;
    }
    return pool::FailureClass::other;
}

std::string_view opening_cure(SqlState state, std::string_view hint, pool::OpenPhase phase) {
    if (state.empty() && phase == pool::OpenPhase::tls) {
        return "check sslmode and sslrootcert in the database URL, and the server's certificate";
    }
    if (classify_opening(state, hint) == ErrorClass::permanent && state.category() == "08") {
        return "check the AWS credentials, what IAM permits them, and the user in the database URL";
    }
    if (state.category() == "28") {
        return "correct the user or the password in the database URL";
    }
    if (state == SqlState{"3D000"}) {
        return "create the database or correct its name in the URL";
    }
    if (state == SqlState{"53300"}) {
        return "raise max_connections or use a smaller pool";
    }
    if (state == SqlState{"08P01"}) {
        return "if a proxy refuses a startup parameter, leave that option out of the database URL "
               "and set it with ALTER ROLE";
    }
    return "check that the server runs and that the database URL names it";
}

// The error as a database's, so that it carries its SQLSTATE.
DatabaseError opening_failed(PGconn* raw, pool::OpenPhase phase) {
    const std::string_view whole = libpq().PQerrorMessage(raw);
    const SqlState state = state_of_opening(whole);
    std::string message = one_line(whole.substr(0, whole.find('\n')));
    if (!state.empty()) {
        const std::string code = fmt::format("{}: ", state.text());
        const std::size_t at = message.find(code);
        if (at != std::string::npos) {
            message.erase(at, code.size());
        }
    }
    const std::string hint = hint_of_opening(whole);
    const std::string text = fmt::format("{}{}{}, at stage {}; {}",
                                         message,
                                         hint.empty() ? "" : ": ",
                                         hint,
                                         to_string(phase),
                                         opening_cure(state, hint, phase));
    if (state.empty()) {
        return ConnectionLost(Outcome::not_applied, text);
    }
    DatabaseError error(classify_opening(state, hint), state, Outcome::not_applied, text);
    error.set_hint(hint);
    return error;
}

pool::OpenPhase phase_of(ConnStatusType status) {
    switch (status) {
        case CONNECTION_NEEDED:
        case CONNECTION_STARTED:
            return pool::OpenPhase::tcp;
        case CONNECTION_SSL_STARTUP:
            return pool::OpenPhase::tls;
        case CONNECTION_MADE:
        case CONNECTION_AWAITING_RESPONSE:
        case CONNECTION_AUTH_OK:
            return pool::OpenPhase::auth;
        default:
            return pool::OpenPhase::init;
    }
}

}  // namespace

StopSignal::StopSignal() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (descriptor_ < 0) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    "the process has no file descriptor left; raise its limit (ulimit -n)");
    }
}

StopSignal::~StopSignal() {
    close(descriptor_);
}

void StopSignal::raise() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(descriptor_, &one, sizeof one);
}

void StopSignal::reset() const noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(descriptor_, &count, sizeof count);
}

Wait wait_for_socket(int descriptor, bool writing, Deadline deadline, const StopSignal& signal) {
    for (;;) {
        const short events = static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN);
        std::array<pollfd, 2> watched{
            {{.fd = descriptor, .events = events, .revents = 0},
             {.fd = signal.descriptor(), .events = POLLIN, .revents = 0}}};
        constexpr std::chrono::milliseconds longest =
            std::chrono::hours{1};  // Then it looks again.
        const auto left =
            std::min(std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()), longest);
        const int ready = poll(watched.data(), watched.size(), static_cast<int>(left.count()));
        if (ready < 0 && errno != EINTR) {
            throw std::system_error(errno, std::generic_category(), "poll");
        }
        if (watched[0].revents != 0) {
            return Wait::ready;
        }
        if (watched[1].revents != 0) {
            return Wait::stopped;
        }
        if (ready == 0 && deadline.passed()) {
            return Wait::deadline;
        }
    }
}

Connection::Connection(PGconn* raw, std::function<void()> on_close)
    : raw_(raw), on_close_(std::move(on_close)) {}

Connection::~Connection() {
    libpq().PQfinish(raw_);
    if (on_close_) {
        on_close_();
    }
}

std::unique_ptr<Connection> Connection::open(const ConnectParams& params,
                                             Deadline deadline,
                                             const std::stop_token& stop,
                                             pool::OpenPhases& phases,
                                             std::function<void()> on_close) {
    phases.enter(pool::OpenPhase::tcp);
    std::vector<const char*> keywords;
    std::vector<const char*> values;
    for (const auto& [keyword, value] : params) {
        keywords.push_back(keyword.c_str());
        values.push_back(value.c_str());
    }
    keywords.push_back(nullptr);
    values.push_back(nullptr);
    PGconn* const raw = libpq().PQconnectStartParams(keywords.data(), values.data(), 0);
    if (raw == nullptr) {
        throw std::bad_alloc();
    }
    libpq().PQsetErrorVerbosity(raw, PQERRORS_VERBOSE);
    // From here on the object closes the connection, but only an opening that succeeds is reported.
    std::unique_ptr<Connection> connection(new Connection(raw, nullptr));
    const std::stop_callback raise(stop, [&] { connection->signal_.raise(); });

    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    pool::OpenPhase phase = pool::OpenPhase::tcp;
    while (libpq().PQstatus(raw) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
        if (const pool::OpenPhase next_phase = phase_of(libpq().PQstatus(raw));
            next_phase != phase) {
            phase = next_phase;
            phases.enter(phase);
        }
        const Wait wait = wait_for_socket(
            libpq().PQsocket(raw), next == PGRES_POLLING_WRITING, deadline, connection->signal_);
        if (wait != Wait::ready) {
            throw ConnectionLost(
                Outcome::not_applied,
                fmt::format("opening a connection {} at stage {}; check that the server answers",
                            wait == Wait::stopped ? "was stopped" : "took too long",
                            to_string(phase)));
        }
        next = libpq().PQconnectPoll(raw);
        if (next == PGRES_POLLING_FAILED) {
            break;
        }
    }
    if (libpq().PQstatus(raw) != CONNECTION_OK) {
        throw opening_failed(raw, phase);
    }
    libpq().PQsetnonblocking(raw, 1);
    libpq().PQsetNoticeProcessor(raw, [](void*, const char*) {}, nullptr);
    connection->signal_.reset();
    connection->on_close_ = std::move(on_close);
    return connection;
}

bool Connection::usable() noexcept {
    if (libpq().PQstatus(raw_) != CONNECTION_OK) {
        return false;
    }
    pollfd watched{.fd = libpq().PQsocket(raw_), .events = POLLIN, .revents = 0};
    // No query is open, so anything to read is the server's goodbye, or an idle notice.
    if (poll(&watched, 1, 0) == 0) {
        return true;
    }
    return libpq().PQconsumeInput(raw_) == 1 && libpq().PQstatus(raw_) == CONNECTION_OK &&
           poll(&watched, 1, 0) == 0 && libpq().PQisBusy(raw_) == 0;
}

ResultPtr Connection::ask(const std::string& text, Deadline deadline, const Dialect& dialect) {
    const auto lost = [] {
        return ConnectionLost(Outcome::not_applied, "the connection to the server was lost");
    };
    if (libpq().PQsendQuery(raw_, text.c_str()) == 0 || libpq().PQflush(raw_) < 0) {
        throw lost();
    }
    ResultPtr answer;
    std::optional<DatabaseError> failure;
    for (;;) {
        while (libpq().PQisBusy(raw_) != 0) {
            const Wait wait = wait_for_socket(
                libpq().PQsocket(raw_), libpq().PQflush(raw_) > 0, deadline, signal_);
            // What a server says before it hangs up is still to be read.
            if (wait != Wait::ready ||
                (libpq().PQconsumeInput(raw_) == 0 && libpq().PQisBusy(raw_) != 0)) {
                throw lost();
            }
        }
        ResultPtr result(libpq().PQgetResult(raw_));
        if (result == nullptr) {
            break;
        }
        if (libpq().PQresultStatus(result.get()) == PGRES_FATAL_ERROR && !failure) {
            if (field(result.get(), PG_DIAG_SQLSTATE).empty()) {
                throw lost();
            }
            failure = server_error(result.get(), dialect, fmt::format("'{}'", text), false);
        }
        answer = std::move(result);
    }
    if (failure) {
        throw DatabaseError(*failure);
    }
    return answer;
}

Connection::Prepared& Connection::prepared(const Rendered* statement, std::span<const Param> args) {
    auto& variants = prepared_[statement];
    const std::vector<Oid> types = types_of(args);
    for (Prepared* const variant : variants) {
        if (variant->types == types) {
            return *variant;
        }
    }
    const std::string name = statement_name(statement->text, types, generation_);
    const auto shared =
        by_name_.try_emplace(name, Prepared{.name = name, .types = types, .ready = false});
    variants.push_back(&shared.first->second);
    return *variants.back();
}

pool::OpenError to_open_error(const DatabaseError& error) {
    pool::OpenError failed(failure_class(error), error.code(), error.what());
    failed.set_cause(std::make_exception_ptr(error));
    failed.set_sqlstate(std::string(error.state().text()));
    return failed;
}

DatabaseError server_error(const PGresult* result,
                           const Dialect& dialect,
                           const std::string& where,
                           bool at_commit) {
    const std::string_view text = field(result, PG_DIAG_SQLSTATE);
    const SqlState state{text};
    const std::string_view primary = field(result, PG_DIAG_MESSAGE_PRIMARY);
    std::string message =
        fmt::format("{} failed: {} (SQLSTATE {}){}",
                    where,
                    one_line(primary.empty() ? libpq().PQresultErrorMessage(result) : primary),
                    text,
                    cure(text));
    ErrorClass error_class = classify(state);
    Outcome outcome = Outcome::not_applied;
    if (dialect.internal_errors_pass && text == "XX000") {
        // An internal error of that service says nothing about a commit; before it, nothing is
        // applied.
        if (at_commit) {
            outcome = Outcome::unknown;
        } else {
            error_class = ErrorClass::retryable;
        }
    }
    // A read-only server has refused the write; a server that goes away has not answered.
    if (error_class == ErrorClass::connection_lost && at_commit && text != "25006") {
        outcome = Outcome::unknown;
    }
    DatabaseError error(error_class, state, outcome, std::move(message));
    for (const std::string_view annotation : {"OC000", "OC001"}) {
        if (error_class == ErrorClass::retryable &&
            primary.find(annotation) != std::string_view::npos) {
            error.set_annotation(std::string(annotation));
        }
    }
    return error;
}

}  // namespace holdfast::sql::postgres

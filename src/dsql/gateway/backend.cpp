#include "gateway/backend.hpp"

#include <array>
#include <charconv>

#include <fmt/core.h>
#include <libpq-fe.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/sql/error.hpp>

namespace holdfast::dsql {

namespace {

constexpr std::chrono::milliseconds patience{5};
constexpr std::size_t portion = std::size_t{64} << 10U;

[[noreturn]] void gone() {
    throw sql::ConnectionLost(Outcome::unknown, "the PostgreSQL below the gateway is gone");
}

[[noreturn]] void fail(const ServerError& error) {
    throw sql::DatabaseError(
        sql::SqlState(error.code), Outcome::not_applied, std::string(error.message));
}

constexpr std::array reported{"server_encoding",
                              "client_encoding",
                              "application_name",
                              "is_superuser",
                              "session_authorization",
                              "DateStyle",
                              "IntervalStyle",
                              "TimeZone",
                              "integer_datetimes",
                              "standard_conforming_strings",
                              "in_hot_standby",
                              "default_transaction_read_only"};

std::string doubled(std::string_view text, char quote) {
    std::string result(1, quote);
    for (const char c : text) {
        result += c;
        if (c == quote) {
            result += c;
        }
    }
    return result + quote;
}

}  // namespace

std::int64_t Answer::rows() const {
    if (completion.size() < 6 || completion[0] != 'C') {
        return 0;
    }
    const std::string_view tag = std::string_view(completion).substr(5, completion.size() - 6);
    const std::string_view last = tag.substr(tag.rfind(' ') + 1);
    std::int64_t rows = 0;
    std::from_chars(last.data(), last.data() + last.size(), rows);
    return rows;
}

void Backend::Close::operator()(PGconn* connection) const noexcept {
    PQfinish(connection);
}

Backend::Backend(const std::string& upstream, const Params& params) {
    std::vector<const char*> names{"dbname"};
    std::vector<const char*> values{upstream.c_str()};
    for (const auto& [name, value] : params) {
        names.push_back(name.c_str());
        values.push_back(value.c_str());
    }
    names.push_back(nullptr);
    values.push_back(nullptr);
    connection_.reset(PQconnectdbParams(names.data(), values.data(), 1));
    if (PQstatus(connection_.get()) != CONNECTION_OK) {
        const std::string message =
            fmt::format("the PostgreSQL below the gateway cannot be reached: {}",
                        PQerrorMessage(connection_.get()));
        if (PQconnectionUsedPassword(connection_.get()) != 0) {
            throw PasswordRefused(Outcome::not_applied, message);
        }
        throw sql::ConnectionLost(Outcome::not_applied, message);
    }
    pid_ = PQbackendPID(connection_.get());
    channel_ = Channel(PQsocket(connection_.get()));
    channel_.secure(static_cast<SSL*>(PQgetssl(connection_.get())));
}

Backend::~Backend() = default;

std::string Backend::password() const {
    const char* password = PQpass(connection_.get());
    return password == nullptr ? std::string{} : std::string(password);
}

std::string Backend::verifier_of(std::string_view role, const std::string& password) const {
    const std::unique_ptr<char, decltype(&PQfreemem)> made(
        PQencryptPasswordConn(
            connection_.get(), password.c_str(), std::string(role).c_str(), "scram-sha-256"),
        &PQfreemem);
    if (!made) {
        throw sql::ConnectionLost(Outcome::not_applied,
                                  "the password of a role cannot be made; libpq is out of memory");
    }
    return made.get();
}

std::vector<std::pair<std::string, std::string>> Backend::parameters() const {
    std::vector<std::pair<std::string, std::string>> found;
    for (const char* name : reported) {
        if (const char* value = PQparameterStatus(connection_.get(), name); value != nullptr) {
            found.emplace_back(name, value);
        }
    }
    return found;
}

// A server that is sending answers does not read before they are taken, and one that waits for a
// lock does not read either.
void Backend::send(std::string_view bytes, const std::function<void()>& waiting) {
    using namespace std::chrono_literals;
    while (!bytes.empty()) {
        const auto size = channel_.write_some(bytes);
        if (!size) {
            gone();
        }
        bytes.remove_prefix(*size);
        if (*size > 0) {
            continue;
        }
        if (channel_.readable(0ms)) {
            receive();
        } else if (!channel_.usable(patience) && waiting) {
            waiting();
        }
    }
}

void Backend::receive() {
    std::array<char, portion> bytes;  // NOLINT(*-member-init): filled by the read.
    const std::size_t size = channel_.read(bytes);
    if (size == 0) {
        gone();
    }
    stream_.append({bytes.data(), size});
}

Message Backend::next(const std::function<void()>& waiting) {
    while (true) {
        if (const auto message = stream_.next()) {
            return *message;
        }
        while (waiting && !channel_.readable(patience)) {
            waiting();
        }
        receive();
    }
}

Answer Backend::exchange(std::string_view bytes,
                         const std::function<void(const Message&)>& each,
                         const std::function<void()>& waiting) {
    return converse(
        bytes,
        [&each](const Message& message) {
            if (each && !ends_statement(message.type)) {
                each(message);
            }
        },
        waiting);
}

Answer Backend::converse(std::string_view bytes,
                         const std::function<void(const Message&)>& each,
                         const std::function<void()>& waiting) {
    if (!settled() && bytes.starts_with('Q')) {
        settle();  // A Query does not mix with steps that have no Sync yet.
    }
    if (exchanges_ != nullptr) {
        ++*exchanges_;
    }
    if (settled()) {
        send(bytes, waiting);
    } else {
        send(prepended_bytes_.append(bytes), waiting);
    }
    Answer answer;
    while (true) {
        const Message message = next(waiting);
        if (message.type == 'Z') {
            answer.status = message.body.empty() ? 'I' : message.body[0];
            HOLDFAST_ASSERT(settled());
            return answer;
        }
        if (!settled()) {
            skip_prepended(message);
            continue;
        }
        if (message.type == 'E') {
            answer.error = message.body;
            continue;
        }
        if (ends_statement(message.type)) {
            answer.completion = message.bytes;
        }
        each(message);
    }
}

void Backend::prepend(std::initializer_list<std::string_view> statements) {
    for (const std::string_view sql : statements) {
        append_own(prepended_bytes_, sql);
        ++prepended_;
    }
}

void Backend::settle() {
    if (!settled()) {
        std::string bytes;
        append_sync(bytes);
        must(exchange(bytes, {}));
    }
}

// Consumes an answer to a prepended statement.
void Backend::skip_prepended(const Message& message) {
    if (message.type == 'E') {
        fail(ServerError::read(message.body));
    }
    if (ends_statement(message.type) && --prepended_ == 0) {
        prepended_bytes_.clear();
    }
}

Answer Backend::run(std::initializer_list<std::string_view> statements) {
    std::string bytes;
    for (const std::string_view sql : statements) {
        append_own(bytes, sql);
    }
    append_sync(bytes);
    return exchange(bytes, {});
}

Table Backend::query(std::string_view sql) {
    Table rows;
    std::string bytes;
    append_own(bytes, sql);
    append_sync(bytes);
    const Answer answer = exchange(bytes, [&rows](const Message& message) {
        if (message.type != 'D') {
            return;
        }
        BodyReader body(message.body);
        Cells& row = rows.emplace_back(static_cast<std::size_t>(body.int16()));
        for (auto& cell : row) {
            if (const std::int32_t size = body.int32(); size >= 0) {
                cell = body.bytes(static_cast<std::size_t>(size));
            }
        }
    });
    must(answer);
    return rows;
}

void Backend::script(std::string_view sql) {
    std::string bytes;
    append_message(bytes, 'Q', BodyWriter().text(sql).body());
    must(exchange(bytes, {}));
}

const std::string& text_of(const Cells& row, std::size_t column) {
    const std::optional<std::string>& cell = row.at(column);
    HOLDFAST_ASSERT(cell.has_value());
    return *cell;
}

void must(const Answer& answer) {
    if (!answer.ok()) {
        fail(answer.what());
    }
}

void append_close_own(std::string& bytes) {
    append_message(bytes, 'C', BodyWriter().bytes("P").text(own_name).body());
    append_message(bytes, 'C', BodyWriter().bytes("S").text(own_name).body());
}

void append_own(std::string& bytes, std::string_view sql) {
    append_close_own(bytes);
    append_message(bytes, 'P', BodyWriter().text(own_name).text(sql).int16(0).body());
    append_message(
        bytes, 'B', BodyWriter().text(own_name).text(own_name).int16(0).int16(0).int16(0).body());
    append_message(bytes, 'E', BodyWriter().text(own_name).int32(0).body());
}

void append_sync(std::string& bytes) {
    append_message(bytes, 'S', {});
}

std::string quoted_name(std::string_view name) {
    return doubled(name, '"');
}

std::string quoted_text(std::string_view text) {
    // A backslash means nothing in an ordinary literal: the gateway keeps
    // standard_conforming_strings on, and clients cannot turn it off.
    return doubled(text, '\'');
}

std::string oid_of(std::string_view schema, std::string_view relation) {
    return fmt::format(
        "(SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace WHERE n.nspname = {} AND c.relname = {})",
        quoted_text(schema),
        quoted_text(relation));
}

}  // namespace holdfast::dsql

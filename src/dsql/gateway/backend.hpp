// One connection to the PostgreSQL below. libpq logs in; after that we speak the protocol
// ourselves, because a message that only passes through must not be taken apart and put together
// again.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/wire/channel.hpp"
#include "gateway/wire/error_response.hpp"

#include <holdfast/dsql/wire.hpp>
#include <holdfast/sql/error.hpp>

typedef struct pg_conn PGconn;  // NOLINT(modernize-use-using): as libpq declares it.

namespace holdfast::dsql {

// What came back for one or more messages up to a Sync, or for one Query.
struct Answer {
    std::string error;       // The body of the ErrorResponse; empty if all went well.
    std::string completion;  // The last message that ended a statement, whole: C, I or s.
    char status = 'I';       // Of the transaction: I idle, T open, E failed.

    [[nodiscard]] bool ok() const noexcept { return error.empty(); }
    [[nodiscard]] ServerError what() const { return ServerError::read(error); }
    // "UPDATE 3": the number; zero if there is none.
    [[nodiscard]] std::int64_t rows() const;
};

// The server has asked for a password and has not let us in with ours.
class PasswordRefused : public sql::ConnectionLost {
public:
    using sql::ConnectionLost::ConnectionLost;
};

// Throws sql::ConnectionLost when the server below is gone; nothing can be said to the client then.
class Backend {
public:
    using Params = std::map<std::string, std::string, std::less<>>;

    Backend(const std::string& upstream, const Params& params);
    ~Backend();
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;

    [[nodiscard]] int pid() const noexcept { return pid_; }
    // The password of this login, and what a server may keep of the password of a role.
    [[nodiscard]] std::string password() const;
    [[nodiscard]] std::string verifier_of(std::string_view role, const std::string& password) const;
    // What a server tells of itself at the start.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> parameters() const;

    // Sends what ends in a Sync or is a Query, and hands each message of the answer to `each`,
    // except errors, the end of a statement and the final ReadyForQuery. Calls `waiting` whenever
    // nothing has come for a while.
    Answer exchange(std::string_view bytes,
                    const std::function<void(const Message&)>& each,
                    const std::function<void()>& waiting = {});
    // The same, and `each` hears of the ends of statements too.
    Answer converse(std::string_view bytes,
                    const std::function<void(const Message&)>& each,
                    const std::function<void()>& waiting = {});
    // Statements of our own that cannot fail and need no answer: they travel with the next
    // exchange, before what that one brings. settle() makes one for them if there are any.
    void prepend(std::initializer_list<std::string_view> statements);
    [[nodiscard]] bool settled() const noexcept { return prepended_ == 0; }
    void settle();
    // Steps of our own, one statement each, without rows. The first that fails is the last.
    Answer run(std::initializer_list<std::string_view> statements);
    // The cells of a query's rows; throws what went wrong.
    [[nodiscard]] std::vector<std::vector<std::optional<std::string>>> query(std::string_view sql);
    // Any number of statements; throws what went wrong. Forgets the client's unnamed statement.
    void script(std::string_view sql);

    // How many exchanges there were is added up there from now on.
    void count_in(std::atomic<std::int64_t>& exchanges) noexcept { exchanges_ = &exchanges; }

private:
    struct Close {
        void operator()(PGconn* connection) const noexcept;
    };
    void send(std::string_view bytes, const std::function<void()>& waiting);
    void receive();
    [[nodiscard]] Message next(const std::function<void()>& waiting);
    void skip_prepended(const Message& message);

    std::unique_ptr<PGconn, Close> connection_;
    int pid_ = 0;
    Channel channel_{-1};
    MessageStream stream_{Opening::typed};
    std::string prepended_bytes_;
    int prepended_ = 0;  // Statements.
    std::atomic<std::int64_t>* exchanges_ = nullptr;
};

// Of the statement and the portal that the gateway uses for itself.
inline constexpr std::string_view own_name = "_holdfast_gateway";

// The last message about a statement that went well, or as far as its client wanted.
[[nodiscard]] constexpr bool ends_statement(char type) noexcept {
    return type == 'C' || type == 'I' || type == 's';
}

// For steps that cannot fail: throws what went wrong nevertheless.
void must(const Answer& answer);

// Forgets what the last use of that name has left, even in a failed transaction.
void append_close_own(std::string& bytes);

// What runs one statement of our own. A Query would do it too, but would forget the client's
// unnamed statement.
void append_own(std::string& bytes, std::string_view sql);
// The end of an exchange.
void append_sync(std::string& bytes);

// A name, or a text, as SQL.
[[nodiscard]] std::string quoted_name(std::string_view name);
[[nodiscard]] std::string quoted_text(std::string_view text);
// An expression for the oid of a relation, or NULL. Unlike to_regclass() it needs no right to use
// the schema.
[[nodiscard]] std::string oid_of(std::string_view schema, std::string_view relation);

}  // namespace holdfast::dsql

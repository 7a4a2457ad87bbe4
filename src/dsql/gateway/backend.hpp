// One connection to the PostgreSQL below. libpq logs in; after that this class speaks the protocol
// itself, because messages that only pass through must not be decoded and encoded again.
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

// The server has asked for a password and has refused the given one.
class PasswordRefused : public sql::ConnectionLost {
public:
    using sql::ConnectionLost::ConnectionLost;
};

// The cells of one row; one that is NULL is empty.
using Cells = std::vector<std::optional<std::string>>;
using Table = std::vector<Cells>;

// Requires: the row has the column, and it is not NULL there.
[[nodiscard]] const std::string& text_of(const Cells& row, std::size_t column);

// Throws sql::ConnectionLost when the server below is gone; the client gets no answer then.
class Backend {
public:
    using Params = std::map<std::string, std::string, std::less<>>;

    Backend(const std::string& upstream, const Params& params);
    ~Backend();
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;

    [[nodiscard]] int pid() const noexcept { return pid_; }
    // The password of this login, and the stored form of a role's password.
    [[nodiscard]] std::string password() const;
    [[nodiscard]] std::string verifier_of(std::string_view role, const std::string& password) const;
    // The parameters that the server reports at the start.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> parameters() const;

    // Sends what ends in a Sync or is a Query, and hands each message of the answer to `each`,
    // except errors, the end of a statement and the final ReadyForQuery. Calls `waiting` whenever
    // nothing has come for a while.
    Answer exchange(std::string_view bytes,
                    const std::function<void(const Message&)>& each,
                    const std::function<void()>& waiting = {});
    // The same, and `each` also gets the ends of statements.
    Answer converse(std::string_view bytes,
                    const std::function<void(const Message&)>& each,
                    const std::function<void()>& waiting = {});
    // Statements of the gateway that cannot fail and need no answer: they are sent with the next
    // exchange, before its own messages. settle() sends them at once if there are any.
    void prepend(std::initializer_list<std::string_view> statements);
    [[nodiscard]] bool settled() const noexcept { return prepended_ == 0; }
    void settle();
    // Statements of the gateway, one by one, without rows. Stops at the first that fails.
    Answer run(std::initializer_list<std::string_view> statements);
    // The rows of a query; throws the error.
    [[nodiscard]] Table query(std::string_view sql);
    // Any number of statements; throws the error. Drops the client's unnamed statement.
    void script(std::string_view sql);

    // Counts exchanges there from now on.
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

// The name of the statement and the portal that the gateway uses for itself.
inline constexpr std::string_view own_name = "_holdfast_gateway";

// The last message of a statement that succeeded, or reached the client's row limit.
[[nodiscard]] constexpr bool ends_statement(char type) noexcept {
    return type == 'C' || type == 'I' || type == 's';
}

// For steps that should not fail: throws the error if one does.
void must(const Answer& answer);

// Closes what the last use of that name has left, even in a failed transaction.
void append_close_own(std::string& bytes);

// The messages that run one statement of the gateway. A Query would do it too, but would drop the
// client's unnamed statement.
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

// Statements, as constants.
//
// A statement's text is known when the program is compiled, so it cannot be glued together from
// pieces at run time, and an unknown hole does not compile. Every floor lists its statements in a
// catalogue; tests read the catalogues and check each statement against the rules.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/sql/dialect.hpp>
#include <holdfast/sql/table_names.hpp>
#include <holdfast/sql/value.hpp>

namespace holdfast::sql {

namespace detail {

// Does not compile when called in a constant expression; the name is the message.
inline void statement_needs_a_name_and_a_text() {}
inline void statement_has_an_unknown_hole() {}

constexpr void check_statement(std::string_view name, std::string_view text) {
    if (name.empty() || text.empty()) {
        statement_needs_a_name_and_a_text();
    }
    for (std::size_t at = text.find('{'); at != std::string_view::npos;
         at = text.find('{', at + 1)) {
        const std::size_t end = text.find('}', at);
        if (end == std::string_view::npos ||
            (!is_statement_hole(text.substr(at + 1, end - at - 1)) &&
             !is_table_hole(text.substr(at + 1, end - at - 1)))) {
            statement_has_an_unknown_hole();
        }
    }
}

}  // namespace detail

// One statement: `constexpr Statement find{"ledger.find", "SELECT ... WHERE id = $1"};`
class Statement {
public:
    consteval Statement(std::string_view name, std::string_view text) : name_(name), text_(text) {
        detail::check_statement(name, text);
    }

    [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }
    [[nodiscard]] constexpr std::string_view text() const noexcept { return text_; }

    // The same statement with its {table.x} holes bound to chosen names, which are lent: they must
    // live until the call returns.
    [[nodiscard]] constexpr auto with(const TableNames& names) const noexcept -> Statement {
        Statement bound = *this;
        bound.names_ = &names;
        return bound;
    }
    // Null: none were chosen.
    [[nodiscard]] constexpr const TableNames* names() const noexcept { return names_; }

private:
    std::string_view name_;
    std::string_view text_;
    const TableNames* names_ = nullptr;
};

// A write that applies only while its guard holds. Its first parameters are the guard's key, then
// come the guard's tokens, which the WHERE clause compares, then the other arguments:
//
//   constexpr FencedStatement save{
//       "shard.save", "UPDATE shards SET data = $3 WHERE shard_id = $1 AND range_id = $2",
//       "SELECT range_id FROM shards WHERE shard_id = $1"};
//
// `found` reads the tokens that are really there, by the guard's key; it runs only when the guard
// was lost, to say so in the error.
//
// The write itself is private: it is sent by `Tx::fenced` and its siblings, which look at how many
// rows it changed. Without its guard it does not compile.
class FencedStatement {
public:
    consteval FencedStatement(std::string_view name, std::string_view text, std::string_view found)
        : write_(name, text), found_(name, found) {}

    [[nodiscard]] constexpr std::string_view name() const noexcept { return write_.name(); }
    [[nodiscard]] constexpr const Statement& found() const noexcept { return found_; }

private:
    friend class Engine;
    friend class Tx;
    friend struct CatalogueReader;  // For tests that check the text of every statement.

    [[nodiscard]] constexpr const Statement& write() const noexcept { return write_; }

    Statement write_;
    Statement found_;
};

// A query whose text is made at run time, which only the filters of visibility need: they have
// unlimited shapes. Every value is a parameter. The database reads the text anew for
// each call and keeps nothing of it, so that shapes do not pile up.
struct BuiltQuery {
    std::string_view name;
    std::string text;         // A SELECT.
    std::vector<Param> args;  // Lent, as all parameters are.
};

// What the caller believes about one row: the row with this key still has these tokens. The tokens
// come from the owner of the row, or from a locked read of this transaction.
struct Guard {
    std::string what;           // "shard 7", for the error.
    std::vector<Owned> key;     // The row.
    std::vector<Owned> tokens;  // What it must still hold.

    friend bool operator==(const Guard&, const Guard&) = default;
};

// A table whose rows are only ever changed under a guard, and the columns that hold its tokens.
// Without tokens the guard is the row's lock: the row must exist when the transaction verifies it.
struct GuardedTable {
    std::string_view table;
    std::span<const std::string_view> tokens;
    // True: a plain DELETE may remove a row. Every writer that comes later then loses its guard.
    bool plain_delete = false;
};

// All statements of one floor.
struct Catalogue {
    std::string_view floor;
    std::span<const Statement* const> statements;
    std::span<const FencedStatement* const> fenced;
    std::span<const GuardedTable> guarded;
    // Sent to PostgreSQL alone: they may change rows inside WITH and take weaker row locks.
    std::span<const Statement* const> postgres_only{};
    const TableNames* names = nullptr;  // For the {table.x} holes, if there are any.
};

namespace detail {

inline void plain_statement_changes_a_guarded_table() {}

// The name behind `verb` if `text` begins with it, else nothing.
constexpr std::string_view table_after(std::string_view verb, std::string_view text) {
    if (!text.starts_with(verb)) {
        return {};
    }
    text.remove_prefix(verb.size());
    return text.substr(0, text.find_first_of(" (\n"));
}

constexpr void check_plain(std::string_view text, std::span<const GuardedTable> guarded) {
    const bool upsert = text.find("DO UPDATE") != std::string_view::npos;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != 'U' && text[at] != 'D' && text[at] != 'I') {
            continue;
        }
        const std::string_view rest = text.substr(at);
        const std::string_view deleted = table_after("DELETE FROM ", rest);
        std::string_view changed = table_after("UPDATE ", rest);
        if (upsert && changed.empty()) {
            changed = table_after("INTO ", rest);
        }
        for (const GuardedTable& table : guarded) {
            if (table.table == changed || (table.table == deleted && !table.plain_delete)) {
                plain_statement_changes_a_guarded_table();
            }
        }
    }
}

}  // namespace detail

// The catalogue itself. A plain statement that changes a guarded table does not compile.
[[nodiscard]] consteval Catalogue checked(const Catalogue& catalogue) {
    for (const Statement* statement : catalogue.statements) {
        detail::check_plain(statement->text(), catalogue.guarded);
    }
    return catalogue;
}

// A clock's reading that is bound as a parameter: {now_us}, {lease_us}, {lease_epoch_us}.
enum class ClockReading : std::uint8_t { now, lease, lease_epoch };

// A statement's text with its holes filled for one dialect and its parameters in that dialect's
// spelling.
struct Rendered {
    std::string name;
    std::string text;
    std::size_t arguments = 0;           // How many the caller brings.
    std::vector<ClockReading> clocks{};  // The parameters that follow them.
    bool writes = false;                 // It is not a plain SELECT.
    bool once = false;                   // Made for one call, which keeps nothing of it.
};

// Requires: parameters are $1..$n without a gap, and `names` knows every {table.x}. Else
// invalid_argument.
[[nodiscard]] Rendered render(const Dialect& dialect,
                              std::string_view name,
                              std::string_view text,
                              const TableNames* names = nullptr);

}  // namespace holdfast::sql

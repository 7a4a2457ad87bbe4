// SQL text as tokens, by PostgreSQL's lexical rules.
//
// What the parser cannot do for us: find the words that only Aurora DSQL knows, cut a text into its
// statements, and cut pieces out of a statement as they were written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace holdfast::dsql {

struct SqlToken {
    enum class Kind : std::uint8_t {
        word,       // A key word or a plain name.
        quoted,     // "a name"
        string,     // '...', E'...', $tag$...$tag$, X'...'
        number,     // 1, 1.5e3, 1_000
        parameter,  // $1
        symbol,     // One character of an operator, a bracket, a comma.
    };
    Kind kind = Kind::symbol;
    std::uint32_t depth = 0;  // Of the round and square brackets that are open around it.
    std::size_t begin = 0;
    std::size_t end = 0;
};

// The tokens of one statement, without the `;` that ends it.
struct StatementTokens {
    std::vector<SqlToken> tokens;
    std::size_t next = 0;  // Where the following statement's text begins.
    bool ended = false;    // By a `;`, not by the end of the text.
};

// A `;` inside brackets, or inside the body of a function that begins with BEGIN ATOMIC, does not
// end a statement. Text that ends inside a string or a comment ends the token there: the parser
// will say what is wrong with it.
[[nodiscard]] StatementTokens next_statement(std::string_view sql, std::size_t from);

// Where the next token begins: behind spaces and comments. The size of the text if there is none.
[[nodiscard]] std::size_t skip_blanks(std::string_view sql, std::size_t from);

// Whether the token is this word. Requires: `word` in upper case.
[[nodiscard]] bool is_word(std::string_view sql, const SqlToken& token, std::string_view word);
[[nodiscard]] bool is_symbol(std::string_view sql, const SqlToken& token, char symbol);

}  // namespace holdfast::dsql

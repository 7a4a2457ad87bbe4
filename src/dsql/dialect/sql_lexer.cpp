#include "dialect/sql_lexer.hpp"

#include <algorithm>

namespace holdfast::dsql {
namespace {

bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool begins_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}
bool continues_word(char c) {
    return begins_word(c) || is_digit(c) || c == '$';
}
char upper(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

class Lexer {
public:
    Lexer(std::string_view sql, std::size_t from) : sql_(sql), at_(from) {}

    StatementTokens statement() {
        StatementTokens result;
        while (skip_blanks(), at_ < sql_.size()) {
            if (sql_[at_] == ';' && depth_ == 0 && !in_body_) {
                result.next = at_ + 1;
                result.ended = true;
                return result;
            }
            result.tokens.push_back(token());
            follow_body(result.tokens);
        }
        result.next = sql_.size();
        return result;
    }

    std::size_t behind_blanks() {
        skip_blanks();
        return at_;
    }

private:
    [[nodiscard]] char peek(std::size_t ahead = 0) const {
        return at_ + ahead < sql_.size() ? sql_[at_ + ahead] : '\0';
    }
    [[nodiscard]] bool sees(std::string_view text) const {
        return sql_.substr(at_, text.size()) == text;
    }

    void skip_line() {
        const std::size_t end = sql_.find_first_of("\r\n", at_);
        at_ = end == std::string_view::npos ? sql_.size() : end;
    }

    void skip_comment() {  // They nest.
        std::size_t open = 0;
        do {
            if (sees("/*")) {
                ++open;
                at_ += 2;
            } else if (sees("*/")) {
                --open;
                at_ += 2;
            } else {
                ++at_;
            }
        } while (open > 0 && at_ < sql_.size());
    }

    void skip_blanks() {
        while (at_ < sql_.size()) {
            if (is_space(sql_[at_])) {
                ++at_;
            } else if (sees("--")) {
                skip_line();
            } else if (sees("/*")) {
                skip_comment();
            } else {
                return;
            }
        }
    }

    // Behind the closing quote; a doubled one is part of the text.
    void skip_quoted(char quote, bool backslashes) {
        ++at_;
        while (at_ < sql_.size()) {
            if (backslashes && sql_[at_] == '\\') {
                at_ = std::min(at_ + 2, sql_.size());
            } else if (sql_[at_] != quote) {
                ++at_;
            } else if (peek(1) == quote) {
                at_ += 2;
            } else {
                ++at_;
                return;
            }
        }
    }

    // A string goes on after a line break, and keeps the meaning of its backslashes.
    void skip_string(bool backslashes) {
        skip_quoted('\'', backslashes);
        while (at_ < sql_.size()) {
            const std::size_t end = at_;
            bool new_line = false;
            while (at_ < sql_.size() && (is_space(sql_[at_]) || sees("--"))) {
                if (sql_[at_] == '-') {
                    skip_line();
                } else {
                    new_line = new_line || sql_[at_] == '\n' || sql_[at_] == '\r';
                    ++at_;
                }
            }
            if (!new_line || peek() != '\'') {
                at_ = end;
                return;
            }
            skip_quoted('\'', backslashes);
        }
    }

    // Behind `$tag$ ... $tag$` if that begins here.
    bool skip_dollar_string() {
        std::size_t end = at_ + 1;
        if (end < sql_.size() && begins_word(sql_[end])) {
            while (end < sql_.size() && continues_word(sql_[end]) && sql_[end] != '$') {
                ++end;
            }
        }
        if (end >= sql_.size() || sql_[end] != '$') {
            return false;
        }
        const std::string_view tag = sql_.substr(at_, end + 1 - at_);
        const std::size_t close = sql_.find(tag, end + 1);
        at_ = close == std::string_view::npos ? sql_.size() : close + tag.size();
        return true;
    }

    void skip_number() {
        const auto digits = [this] {
            while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1)))) {
                ++at_;
            }
        };
        digits();
        if (peek() == '.' && peek(1) != '.') {
            ++at_;
            digits();
        }
        if (upper(peek()) == 'E' &&
            (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2))))) {
            at_ += 2;
            digits();
        }
    }

    SqlToken token() {
        SqlToken token{.depth = depth_, .begin = at_};
        const char c = sql_[at_];
        const bool prefixed = peek(1) == '\'';
        if (c == '\'') {
            token.kind = SqlToken::Kind::string;
            skip_string(false);
        } else if (prefixed && std::string_view("eEbBxXnN").find(c) != std::string_view::npos) {
            token.kind = SqlToken::Kind::string;
            ++at_;
            skip_string(upper(c) == 'E');
        } else if (upper(c) == 'U' && peek(1) == '&' && (peek(2) == '\'' || peek(2) == '"')) {
            const bool string = peek(2) == '\'';
            token.kind = string ? SqlToken::Kind::string : SqlToken::Kind::quoted;
            at_ += 2;
            string ? skip_string(false) : skip_quoted('"', false);
        } else if (c == '"') {
            token.kind = SqlToken::Kind::quoted;
            skip_quoted('"', false);
        } else if (begins_word(c)) {
            token.kind = SqlToken::Kind::word;
            while (at_ < sql_.size() && continues_word(sql_[at_])) {
                ++at_;
            }
        } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
            token.kind = SqlToken::Kind::number;
            skip_number();
        } else if (c == '$' && is_digit(peek(1))) {
            token.kind = SqlToken::Kind::parameter;
            ++at_;
            while (is_digit(peek())) {
                ++at_;
            }
        } else if (c == '$' && skip_dollar_string()) {
            token.kind = SqlToken::Kind::string;
        } else {
            symbol(token);
        }
        token.end = at_;
        return token;
    }

    void symbol(SqlToken& token) {
        const char c = sql_[at_];
        ++at_;
        if (c == '(' || c == '[') {
            ++depth_;
        } else if ((c == ')' || c == ']') && depth_ > 0) {
            token.depth = --depth_;
        }
    }

    // CREATE FUNCTION ... BEGIN ATOMIC ...; ...; END: its statements are not ours.
    void follow_body(const std::vector<SqlToken>& tokens) {
        const SqlToken& last = tokens.back();
        if (last.kind != SqlToken::Kind::word || !is_word(sql_, tokens.front(), "CREATE")) {
            return;
        }
        if (is_word(sql_, last, "ATOMIC") && tokens.size() > 1 &&
            is_word(sql_, tokens[tokens.size() - 2], "BEGIN")) {
            in_body_ = true;
            cases_ = 0;
        } else if (in_body_ && is_word(sql_, last, "CASE")) {
            ++cases_;
        } else if (in_body_ && is_word(sql_, last, "END")) {
            in_body_ = cases_ > 0;
            cases_ -= in_body_ ? 1 : 0;
        }
    }

    std::string_view sql_;
    std::size_t at_;
    std::uint32_t depth_ = 0;
    bool in_body_ = false;
    std::size_t cases_ = 0;
};

}  // namespace

StatementTokens next_statement(std::string_view sql, std::size_t from) {
    return Lexer(sql, from).statement();
}

std::size_t skip_blanks(std::string_view sql, std::size_t from) {
    return Lexer(sql, from).behind_blanks();
}

bool is_word(std::string_view sql, const SqlToken& token, std::string_view word) {
    if (token.kind != SqlToken::Kind::word || token.end - token.begin != word.size()) {
        return false;
    }
    return std::equal(word.begin(), word.end(), sql.begin() + token.begin, [](char a, char b) {
        return a == upper(b);
    });
}

bool is_symbol(std::string_view sql, const SqlToken& token, char symbol) {
    return token.kind == SqlToken::Kind::symbol && sql[token.begin] == symbol;
}

}  // namespace holdfast::dsql

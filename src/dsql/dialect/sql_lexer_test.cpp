// The lexer cuts a text where PostgreSQL's own scanner does (docs/decisions/0009).
#include "dialect/sql_lexer.hpp"

#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <pg_query.h>

namespace holdfast::dsql {
namespace {

using Spans = std::vector<std::pair<std::size_t, std::size_t>>;

std::size_t take_varint(std::string_view& bytes) {
    std::size_t value = 0;
    for (unsigned shift = 0; !bytes.empty(); shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        value |= std::size_t{byte & 0x7fU} << shift;
        if (byte < 0x80U) {
            break;
        }
    }
    return value;
}

bool is_comment(std::string_view token) {
    return token.starts_with("--") || token.starts_with("/*");
}

// An operator is one token there and one symbol per character here.
bool is_operator(std::string_view token) {
    return token.find_first_not_of("()[],;:+-*/<>=~!@#%^&|`?.") == std::string_view::npos;
}

// A message of protobuf: ScanResult{tokens = 2: ScanToken{start = 1, end = 2, ...}}.
Spans spans_in(std::string_view message, std::string_view sql) {
    Spans spans;
    while (!message.empty()) {
        const std::size_t key = take_varint(message);
        const std::size_t value = take_varint(message);
        if (key != (2U << 3U | 2U)) {
            continue;
        }
        std::string_view token = message.substr(0, value);
        message.remove_prefix(value);
        std::pair<std::size_t, std::size_t> span;
        while (!token.empty()) {
            const std::size_t field = take_varint(token) >> 3U;
            const std::size_t number = take_varint(token);
            if (field == 1) {
                span.first = number;
            } else if (field == 2) {
                span.second = number;
            }
        }
        const std::string_view text = sql.substr(span.first, span.second - span.first);
        if (!is_comment(text) && !is_operator(text)) {
            spans.push_back(span);
        }
    }
    return spans;
}

// Empty if the scanner refuses the text.
std::optional<Spans> scanned(const std::string& sql) {
    const PgQueryScanResult result = pg_query_scan(sql.c_str());
    std::optional<Spans> spans;
    if (result.error == nullptr) {
        spans = spans_in({result.pbuf.data, result.pbuf.len}, sql);
    }
    pg_query_free_scan_result(result);
    return spans;
}

Spans cut(const std::string& sql) {
    Spans spans;
    for (std::size_t from = 0; from < sql.size();) {
        const StatementTokens statement = next_statement(sql, from);
        for (const SqlToken& token : statement.tokens) {
            if (token.kind != SqlToken::Kind::symbol) {
                spans.emplace_back(token.begin, token.end);
            }
        }
        from = statement.next;
    }
    return spans;
}

TEST(SqlLexer, CutsWherePostgresDoes) {
    for (const std::string sql : {
             "SELECT 1; SELECT 'a;b', \"c;d\" FROM t -- e;f",
             "SELECT /* a /* nested; */ b */ E'it\\'s', X'1F', b'01'",
             "SELECT $1, $tag$ $other$ ; $tag$, $$x$$ FROM a$b WHERE c=-1.5e-3",
             "SELECT 'goes'\n 'on', 'but' 'not'",
             "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE 1 WHEN 1 THEN 2 "
             "END; END",
             "SELECT .5, 1., a[1:2], x::int, j->>'k', \xc3\xa9t\xc3\xa9 FROM "
             "\"\xc3\xa9\"\"\"",
         }) {
        EXPECT_EQ(scanned(sql), cut(sql)) << sql;
    }
}

// Lint points into scripts that PostgreSQL cannot read, and DSQL is newer than the library.
TEST(SqlLexer, CutsWhatTheScannerRefuses) {
    EXPECT_EQ(scanned("SELECT 1; SELECT 'open"), std::nullopt);
    EXPECT_EQ(cut("SELECT 1; SELECT 'open"), (Spans{{0, 6}, {7, 8}, {10, 16}, {17, 22}}));
    EXPECT_EQ(scanned("SELECT 1_000"), std::nullopt);
    EXPECT_EQ(cut("SELECT 1_000"), (Spans{{0, 6}, {7, 12}}));
}

// The parser takes a comment between two parts of a string, the library's scanner does not.
TEST(SqlLexer, AStringGoesOnAfterACommentAndALineBreak) {
    EXPECT_EQ(cut("SELECT 'a' -- b\n 'c'"), (Spans{{0, 6}, {7, 20}}));
    EXPECT_EQ(cut("SELECT U&'d\\0061'"), (Spans{{0, 6}, {7, 17}}));
}

}  // namespace
}  // namespace holdfast::dsql

// Reads SQL as Aurora DSQL would, without a cluster.
//
// The text is a script: statements, each its own transaction unless BEGIN and
// COMMIT say otherwise, with the meta-commands and COPY data of psql skipped. Facts about a
// table come from the statements before in the same script.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::dsql {

enum class Severity {
    error,  // The service refuses it.
    hint,   // Accepted, but without effect, or refused by the guide or older versions.
};

// Bytes of the text to be replaced.
struct TextEdit {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string text;
};

struct Finding {
    std::size_t offset = 0;  // In bytes, from 0.
    std::size_t line = 1;
    std::size_t column = 1;  // In characters.
    std::string rule;        // A stable name; docs/dsql-lint.md lists them.
    Severity severity = Severity::error;
    std::string sqlstate;  // Of the refusal; empty for a hint.
    std::string reason;    // As the service words it.
    std::string rewrite;   // What to write instead, in a sentence.
    // The edits that `rewrite` describes; empty unless the result means the same.
    std::vector<TextEdit> fix;
};

// In the order of the text. Never throws for what the text says, whatever it is.
[[nodiscard]] std::vector<Finding> lint(std::string_view sql);

struct Fixed {
    std::string text;
    std::size_t fixes = 0;
    std::vector<Finding> left;  // Of the new text.
};

// Applies safe fixes until none is left.
[[nodiscard]] Fixed lint_fix(std::string_view sql);

}  // namespace holdfast::dsql

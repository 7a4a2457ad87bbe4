// Rewrites of statements that the service refuses.
#pragma once

#include <string_view>
#include <vector>

#include "dialect/statement_rules.hpp"

#include <holdfast/dsql/lint.hpp>

namespace holdfast::dsql {

// One sentence. Every rule has one.
[[nodiscard]] std::string_view rewrite_of(std::string_view rule, std::string_view message);

// The edits that fix one refusal of a statement, in the whole text. Empty unless they are safe.
[[nodiscard]] std::vector<TextEdit> fix_of(std::string_view sql,
                                           const CheckedStatement& statement,
                                           const Refusal& refusal);

}  // namespace holdfast::dsql

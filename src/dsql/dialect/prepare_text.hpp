// Prepares a statement for PostgreSQL's parser.
#pragma once

#include "dialect/rules_parts.hpp"

namespace holdfast::dsql {

// AWS IAM GRANT role TO 'arn' and AWS IAM REVOKE role FROM 'arn', which no PostgreSQL knows.
[[nodiscard]] bool check_iam(const Checking& checking);

// Takes ASYNC, a column's STORAGE and the _ of a number out of the text, leaving spaces.
// False if the statement must not be parsed at all: its tree would be deeper than the stack, or
// many times larger than its text. It is refused then.
[[nodiscard]] bool prepare_text(const Checking& checking);

}  // namespace holdfast::dsql

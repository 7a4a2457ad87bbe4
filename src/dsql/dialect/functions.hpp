// The functions of PostgreSQL's own that a client's statement may call.
#pragma once

#include <string_view>

namespace holdfast::dsql {

// True if the function, in all its forms, computes from its arguments, reads what its caller may
// read, or uses a sequence. Not in the list: what runs SQL from a text, reads or writes files and
// large objects, signals or locks, replicates, or changes a server.
[[nodiscard]] bool is_accepted_function(std::string_view name);

}  // namespace holdfast::dsql

// JSON as RFC 8259 has it, told with the place of everything: what a library of JSON keeps to
// itself, and what a parser of YAML cannot read (pairs of surrogates, long keys, tabs).
#pragma once

#include <string_view>

#include "scenario/tree.hpp"

namespace holdfast::sim {

// Tells `tree` of the document. Requires: UTF-8. Refused by `tree` if it is no JSON.
void read_json(std::string_view text, TreeBuilder& tree);

}  // namespace holdfast::sim

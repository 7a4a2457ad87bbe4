// What a scenario does with the tree of its document before it is read.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/base/document.hpp>

namespace holdfast::sim {

using Node = DocumentNode;

// Puts the fields of `weaker` below those of `stronger`: what only one has stays, maps are joined,
// and of anything else the stronger one's counts.
void merge_below(Node& stronger, const Node& weaker);

// Puts ${name} in every scalar to the value of that name. `variables` is a map of scalars; `path`
// names the node in messages.
void substitute(Node& node, const Node& variables, const std::string& path = {});

// Sets "a.b", "services[3].a" or "services[*].a". Requires: the path leads to a scalar, or to a
// place where one can be put. Else invalid_argument, naming the key. `place` is where the value
// comes from.
void set_value(Node& root,
               std::string_view key,
               const std::string& value,
               const std::string& place);

}  // namespace holdfast::sim

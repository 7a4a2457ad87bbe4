// A YAML or JSON document as a tree that remembers where everything stands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sim {

struct Node {
    enum class Kind { null, scalar, list, map };

    Kind kind = Kind::null;
    std::string scalar{};
    std::vector<Node> items{};                           // Of a list.
    std::vector<std::pair<std::string, Node>> fields{};  // Of a map, in file order.
    std::string place{};                                 // "fleet.yaml:12:3"

    [[nodiscard]] const Node* find(std::string_view key) const noexcept;
    [[nodiscard]] Node* find(std::string_view key) noexcept;
    // Adds it if it is missing.
    Node& at(const std::string& key);
    // Takes it out; an empty node if it is missing.
    Node take(std::string_view key);
};

// Requires: one document of text, without a key twice in a map. Else invalid_argument with the
// place.
[[nodiscard]] Node parse_document(const std::string& name, const std::string& text);

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

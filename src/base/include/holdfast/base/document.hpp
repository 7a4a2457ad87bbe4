// A YAML or JSON document as a tree that remembers where everything stands.
//
// For files that people write: every refusal is invalid_argument and names the file, line, column
// and key. A key twice in one map is refused. YAML's aliases and merges (`<<: *name`) are resolved,
// within bounds, because they make a small file mean a large one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {

struct DocumentNode {
    enum class Kind { null, scalar, list, map };

    Kind kind = Kind::null;
    std::string scalar{};
    std::vector<DocumentNode> items{};                           // Of a list.
    std::vector<std::pair<std::string, DocumentNode>> fields{};  // Of a map, in file order.
    std::string place{};                                         // "fleet.yaml:12:3"
    std::string key_place{};                                     // Of its key, if it is in a map.

    [[nodiscard]] const DocumentNode* find(std::string_view key) const noexcept;
    [[nodiscard]] DocumentNode* find(std::string_view key) noexcept;
    // Adds it if it is missing.
    DocumentNode& at(const std::string& key);
    // Takes it out; an empty node if it is missing.
    DocumentNode take(std::string_view key);
};

inline constexpr std::size_t document_depth_max = 16;
inline constexpr std::size_t document_nodes_max = 100'000;

// Parses `text` as JSON if `name` ends with .json, as YAML if it ends with .yaml or .yml, else as
// either. `name` is the file's, for messages; `nodes_max` bounds the tree.
// Requires: one document in UTF-8 (YAML also in UTF-16), or an empty text, which is a null node.
// Else invalid_argument.
[[nodiscard]] DocumentNode parse_document(const std::string& name,
                                          const std::string& text,
                                          std::size_t nodes_max = document_nodes_max);
// The same, but YAML whatever the name.
[[nodiscard]] DocumentNode parse_yaml(const std::string& name,
                                      const std::string& text,
                                      std::size_t nodes_max = document_nodes_max);

}  // namespace holdfast

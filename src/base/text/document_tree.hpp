// Builds the tree of a document from the events of a parser, for YAML or for JSON.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/base/document.hpp>

namespace holdfast {

// Where a parser is, counted from 1. Line 0: nowhere in particular.
struct DocumentMark {
    int line = 0;
    int column = 0;
};

using Anchor = std::size_t;  // What an alias can repeat.
inline constexpr Anchor no_anchor = 0;

// Every refusal is invalid_argument, with the place and the key that was being read.
class DocumentTree {
public:
    // `name` is the file's, for places.
    DocumentTree(std::string name, std::size_t nodes_max)
        : name_(std::move(name)), nodes_max_(nodes_max) {}

    void null(DocumentMark mark, Anchor anchor = no_anchor);
    void scalar(DocumentMark mark, std::string value, Anchor anchor = no_anchor);
    void alias(DocumentMark mark, Anchor anchor);
    // A map or a list, up to its close(). In a map keys and values come in turn.
    void open(DocumentNode::Kind kind, DocumentMark mark, Anchor anchor = no_anchor);
    void close();

    [[nodiscard]] DocumentNode root() && { return std::move(root_); }

    [[noreturn]] void refuse(DocumentMark mark, const std::string& why) const;

private:
    struct Open {
        DocumentNode node;
        DocumentMark mark;
        Anchor anchor;
        std::optional<std::string> key;  // Of a map: set while its value is missing,
        std::string key_place;           // and where it stands.
    };

    [[nodiscard]] std::string place_of(DocumentMark mark) const;
    [[nodiscard]] std::string path() const;
    [[nodiscard]] DocumentNode leaf(DocumentNode::Kind kind, DocumentMark mark) const;
    void merge(Open& into) const;
    void put(DocumentNode node, DocumentMark mark, Anchor anchor);
    void take_key(Open& above, const DocumentNode& node, DocumentMark mark) const;

    std::string name_;
    std::size_t nodes_max_;
    std::size_t nodes_ = 0;
    std::vector<Open> open_;
    std::map<Anchor, DocumentNode> anchors_;
    DocumentNode root_;
};

// Tells `tree` of the document. Requires: UTF-8. Refused by `tree` if it is not JSON.
void read_json(std::string_view text, DocumentTree& tree);

}  // namespace holdfast

// Builds a document's tree as a parser tells of it, be it one for YAML or one for JSON.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenario/document.hpp"

namespace holdfast::sim {

// Where a parser is, counted from 1. Line 0: nowhere in particular.
struct Mark {
    int line = 0;
    int column = 0;
};

using Anchor = std::size_t;  // What an alias can repeat.
inline constexpr Anchor no_anchor = 0;

// Every refusal is invalid_argument, with the place and the key that was being read.
class TreeBuilder {
public:
    // `name` is the file's, for places.
    explicit TreeBuilder(std::string name) : name_(std::move(name)) {}

    void null(Mark mark, Anchor anchor = no_anchor);
    void scalar(Mark mark, std::string value, Anchor anchor = no_anchor);
    void alias(Mark mark, Anchor anchor);
    // A map or a list, up to its close(). In a map keys and values come in turn.
    void open(Node::Kind kind, Mark mark, Anchor anchor = no_anchor);
    void close();

    [[nodiscard]] Node root() && { return std::move(root_); }

    [[noreturn]] void refuse(Mark mark, const std::string& why) const;

private:
    struct Open {
        Node node;
        Mark mark;
        Anchor anchor;
        std::optional<std::string> key;  // Of a map: set while its value is missing,
        std::string key_place;           // and where it stands.
    };

    [[nodiscard]] std::string place_of(Mark mark) const;
    [[nodiscard]] std::string path() const;
    [[nodiscard]] Node leaf(Node::Kind kind, Mark mark) const;
    void merge(Open& into) const;
    void put(Node node, Mark mark, Anchor anchor);
    void take_key(Open& above, const Node& node, Mark mark) const;

    std::string name_;
    std::size_t nodes_ = 0;
    std::vector<Open> open_;
    std::map<Anchor, Node> anchors_;
    Node root_;
};

}  // namespace holdfast::sim

#include "scenario/tree.hpp"

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sim {
namespace {

// Aliases make a small file mean a large one; these end it.
constexpr std::size_t depth_max = 16;
constexpr std::size_t nodes_max = 100'000;

std::size_t size_of(const Node& node) {
    std::size_t size = 1;
    for (const Node& item : node.items) {
        size += size_of(item);
    }
    for (const auto& field : node.fields) {
        size += size_of(field.second);
    }
    return size;
}

}  // namespace

void TreeBuilder::null(Mark mark, Anchor anchor) {
    put(leaf(Node::Kind::null, mark), mark, anchor);
}

void TreeBuilder::scalar(Mark mark, std::string value, Anchor anchor) {
    Node node = leaf(Node::Kind::scalar, mark);
    node.scalar = std::move(value);
    put(std::move(node), mark, anchor);
}

void TreeBuilder::alias(Mark mark, Anchor anchor) {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
        refuse(mark, "an alias must come after what it repeats");
    }
    put(Node(found->second), mark, no_anchor);
}

void TreeBuilder::open(Node::Kind kind, Mark mark, Anchor anchor) {
    if (open_.size() >= depth_max) {
        refuse(mark, "the keys are too deep");
    }
    open_.push_back({leaf(kind, mark), mark, anchor, {}, {}});
}

void TreeBuilder::close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    merge(done);
    put(std::move(done.node), done.mark, done.anchor);
}

void TreeBuilder::refuse(Mark mark, const std::string& why) const {
    const std::string key = path();
    throw InvalidArgument(fmt::format(
        "{}: {}{}{}", mark.line == 0 ? name_ : place_of(mark), key, key.empty() ? "" : ": ", why));
}

std::string TreeBuilder::place_of(Mark mark) const {
    return fmt::format("{}:{}:{}", name_, mark.line, mark.column);
}

// "services[2].workload", the key whose value is missing; or the last that was complete, as
// "after seed".
std::string TreeBuilder::path() const {
    std::string path;
    for (const Open& one : open_) {
        const bool innermost = &one == &open_.back();
        if (one.node.kind == Node::Kind::list) {
            path += innermost ? "" : fmt::format("[{}]", one.node.items.size());
        } else if (one.key) {
            path += (path.empty() ? "" : ".") + *one.key;
        } else if (innermost && !one.node.fields.empty()) {
            path = fmt::format(
                "after {}{}{}", path, path.empty() ? "" : ".", one.node.fields.back().first);
        }
    }
    return path;
}

Node TreeBuilder::leaf(Node::Kind kind, Mark mark) const {
    return {.kind = kind, .place = place_of(mark)};
}

// YAML's `<<: *other`: what the other map has and this one does not.
void TreeBuilder::merge(Open& into) const {
    const Node others = into.node.take("<<");
    const std::vector<Node> one{others};
    for (const Node& other : others.kind == Node::Kind::list ? others.items : one) {
        if (other.kind == Node::Kind::scalar || other.kind == Node::Kind::list) {
            refuse(into.mark, "<< takes a map, or a list of maps, as in <<: *name");
        }
        for (const auto& [key, value] : other.fields) {
            if (into.node.find(key) == nullptr) {
                into.node.fields.emplace_back(key, value);
            }
        }
    }
}

void TreeBuilder::put(Node node, Mark mark, Anchor anchor) {
    nodes_ += anchor == no_anchor && open_.empty() ? 1 : size_of(node);
    if (nodes_ > nodes_max) {
        refuse(mark, "the keys are too many");
    }
    if (anchor != no_anchor) {
        anchors_[anchor] = node;
    }
    if (open_.empty()) {
        root_ = std::move(node);
        return;
    }
    Open& above = open_.back();
    if (above.node.kind == Node::Kind::list) {
        above.node.items.push_back(std::move(node));
    } else if (!above.key) {
        take_key(above, node, mark);
    } else {
        if (node.kind == Node::Kind::null) {
            node.place = above.key_place;  // Nothing has no place; the parser names the next.
        }
        above.node.fields.emplace_back(std::move(*above.key), std::move(node));
        above.key.reset();
    }
}

void TreeBuilder::take_key(Open& above, const Node& node, Mark mark) const {
    if (node.kind != Node::Kind::scalar || node.scalar.empty()) {
        refuse(mark, "a key must be a word");
    }
    above.key = node.scalar;
    above.key_place = node.place;
    if (above.node.find(node.scalar) != nullptr) {
        refuse(mark, "set twice; keep one");
    }
}

}  // namespace holdfast::sim

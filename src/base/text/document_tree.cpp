#include "text/document_tree.hpp"

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

std::size_t size_of(const DocumentNode& node) {
    std::size_t size = 1;
    for (const DocumentNode& item : node.items) {
        size += size_of(item);
    }
    for (const auto& field : node.fields) {
        size += size_of(field.second);
    }
    return size;
}

}  // namespace

void DocumentTree::null(DocumentMark mark, Anchor anchor) {
    put(leaf(DocumentNode::Kind::null, mark), mark, anchor);
}

void DocumentTree::scalar(DocumentMark mark, std::string value, Anchor anchor) {
    DocumentNode node = leaf(DocumentNode::Kind::scalar, mark);
    node.scalar = std::move(value);
    put(std::move(node), mark, anchor);
}

void DocumentTree::alias(DocumentMark mark, Anchor anchor) {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
        refuse(mark, "an alias must come after what it repeats");
    }
    put(DocumentNode(found->second), mark, no_anchor);
}

void DocumentTree::open(DocumentNode::Kind kind, DocumentMark mark, Anchor anchor) {
    if (open_.size() >= document_depth_max) {
        refuse(mark, "the keys are too deep");
    }
    open_.push_back({leaf(kind, mark), mark, anchor, {}, {}});
}

void DocumentTree::close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    merge(done);
    put(std::move(done.node), done.mark, done.anchor);
}

void DocumentTree::refuse(DocumentMark mark, const std::string& why) const {
    const std::string key = path();
    throw InvalidArgument(fmt::format(
        "{}: {}{}{}", mark.line == 0 ? name_ : place_of(mark), key, key.empty() ? "" : ": ", why));
}

std::string DocumentTree::place_of(DocumentMark mark) const {
    return fmt::format("{}:{}:{}", name_, mark.line, mark.column);
}

// "services[2].workload", the key whose value is missing; or the last that was complete, as
// "after seed".
std::string DocumentTree::path() const {
    std::string path;
    for (const Open& one : open_) {
        const bool innermost = &one == &open_.back();
        if (one.node.kind == DocumentNode::Kind::list) {
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

DocumentNode DocumentTree::leaf(DocumentNode::Kind kind, DocumentMark mark) const {
    return {.kind = kind, .place = place_of(mark)};
}

// YAML's `<<: *other`: what the other map has and this one does not.
void DocumentTree::merge(Open& into) const {
    const DocumentNode others = into.node.take("<<");
    const std::vector<DocumentNode> one{others};
    for (const DocumentNode& other : others.kind == DocumentNode::Kind::list ? others.items : one) {
        if (other.kind == DocumentNode::Kind::scalar || other.kind == DocumentNode::Kind::list) {
            refuse(into.mark, "<< takes a map, or a list of maps, as in <<: *name");
        }
        for (const auto& [key, value] : other.fields) {
            if (into.node.find(key) == nullptr) {
                into.node.fields.emplace_back(key, value);
            }
        }
    }
}

void DocumentTree::put(DocumentNode node, DocumentMark mark, Anchor anchor) {
    nodes_ += anchor == no_anchor && open_.empty() ? 1 : size_of(node);
    if (nodes_ > nodes_max_) {
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
    if (above.node.kind == DocumentNode::Kind::list) {
        above.node.items.push_back(std::move(node));
    } else if (!above.key) {
        take_key(above, node, mark);
    } else {
        node.key_place = above.key_place;
        if (node.kind == DocumentNode::Kind::null) {
            node.place = above.key_place;  // The parser gives the place of what comes next.
        }
        above.node.fields.emplace_back(std::move(*above.key), std::move(node));
        above.key.reset();
    }
}

void DocumentTree::take_key(Open& above, const DocumentNode& node, DocumentMark mark) const {
    if (node.kind != DocumentNode::Kind::scalar || node.scalar.empty()) {
        refuse(mark, "a key must be a word");
    }
    above.key = node.scalar;
    above.key_place = node.place;
    if (above.node.find(node.scalar) != nullptr) {
        refuse(mark, "set twice; keep one");
    }
}

}  // namespace holdfast

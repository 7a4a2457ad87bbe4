// The only file of this floor that knows yaml-cpp.
#include "document.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

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

// Builds the tree as the parser tells of it.
class Builder final : public YAML::EventHandler {
public:
    explicit Builder(std::string name) : name_(std::move(name)) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_++ > 0) {
            refuse(mark, "something follows the document; write one");
        }
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        put(leaf(Node::Kind::null, mark), mark, anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end()) {
            refuse(mark, "an alias must come after what it repeats");
        }
        put(Node(found->second), mark, YAML::NullAnchor);
    }
    void OnScalar(const YAML::Mark& mark,
                  const std::string& /*tag*/,
                  YAML::anchor_t anchor,
                  const std::string& value) override {
        Node node = leaf(Node::Kind::scalar, mark);
        node.scalar = value;
        put(std::move(node), mark, anchor);
    }
    void OnSequenceStart(const YAML::Mark& mark,
                         const std::string& /*tag*/,
                         YAML::anchor_t anchor,
                         YAML::EmitterStyle::value /*style*/) override {
        open(Node::Kind::list, mark, anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark,
                    const std::string& /*tag*/,
                    YAML::anchor_t anchor,
                    YAML::EmitterStyle::value /*style*/) override {
        open(Node::Kind::map, mark, anchor);
    }
    void OnMapEnd() override { close(); }

    [[nodiscard]] Node root() && { return std::move(root_); }

    // Invalid_argument with the place, and the key that was being read.
    [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& why) const {
        const std::string key = path();
        throw InvalidArgument(fmt::format("{}: {}{}{}",
                                          mark.is_null() ? name_ : place_of(mark),
                                          key,
                                          key.empty() ? "" : ": ",
                                          why));
    }

private:
    struct Open {
        Node node;
        YAML::Mark mark;
        YAML::anchor_t anchor;
        std::optional<std::string> key;  // Of a map: set while its value is missing,
        std::string key_place;           // and where it stands.
    };

    [[nodiscard]] std::string place_of(const YAML::Mark& mark) const {
        return fmt::format("{}:{}:{}", name_, mark.line + 1, mark.column + 1);
    }
    // "services[2].workload", the key whose value is missing; or the last that was complete, as
    // "after seed".
    [[nodiscard]] std::string path() const {
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
    [[nodiscard]] Node leaf(Node::Kind kind, const YAML::Mark& mark) const {
        return {.kind = kind, .place = place_of(mark)};
    }

    void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
        if (open_.size() >= depth_max) {
            refuse(mark, "the keys are too deep");
        }
        open_.push_back({leaf(kind, mark), mark, anchor, {}, {}});
    }

    void close() {
        Open done = std::move(open_.back());
        open_.pop_back();
        merge(done);
        put(std::move(done.node), done.mark, done.anchor);
    }

    // YAML's `<<: *other`: what the other map has and this one does not.
    void merge(Open& into) const {
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

    void put(Node node, const YAML::Mark& mark, YAML::anchor_t anchor) {
        nodes_ += anchor == YAML::NullAnchor && open_.empty() ? 1 : size_of(node);
        if (nodes_ > nodes_max) {
            refuse(mark, "the keys are too many");
        }
        if (anchor != YAML::NullAnchor) {
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

    void take_key(Open& above, const Node& node, const YAML::Mark& mark) const {
        if (node.kind != Node::Kind::scalar || node.scalar.empty()) {
            refuse(mark, "a key must be a word");
        }
        above.key = node.scalar;
        above.key_place = node.place;
        if (above.node.find(node.scalar) != nullptr) {
            refuse(mark, "set twice; keep one");
        }
    }

    std::string name_;
    int documents_ = 0;
    std::size_t nodes_ = 0;
    std::vector<Open> open_;
    std::map<YAML::anchor_t, Node> anchors_;
    Node root_;
};

// How many bytes the character at the front has; 0 if there is none in UTF-8.
std::size_t character_size(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(0);
    if (lead < 0x80) {
        return lead == 0 ? 0 : 1;
    }
    const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < size) {
        return 0;
    }
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xc0U) != 0x80) {
            return 0;
        }
    }
    const unsigned second = byte(1);  // Too long for what it says, a half of a pair, or beyond.
    const bool wrong = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                       (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
    return wrong ? 0 : size;
}

// The parser would put something else in the place of what it cannot read.
void require_text(const std::string& name, const std::string& text) {
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
        return;  // UTF-16, which the parser understands.
    }
    std::size_t size = 0;
    for (std::size_t at = 0; at < text.size(); at += size) {
        size = character_size(std::string_view(text).substr(at));
        if (size == 0) {
            const auto line =
                std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
            throw InvalidArgument(
                fmt::format("{}:{}: this is no text, as it has the byte {:#04x}; save it as UTF-8",
                            name,
                            line + 1,
                            static_cast<unsigned char>(text[at])));
        }
    }
}

// For a map that may be changed, and for one that may not.
template <class Fields>
auto find_in(Fields& fields, std::string_view key) noexcept -> decltype(&fields.front().second) {
    for (auto& [name, node] : fields) {
        if (name == key) {
            return &node;
        }
    }
    return nullptr;
}

// One step of a key's path: a name, or an index, which is empty for all.
struct Step {
    std::string name;
    bool index = false;
    std::optional<std::size_t> number;
};

[[noreturn]] void refuse_path(std::string_view key, const char* why) {
    throw InvalidArgument(fmt::format("the key '{}' {}", key, why));
}

Step parse_index(std::string_view key, std::string_view text) {
    Step step{.name = {}, .index = true, .number = {}};
    if (text == "*") {
        return step;
    }
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
        refuse_path(key, "has an index that is neither a number nor *");
    }
    step.number = number;
    return step;
}

std::vector<Step> parse_path(std::string_view key) {
    std::vector<Step> steps;
    std::string_view rest = key;
    while (!rest.empty()) {
        if (rest.front() == '[') {
            const auto end = rest.find(']');
            if (end == std::string_view::npos) {
                refuse_path(key, "has a [ without its ]");
            }
            steps.push_back(parse_index(key, rest.substr(1, end - 1)));
            rest.remove_prefix(end + 1);
        } else {
            const auto end = std::min(rest.find_first_of(".["), rest.size());
            steps.push_back(
                {.name = std::string(rest.substr(0, end)), .index = false, .number = {}});
            rest.remove_prefix(end);
        }
        if (rest.starts_with('.')) {
            rest.remove_prefix(1);
        }
    }
    if (steps.empty()) {
        refuse_path(key, "is empty");
    }
    return steps;
}

void set_below(Node& node,
               std::string_view key,
               const std::string& value,
               const std::vector<Step>& path,
               std::size_t from) {
    if (from == path.size()) {
        if (node.kind == Node::Kind::list) {
            refuse_path(key, "is a list; name one of its entries");
        }
        node = {.kind = Node::Kind::scalar, .scalar = value, .place = fmt::format("--set {}", key)};
        return;
    }
    const Step& step = path[from];
    if (!step.index) {
        if (node.kind == Node::Kind::null) {
            node.kind = Node::Kind::map;
        }
        if (node.kind != Node::Kind::map) {
            refuse_path(key, "does not lead to a value");
        }
        return set_below(node.at(step.name), key, value, path, from + 1);
    }
    if (node.kind != Node::Kind::list || (step.number && *step.number >= node.items.size())) {
        refuse_path(key, "names an entry that is not there");
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        if (!step.number || *step.number == i) {
            set_below(node.items[i], key, value, path, from + 1);
        }
    }
}

}  // namespace

const Node* Node::find(std::string_view key) const noexcept {
    return find_in(fields, key);
}

Node* Node::find(std::string_view key) noexcept {
    return find_in(fields, key);
}

Node& Node::at(const std::string& key) {
    Node* found = find(key);
    if (found != nullptr) {
        return *found;
    }
    fields.emplace_back(key, Node{.place = place});
    return fields.back().second;
}

Node Node::take(std::string_view key) {
    Node* found = find(key);
    if (found == nullptr) {
        return {};
    }
    Node taken = std::move(*found);
    std::erase_if(fields, [&](const auto& field) { return field.first == key; });
    return taken;
}

Node parse_document(const std::string& name, const std::string& text) {
    require_text(name, text);
    std::istringstream stream(text);
    Builder builder(name);
    try {
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const YAML::Exception& error) {
        builder.refuse(error.mark, "this is neither YAML nor JSON: " + error.msg);
    }
    return std::move(builder).root();
}

void merge_below(Node& stronger, const Node& weaker) {
    if (stronger.kind == Node::Kind::null) {
        stronger = weaker;
        return;
    }
    if (stronger.kind != Node::Kind::map || weaker.kind != Node::Kind::map) {
        return;
    }
    for (const auto& [key, value] : weaker.fields) {
        Node* own = stronger.find(key);
        if (own == nullptr) {
            stronger.fields.emplace_back(key, value);
        } else {
            merge_below(*own, value);
        }
    }
}

void substitute(Node& node, const Node& variables, const std::string& path) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        substitute(node.items[i], variables, fmt::format("{}[{}]", path, i));
    }
    for (auto& [key, value] : node.fields) {
        substitute(value, variables, path.empty() ? key : fmt::format("{}.{}", path, key));
    }
    std::size_t begin = 0;
    while ((begin = node.scalar.find("${", begin)) != std::string::npos) {
        const std::size_t end = node.scalar.find('}', begin);
        const std::string name =
            end == std::string::npos ? "" : node.scalar.substr(begin + 2, end - begin - 2);
        const Node* value = variables.find(name);
        if (value == nullptr || value->kind != Node::Kind::scalar) {
            throw InvalidArgument(fmt::format(
                "{}: {}: {}",
                node.place,
                path,
                end == std::string::npos
                    ? "a ${ without its }"
                    : fmt::format("there is no variable '{}'; give it a value under vars", name)));
        }
        node.scalar.replace(begin, end + 1 - begin, value->scalar);
        begin += value->scalar.size();
    }
}

void set_value(Node& root, std::string_view key, const std::string& value) {
    set_below(root, key, value, parse_path(key), 0);
}

}  // namespace holdfast::sim

// The only file of this floor that knows yaml-cpp.
#include "scenario/document.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "scenario/json.hpp"
#include "scenario/tree.hpp"
#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sim {
namespace {

// Tells the builder what the parser of YAML tells of.
class YamlEvents final : public YAML::EventHandler {
public:
    explicit YamlEvents(TreeBuilder& tree) : tree_(tree) {}

    static Mark place(const YAML::Mark& mark) {
        return mark.is_null() ? Mark{} : Mark{.line = mark.line + 1, .column = mark.column + 1};
    }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_++ > 0) {
            tree_.refuse(place(mark), "something follows the document; write one");
        }
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        tree_.null(place(mark), anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        tree_.alias(place(mark), anchor);
    }
    void OnScalar(const YAML::Mark& mark,
                  const std::string& /*tag*/,
                  YAML::anchor_t anchor,
                  const std::string& value) override {
        tree_.scalar(place(mark), value, anchor);
    }
    void OnSequenceStart(const YAML::Mark& mark,
                         const std::string& /*tag*/,
                         YAML::anchor_t anchor,
                         YAML::EmitterStyle::value /*style*/) override {
        tree_.open(Node::Kind::list, place(mark), anchor);
    }
    void OnSequenceEnd() override { tree_.close(); }
    void OnMapStart(const YAML::Mark& mark,
                    const std::string& /*tag*/,
                    YAML::anchor_t anchor,
                    YAML::EmitterStyle::value /*style*/) override {
        tree_.open(Node::Kind::map, place(mark), anchor);
    }
    void OnMapEnd() override { tree_.close(); }

private:
    TreeBuilder& tree_;
    int documents_ = 0;
};

static_assert(YAML::NullAnchor == no_anchor);

Node parse_json(const std::string& name, const std::string& text) {
    TreeBuilder tree(name);
    read_json(text, tree);
    return std::move(tree).root();
}

Node parse_yaml(const std::string& name, const std::string& text) {
    std::istringstream stream(text);
    TreeBuilder tree(name);
    YamlEvents events(tree);
    try {
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(events)) {
        }
    } catch (const YAML::Exception& error) {
        tree.refuse(YamlEvents::place(error.mark), "this is neither YAML nor JSON: " + error.msg);
    }
    return std::move(tree).root();
}

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
void require_text(const std::string& name, const std::string& text, bool yaml) {
    if (yaml && (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))) {
        return;  // UTF-16, which the parser of YAML understands.
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
               const Node& value,
               const std::vector<Step>& path,
               std::size_t from) {
    if (from == path.size()) {
        if (node.kind == Node::Kind::list) {
            refuse_path(key, "is a list; name one of its entries");
        }
        node = value;
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
    const bool json = name.ends_with(".json");
    require_text(name, text, !json);
    if (json) {
        return parse_json(name, text);
    }
    try {
        return parse_yaml(name, text);
    } catch (const InvalidArgument& bad) {
        if (name.ends_with(".yaml") || name.ends_with(".yml")) {
            throw;
        }
        try {  // Most JSON is YAML; this may be some of the rest.
            return parse_json(name, text);
        } catch (const InvalidArgument&) {
            throw InvalidArgument(bad.what());
        }
    }
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

void set_value(Node& root,
               std::string_view key,
               const std::string& value,
               const std::string& place) {
    const Node leaf{.kind = Node::Kind::scalar, .scalar = value, .place = place};
    set_below(root, key, leaf, parse_path(key), 0);
}

}  // namespace holdfast::sim

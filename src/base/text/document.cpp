// The only file that knows yaml-cpp.
#include <holdfast/base/document.hpp>

#include <algorithm>
#include <sstream>

#include "text/document_tree.hpp"
#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast {
namespace {

// Passes the events of the YAML parser on to the builder.
class YamlEvents final : public YAML::EventHandler {
public:
    explicit YamlEvents(DocumentTree& tree) : tree_(tree) {}

    static DocumentMark place(const YAML::Mark& mark) {
        return mark.is_null() ? DocumentMark{}
                              : DocumentMark{.line = mark.line + 1, .column = mark.column + 1};
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
        tree_.open(DocumentNode::Kind::list, place(mark), anchor);
    }
    void OnSequenceEnd() override { tree_.close(); }
    void OnMapStart(const YAML::Mark& mark,
                    const std::string& /*tag*/,
                    YAML::anchor_t anchor,
                    YAML::EmitterStyle::value /*style*/) override {
        tree_.open(DocumentNode::Kind::map, place(mark), anchor);
    }
    void OnMapEnd() override { tree_.close(); }

private:
    DocumentTree& tree_;
    int documents_ = 0;
};

static_assert(YAML::NullAnchor == no_anchor);

// The parser would replace what it cannot read.
void require_text(const std::string& name, const std::string& text, bool yaml) {
    if (yaml && (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))) {
        return;  // UTF-16, which the YAML parser understands.
    }
    const std::size_t at = std::min(valid_utf8_bytes(text), text.find('\0'));
    if (at < text.size()) {
        const auto line =
            std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
        throw InvalidArgument(
            fmt::format("{}:{}: this is not text: it has the byte {:#04x}; save it as UTF-8",
                        name,
                        line + 1,
                        static_cast<unsigned char>(text[at])));
    }
}

DocumentNode json_tree(const std::string& name, const std::string& text, std::size_t nodes_max) {
    DocumentTree tree(name, nodes_max);
    read_json(text, tree);
    return std::move(tree).root();
}

// Not with YAML::LoadAll, which fills the memory with empty documents when it meets a stray comma,
// and not with YAML::Load, which ignores what it cannot read after the first document.
DocumentNode yaml_tree(const std::string& name,
                       const std::string& text,
                       std::size_t nodes_max,
                       std::string_view fault) {
    std::istringstream stream(text);
    DocumentTree tree(name, nodes_max);
    YamlEvents events(tree);
    try {
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(events)) {
        }
    } catch (const YAML::Exception& error) {
        tree.refuse(YamlEvents::place(error.mark), fmt::format("{}: {}", fault, error.msg));
    }
    return std::move(tree).root();
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

}  // namespace

const DocumentNode* DocumentNode::find(std::string_view key) const noexcept {
    return find_in(fields, key);
}

DocumentNode* DocumentNode::find(std::string_view key) noexcept {
    return find_in(fields, key);
}

DocumentNode& DocumentNode::at(const std::string& key) {
    DocumentNode* found = find(key);
    if (found != nullptr) {
        return *found;
    }
    fields.emplace_back(key, DocumentNode{.place = place});
    return fields.back().second;
}

DocumentNode DocumentNode::take(std::string_view key) {
    DocumentNode* found = find(key);
    if (found == nullptr) {
        return {};
    }
    DocumentNode taken = std::move(*found);
    std::erase_if(fields, [&](const auto& field) { return field.first == key; });
    return taken;
}

DocumentNode parse_yaml(const std::string& name, const std::string& text, std::size_t nodes_max) {
    require_text(name, text, true);
    return yaml_tree(name, text, nodes_max, "this is not YAML");
}

DocumentNode parse_document(const std::string& name,
                            const std::string& text,
                            std::size_t nodes_max) {
    if (name.ends_with(".yaml") || name.ends_with(".yml")) {
        return parse_yaml(name, text, nodes_max);
    }
    const bool json = name.ends_with(".json");
    require_text(name, text, !json);
    if (json) {
        return json_tree(name, text, nodes_max);
    }
    try {
        return yaml_tree(name, text, nodes_max, "this is neither YAML nor JSON");
    } catch (const InvalidArgument& bad) {
        try {  // Most JSON is YAML; this may be some of the rest.
            return json_tree(name, text, nodes_max);
        } catch (const InvalidArgument&) {
            throw InvalidArgument(bad.what());
        }
    }
}

}  // namespace holdfast

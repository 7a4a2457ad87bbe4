// JSON told with the place of everything, and with what a parser of YAML cannot read (pairs of
// surrogates, long keys, tabs).
#include "text/document_tree.hpp"
#include <fmt/core.h>

#include <holdfast/base/json_text.hpp>

namespace holdfast {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string unescaped(std::string_view literal) {
    std::string text;
    json::append_unescaped(text, literal);
    return text;
}

class TreeVisitor final : public json::Visitor {
public:
    TreeVisitor(std::string_view text, DocumentTree& tree) : text_(text), tree_(tree) {}

    void open_object(std::size_t at) override { tree_.open(DocumentNode::Kind::map, mark(at)); }
    void open_array(std::size_t at) override { tree_.open(DocumentNode::Kind::list, mark(at)); }
    void key(std::size_t at, std::string_view literal) override {
        tree_.scalar(mark(at), unescaped(literal));
    }
    void scalar(std::size_t at, std::string_view literal) override {
        if (literal == "null") {
            tree_.null(mark(at));
        } else {
            tree_.scalar(mark(at),
                         literal.front() == '"' ? unescaped(literal) : std::string(literal));
        }
    }
    void close() override { tree_.close(); }

    // Counts characters, not bytes, as an editor does. Requires: `at` does not go back.
    [[nodiscard]] DocumentMark mark(std::size_t at) {
        for (; counted_ < at; ++counted_) {
            if (text_[counted_] == '\n') {
                ++mark_.line;
                mark_.column = 1;
            } else if ((static_cast<unsigned char>(text_[counted_]) & 0xc0U) != 0x80U) {
                ++mark_.column;
            }
        }
        return mark_;
    }

private:
    std::string_view text_;
    DocumentTree& tree_;
    std::size_t counted_ = 0;
    DocumentMark mark_{.line = 1, .column = 1};
};

}  // namespace

void read_json(std::string_view text, DocumentTree& tree) {
    if (text.starts_with(byte_order_mark)) {
        text.remove_prefix(byte_order_mark.size());
    }
    if (json::trim(text).empty()) {
        return;  // As an empty file of YAML.
    }
    TreeVisitor visitor(text, tree);
    json::Scanner scanner(text);
    if (!scanner.walk(visitor)) {
        tree.refuse(visitor.mark(scanner.at()),
                    fmt::format("this is not JSON: {}", scanner.fault()));
    }
    if (!scanner.at_end()) {
        tree.refuse(visitor.mark(scanner.at()), "something follows the document; write one");
    }
}

}  // namespace holdfast

#include "scenario/json.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/core.h>

namespace holdfast::sim {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

void append_utf8(std::string& text, unsigned code) {
    const auto put = [&](unsigned byte) { text += static_cast<char>(byte); };
    if (code < 0x80) {
        return put(code);
    }
    if (code < 0x800) {
        put(0xc0U | code >> 6U);
    } else if (code < 0x10000) {
        put(0xe0U | code >> 12U);
        put(0x80U | (code >> 6U & 0x3fU));
    } else {
        put(0xf0U | code >> 18U);
        put(0x80U | (code >> 12U & 0x3fU));
        put(0x80U | (code >> 6U & 0x3fU));
    }
    put(0x80U | (code & 0x3fU));
}

class Reader {
public:
    Reader(std::string_view text, TreeBuilder& tree) : text_(text), tree_(tree) {
        if (text_.starts_with(byte_order_mark)) {
            at_ = counted_ = byte_order_mark.size();
        }
    }

    void document() {
        blanks();
        if (end()) {
            return;  // Nothing at all, as in an empty file of YAML.
        }
        value();
        blanks();
        if (!end()) {
            tree_.refuse(mark(), "something follows the document; write one");
        }
    }

private:
    [[nodiscard]] bool end() const { return at_ == text_.size(); }
    [[nodiscard]] char next() const { return end() ? '\0' : text_[at_]; }

    // Characters, not bytes: those that continue one are not counted.
    [[nodiscard]] Mark mark() {
        for (; counted_ < at_; ++counted_) {
            column_ += (static_cast<unsigned char>(text_[counted_]) & 0xc0U) != 0x80U ? 1 : 0;
        }
        return {.line = line_, .column = column_};
    }

    [[noreturn]] void refuse(std::string_view expected) {
        tree_.refuse(mark(), fmt::format("this is no JSON: expected {}", expected));
    }

    void blanks() {
        for (; !end(); ++at_) {
            if (next() == '\n') {
                ++line_;
                counted_ = at_ + 1;
                column_ = 1;
            } else if (next() != ' ' && next() != '\t' && next() != '\r') {
                return;
            }
        }
    }

    // Whether it is there; then it is behind us.
    bool take(char wanted) {
        blanks();
        const bool found = next() == wanted;
        at_ += found ? 1 : 0;
        return found;
    }

    void value() {
        blanks();
        const Mark here = mark();
        if (take('{')) {
            tree_.open(Node::Kind::map, here);
            return members();
        }
        if (take('[')) {
            tree_.open(Node::Kind::list, here);
            return items();
        }
        if (next() == '"') {
            return tree_.scalar(here, string());
        }
        const std::string_view rest = text_.substr(at_);
        for (const std::string_view word : {"true", "false", "null"}) {
            if (rest.starts_with(word)) {
                at_ += word.size();
                return word == "null" ? tree_.null(here) : tree_.scalar(here, std::string(word));
            }
        }
        tree_.scalar(here, number());
    }

    void members() {
        for (bool first = true; !take('}'); first = false) {
            if (!first && !take(',')) {
                refuse("a comma or a }");
            }
            blanks();
            if (next() != '"') {
                refuse("a key in double quotes");
            }
            const Mark here = mark();
            tree_.scalar(here, string());
            if (!take(':')) {
                refuse("a colon and a value");
            }
            value();
        }
        tree_.close();
    }

    void items() {
        for (bool first = true; !take(']'); first = false) {
            if (!first && !take(',')) {
                refuse("a comma or a ]");
            }
            value();
        }
        tree_.close();
    }

    // At least one of them.
    void some_digits() {
        const auto after = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
        if (after == at_) {
            refuse("a value: a text in double quotes, a number, true, false, null, [ or {");
        }
        at_ = after;
    }

    std::string number() {
        const std::size_t from = at_;
        at_ += next() == '-' ? 1 : 0;
        if (next() == '0') {
            ++at_;
        } else {
            some_digits();
        }
        if (next() == '.') {
            ++at_;
            some_digits();
        }
        if (next() == 'e' || next() == 'E') {
            ++at_;
            at_ += next() == '+' || next() == '-' ? 1 : 0;
            some_digits();
        }
        return std::string(text_.substr(from, at_ - from));
    }

    std::string string() {
        ++at_;
        std::string text;
        while (next() != '"') {
            if (static_cast<unsigned char>(next()) < 0x20) {
                refuse("the text to end with \" in its line; write \\n for a new one");
            }
            if (next() == '\\') {
                escape(text);
            } else {
                text += text_[at_++];
            }
        }
        ++at_;
        return text;
    }

    void escape(std::string& text) {
        constexpr std::string_view written = "\"\\/bfnrt";
        constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
        const char kind = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
        if (kind == 'u') {
            return append_utf8(text, character());
        }
        const auto found = written.find(kind);
        if (found == std::string_view::npos) {
            refuse("one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
        }
        text += meant[found];
        at_ += 2;
    }

    // \uXXXX, or two of them for what lies beyond.
    unsigned character() {
        const unsigned high = unit();
        if (high < 0xd800 || high > 0xdfff) {
            at_ += 6;
            return high;
        }
        const std::size_t first = at_;
        at_ += 6;
        const unsigned low = text_.substr(at_).starts_with("\\u") ? unit() : 0;
        if (high > 0xdbff || low < 0xdc00 || low > 0xdfff) {
            at_ = first;
            refuse("two halves of a character, as in \\ud83d\\ude00");
        }
        at_ += 6;
        return 0x10000 + ((high - 0xd800) << 10U) + (low - 0xdc00);
    }

    [[nodiscard]] unsigned unit() {
        const std::string_view hex = text_.substr(std::min(at_ + 2, text_.size()), 4);
        unsigned code = 0;
        const auto [last, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
        if (error != std::errc{} || hex.size() != 4 || last != hex.data() + 4) {
            refuse("four hexadecimal digits after \\u");
        }
        return code;
    }

    std::string_view text_;
    TreeBuilder& tree_;
    std::size_t at_ = 0;
    int line_ = 1;
    std::size_t counted_ = 0;  // Up to here the column is known.
    int column_ = 1;
};

}  // namespace

void read_json(std::string_view text, TreeBuilder& tree) {
    Reader(text, tree).document();
}

}  // namespace holdfast::sim

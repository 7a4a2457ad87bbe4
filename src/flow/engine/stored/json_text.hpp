// JSON without a tree: pieces that are appended to a text, and a scanner that finds where the
// values of a text begin and end.
//
// Strict: the grammar of RFC 8259, strings in UTF-8, surrogates in pairs, a bound on the depth.
// Numbers are never converted on the way, and nothing is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::flow::json {

// Arrays and objects inside each other in one payload. The scanner recurses, so this bounds its
// stack.
inline constexpr std::size_t payload_depth_max = 512;
// A stored event wraps payloads: the event, its failure, the list of arguments.
inline constexpr std::size_t depth_max = payload_depth_max + 8;

// Both appends leave a partial text behind when they throw.
// Throws InvalidArgument unless `text` is UTF-8.
void append_string(std::string& out, std::string_view text);
void append_integer(std::string& out, std::int64_t value);
void append_integer(std::string& out, std::uint64_t value);

// UTF-8 without a zero, which not every database takes.
[[nodiscard]] bool is_storable(std::string_view text) noexcept;
// `text` with every byte that is no UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

[[nodiscard]] constexpr bool is_space(char c) noexcept {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

// What a value is, for messages: "a string". Looks at its first character only.
[[nodiscard]] std::string_view describe(std::string_view value) noexcept;

// Whether two values are equal but for fields that only one of them has: a struct has gained or
// lost some since the other was written. Requires: JSON, as a scanner has accepted it.
[[nodiscard]] bool agree(std::string_view one, std::string_view other);

// Appends what a string stands for.
// Requires: `literal` is a JSON string with its quotes, as a scanner has accepted it.
void append_unescaped(std::string& out, std::string_view literal);

// Walks a text from front to back. A step that answers false has met a fault, and is the last.
class Scanner {
public:
    explicit Scanner(std::string_view text, std::size_t deepest = depth_max) noexcept
        : text_(text), deepest_(deepest) {}

    // Takes one value and the whitespace around it.
    [[nodiscard]] bool value() noexcept;

    // Takes one object or array, and the whitespace around it. A value is handed over with the
    // whitespace around it, a key as it is written, without its quotes. The callback answers null,
    // or why it refuses what it got.
    template <class OnMember>  // const char* (std::string_view key, std::string_view value)
    [[nodiscard]] bool object(const OnMember& on_member);
    template <class OnElement>  // const char* (std::string_view value)
    [[nodiscard]] bool array(const OnElement& on_element);

    [[nodiscard]] std::size_t at() const noexcept { return at_; }
    [[nodiscard]] bool at_end() const noexcept { return at_ == text_.size(); }
    // Takes the whitespace that comes next.
    void space() noexcept {
        while (at_ < text_.size() && is_space(text_[at_])) {
            ++at_;
        }
    }

    // Why it stopped, null if it did not; at() is where.
    [[nodiscard]] const char* fault() const noexcept { return fault_; }

private:
    [[nodiscard]] bool fail(const char* why) noexcept;
    [[nodiscard]] bool fail(std::size_t at, const char* why) noexcept;
    [[nodiscard]] bool next_is(char c) const noexcept {
        return at_ < text_.size() && text_[at_] == c;
    }
    [[nodiscard]] bool open(char bracket, const char* why) noexcept;
    // After a value: true and `more` at a comma, true at the bracket that closes.
    [[nodiscard]] bool separator(char bracket, bool& more, const char* why) noexcept;
    [[nodiscard]] bool key(std::string_view& key) noexcept;
    [[nodiscard]] bool string() noexcept;
    [[nodiscard]] bool escape() noexcept;
    [[nodiscard]] bool hexadecimal(unsigned& unit) noexcept;
    [[nodiscard]] bool number() noexcept;
    [[nodiscard]] bool digits() noexcept;
    [[nodiscard]] bool word(std::string_view word) noexcept;

    std::string_view text_;
    std::size_t deepest_;
    std::size_t at_ = 0;
    std::size_t depth_ = 0;
    const char* fault_ = nullptr;
};

template <class OnMember>
bool Scanner::object(const OnMember& on_member) {
    if (!open('{', "no object")) {
        return false;
    }
    space();
    bool more = !next_is('}');
    if (!more) {
        ++at_;
    }
    while (more) {
        space();
        const std::size_t key_at = at_;
        std::string_view name;
        if (!key(name)) {
            return false;
        }
        const std::size_t begin = at_;
        if (!value()) {
            return false;
        }
        if (const char* why = on_member(name, text_.substr(begin, at_ - begin))) {
            return fail(key_at, why);
        }
        if (!separator('}', more, "no comma or brace after a field")) {
            return false;
        }
    }
    --depth_;
    space();
    return true;
}

template <class OnElement>
bool Scanner::array(const OnElement& on_element) {
    if (!open('[', "no array")) {
        return false;
    }
    std::size_t begin = at_;
    space();
    bool more = !next_is(']');
    if (!more) {
        ++at_;
    }
    while (more) {
        if (!value()) {
            return false;
        }
        if (const char* why = on_element(text_.substr(begin, at_ - begin))) {
            return fail(begin, why);
        }
        if (!separator(']', more, "no comma or bracket after an element")) {
            return false;
        }
        begin = at_;
    }
    --depth_;
    space();
    return true;
}

}  // namespace holdfast::flow::json

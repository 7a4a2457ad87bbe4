// JSON without a tree: pieces that are appended to a text, and a scanner that finds where the
// values of a text begin and end.
//
// Strict: the grammar of RFC 8259, strings in UTF-8, surrogates in pairs, a bound on the depth.
// Numbers are never converted on the way, and nothing is copied. Safe to call from every thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::json {

// Arrays and objects inside each other. The scanner recurses, so this bounds its stack.
inline constexpr std::size_t depth_max = 520;

// The appends leave a partial text behind when they throw.
// Throws InvalidArgument unless `text` is UTF-8.
void append_string(std::string& out, std::string_view text);
// As it stands inside a string: \n and the like where JSON has a short form, else \uXXXX.
// Requires: a code point up to U+FFFF that is not a surrogate.
void append_escape(std::string& out, char32_t code_point);
void append_integer(std::string& out, std::int64_t value);
void append_integer(std::string& out, std::uint64_t value);

[[nodiscard]] constexpr bool is_space(char c) noexcept {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

// The kind of a value, for messages: "a string". Looks at its first character only.
[[nodiscard]] std::string_view describe(std::string_view value) noexcept;

// Appends what a string stands for.
// Requires: `literal` is a JSON string with its quotes, as a scanner has accepted it.
void append_unescaped(std::string& out, std::string_view literal);

// Called by Scanner::walk in the order of the text, with the position of each piece. A scalar and a
// key are handed over as written, strings with their quotes.
class Visitor {
public:
    virtual ~Visitor() = default;
    virtual void open_object(std::size_t at) = 0;
    virtual void open_array(std::size_t at) = 0;
    virtual void key(std::size_t at, std::string_view literal) = 0;
    virtual void scalar(std::size_t at, std::string_view literal) = 0;
    virtual void close() = 0;
};

// Walks a text from front to back. A step that returns false has met a fault, and is the last.
class Scanner {
public:
    explicit Scanner(std::string_view text, std::size_t deepest = depth_max) noexcept
        : text_(text), deepest_(deepest) {}

    // Takes one value and the whitespace around it.
    [[nodiscard]] bool value() noexcept;

    // Takes one value and the whitespace around it, and tells `visitor` of everything in it, also
    // of what stands before a fault. Exceptions of the visitor pass through.
    [[nodiscard]] bool walk(Visitor& visitor);

    // Takes one object or array, and the whitespace around it. A value is handed over with the
    // whitespace around it, a key as it is written, without its quotes. The callback returns null,
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

    // Why it stopped, as in "expected a value"; null if it did not. at() is where.
    [[nodiscard]] const char* fault() const noexcept { return fault_; }

private:
    [[nodiscard]] bool fail(const char* why) noexcept;
    [[nodiscard]] bool fail(std::size_t at, const char* why) noexcept;
    [[nodiscard]] bool next_is(char c) const noexcept {
        return at_ < text_.size() && text_[at_] == c;
    }
    [[nodiscard]] bool open(char bracket, const char* why) noexcept;
    // After open(): whether there is an element, else takes the bracket that closes.
    [[nodiscard]] bool not_empty(char bracket) noexcept;
    // After a value: true and `more` at a comma, true at the bracket that closes.
    [[nodiscard]] bool separator(char bracket, bool& more, const char* why) noexcept;
    // With its quotes.
    [[nodiscard]] bool key(std::string_view& literal) noexcept;
    [[nodiscard]] bool colon() noexcept;
    // A value other than an object or an array.
    [[nodiscard]] bool scalar() noexcept;
    [[nodiscard]] bool walk_object(Visitor& visitor);
    [[nodiscard]] bool walk_array(Visitor& visitor);
    [[nodiscard]] bool string() noexcept;
    [[nodiscard]] bool escape() noexcept;
    [[nodiscard]] bool hexadecimal(unsigned& unit) noexcept;
    [[nodiscard]] bool number() noexcept;
    [[nodiscard]] bool digits() noexcept;
    [[nodiscard]] bool word(std::string_view word) noexcept;

    static constexpr const char* expected_object = "expected an object";
    static constexpr const char* expected_array = "expected an array";
    static constexpr const char* expected_brace = "expected a comma or a }";
    static constexpr const char* expected_bracket = "expected a comma or a ]";

    std::string_view text_;
    std::size_t deepest_;
    std::size_t at_ = 0;
    std::size_t depth_ = 0;
    const char* fault_ = nullptr;
};

template <class OnMember>
bool Scanner::object(const OnMember& on_member) {
    if (!open('{', expected_object)) {
        return false;
    }
    bool more = not_empty('}');
    while (more) {
        space();
        const std::size_t key_at = at_;
        std::string_view name;
        if (!key(name) || !colon()) {
            return false;
        }
        const std::size_t begin = at_;
        if (!value()) {
            return false;
        }
        const std::string_view bare = name.substr(1, name.size() - 2);
        if (const char* why = on_member(bare, text_.substr(begin, at_ - begin))) {
            return fail(key_at, why);
        }
        if (!separator('}', more, expected_brace)) {
            return false;
        }
    }
    --depth_;
    space();
    return true;
}

template <class OnElement>
bool Scanner::array(const OnElement& on_element) {
    if (!open('[', expected_array)) {
        return false;
    }
    std::size_t begin = at_;
    bool more = not_empty(']');
    while (more) {
        if (!value()) {
            return false;
        }
        if (const char* why = on_element(text_.substr(begin, at_ - begin))) {
            return fail(begin, why);
        }
        if (!separator(']', more, expected_bracket)) {
            return false;
        }
        begin = at_;
    }
    --depth_;
    space();
    return true;
}

}  // namespace holdfast::json

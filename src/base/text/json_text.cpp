#include <holdfast/base/json_text.hpp>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include <holdfast/base/error.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast::json {
namespace {

constexpr const char* no_value =
    "expected a value: a text in double quotes, a number, true, false, null, [ or {";
constexpr const char* open_string = "expected a \" at the end of the string";
constexpr const char* half_of_pair = "expected two halves of a character, as in \\ud83d\\ude00";
constexpr std::string_view hexadecimal_digits = "0123456789abcdef";

constexpr std::uint64_t every_byte(unsigned char byte) noexcept {
    return 0x0101010101010101ULL * byte;
}

// Whether some byte is zero. Bytes above the first zero may be mistaken for one, none below.
constexpr std::uint64_t zero_bytes(std::uint64_t bytes) noexcept {
    return (bytes - every_byte(1)) & ~bytes & every_byte(0x80);
}

bool is_plain(char c) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20U && byte < 0x80U && c != '"' && c != '\\';
}

// How far `text` from `at` on is ASCII that stands for itself in a JSON string; eight at a time,
// because payloads are mostly that.
std::size_t skip_plain(std::string_view text, std::size_t at) noexcept {
    while (text.size() - at >= sizeof(std::uint64_t)) {
        std::uint64_t bytes = 0;
        std::memcpy(&bytes, text.data() + at, sizeof bytes);
        const std::uint64_t controls = (bytes - every_byte(0x20)) & ~bytes & every_byte(0x80);
        const std::uint64_t special = zero_bytes(bytes ^ every_byte('"')) |
                                      zero_bytes(bytes ^ every_byte('\\')) | controls |
                                      (bytes & every_byte(0x80));
        if (special != 0) {
            if constexpr (std::endian::native == std::endian::little) {
                return at + static_cast<std::size_t>(std::countr_zero(special)) / 8;
            }
            break;
        }
        at += sizeof bytes;
    }
    while (at < text.size() && is_plain(text[at])) {
        ++at;
    }
    return at;
}

// The letter that follows the backslash; 0 if the character has none.
char short_escape(char32_t c) noexcept {
    switch (c) {
        case '"':
        case '\\':
            return static_cast<char>(c);
        case '\b':
            return 'b';
        case '\f':
            return 'f';
        case '\n':
            return 'n';
        case '\r':
            return 'r';
        case '\t':
            return 't';
        default:
            return 0;
    }
}

char short_escaped(char letter) noexcept {
    switch (letter) {
        case 'b':
            return '\b';
        case 'f':
            return '\f';
        case 'n':
            return '\n';
        case 'r':
            return '\r';
        case 't':
            return '\t';
        default:
            return letter;  // A quote, a slash or a backslash.
    }
}

bool is_high_surrogate(unsigned unit) noexcept {
    return unit >= 0xd800U && unit <= 0xdbffU;
}
bool is_low_surrogate(unsigned unit) noexcept {
    return unit >= 0xdc00U && unit <= 0xdfffU;
}

std::uint32_t four_digits(std::string_view text) noexcept {
    std::uint32_t value = 0;
    const char* const begin = text.data();
    std::from_chars(begin, begin + 4, value, 16);
    return value;
}

template <class Integer>
void append_digits(std::string& out, Integer value) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out.append(digits.data(), end);
}

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
    out += '"';
    std::size_t at = 0;
    while (true) {
        const std::size_t plain = skip_plain(text, at);
        out.append(text, at, plain - at);
        at = plain;
        if (at == text.size()) {
            break;
        }
        const auto [code_point, bytes] = first_character(text.substr(at));
        if (!code_point) {
            throw InvalidArgument("the text is not UTF-8 at byte " + std::to_string(at) +
                                  "; encode binary data, for example as base64");
        }
        if (bytes == 1) {
            append_escape(out, *code_point);
        } else {
            out.append(text, at, bytes);
        }
        at += bytes;
    }
    out += '"';
}

void append_escape(std::string& out, char32_t code_point) {
    out += '\\';
    if (const char letter = short_escape(code_point)) {
        out += letter;
        return;
    }
    out += 'u';
    for (const unsigned shift : {12U, 8U, 4U, 0U}) {
        out += hexadecimal_digits[(code_point >> shift) & 0xfU];
    }
}

void append_integer(std::string& out, std::int64_t value) {
    append_digits(out, value);
}
void append_integer(std::string& out, std::uint64_t value) {
    append_digits(out, value);
}

std::string_view trim(std::string_view text) noexcept {
    while (!text.empty() && is_space(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_space(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

std::string_view describe(std::string_view value) noexcept {
    value = trim(value);
    switch (value.empty() ? '\0' : value.front()) {
        case '{':
            return "an object";
        case '[':
            return "an array";
        case '"':
            return "a string";
        case 't':
        case 'f':
            return "a boolean";
        case 'n':
            return "null";
        case '\0':
            return "nothing";
        default:
            return "a number";
    }
}

void append_unescaped(std::string& out, std::string_view literal) {
    std::string_view rest = literal.substr(1, literal.size() - 2);
    while (true) {
        const std::size_t plain = rest.find('\\');
        out.append(rest, 0, plain);
        if (plain == std::string_view::npos) {
            return;
        }
        const char letter = rest[plain + 1];
        rest.remove_prefix(plain + 2);
        if (letter != 'u') {
            out += short_escaped(letter);
            continue;
        }
        std::uint32_t code_point = four_digits(rest);
        rest.remove_prefix(4);
        if (is_high_surrogate(code_point)) {
            const std::uint32_t low = four_digits(rest.substr(2));
            code_point = 0x10000U + ((code_point - 0xd800U) << 10U) + (low - 0xdc00U);
            rest.remove_prefix(6);
        }
        append_utf8(out, code_point);
    }
}

bool Scanner::value() noexcept {
    constexpr auto any_member = [](std::string_view, std::string_view) -> const char* {
        return nullptr;
    };
    constexpr auto any_element = [](std::string_view) -> const char* { return nullptr; };
    space();
    if (next_is('{')) {
        return object(any_member);
    }
    if (next_is('[')) {
        return array(any_element);
    }
    return scalar();
}

bool Scanner::walk(Visitor& visitor) {
    space();
    if (next_is('{')) {
        return walk_object(visitor);
    }
    if (next_is('[')) {
        return walk_array(visitor);
    }
    const std::size_t begin = at_;
    if (!scalar()) {
        return false;
    }
    visitor.scalar(begin, trim(text_.substr(begin, at_ - begin)));
    return true;
}

bool Scanner::walk_object(Visitor& visitor) {
    const std::size_t begin = at_;
    if (!open('{', expected_object)) {
        return false;
    }
    visitor.open_object(begin);
    bool more = not_empty('}');
    while (more) {
        space();
        const std::size_t key_at = at_;
        std::string_view literal;
        if (!key(literal)) {
            return false;
        }
        visitor.key(key_at, literal);
        if (!colon() || !walk(visitor) || !separator('}', more, expected_brace)) {
            return false;
        }
    }
    --depth_;
    visitor.close();
    space();
    return true;
}

bool Scanner::walk_array(Visitor& visitor) {
    const std::size_t begin = at_;
    if (!open('[', expected_array)) {
        return false;
    }
    visitor.open_array(begin);
    bool more = not_empty(']');
    while (more) {
        if (!walk(visitor) || !separator(']', more, expected_bracket)) {
            return false;
        }
    }
    --depth_;
    visitor.close();
    space();
    return true;
}

bool Scanner::scalar() noexcept {
    bool good = false;
    switch (at_ == text_.size() ? '\0' : text_[at_]) {
        case '"':
            good = string();
            break;
        case 't':
            good = word("true");
            break;
        case 'f':
            good = word("false");
            break;
        case 'n':
            good = word("null");
            break;
        default:
            good = number();
    }
    if (good) {
        space();
    }
    return good;
}

bool Scanner::fail(const char* why) noexcept {
    fault_ = why;
    return false;
}

bool Scanner::fail(std::size_t at, const char* why) noexcept {
    at_ = at;
    return fail(why);
}

bool Scanner::open(char bracket, const char* why) noexcept {
    space();
    if (!next_is(bracket)) {
        return fail(why);
    }
    if (++depth_ > deepest_) {
        return fail("arrays and objects are nested too deeply");
    }
    ++at_;
    return true;
}

bool Scanner::separator(char bracket, bool& more, const char* why) noexcept {
    more = next_is(',');
    if (!more && !next_is(bracket)) {
        return fail(why);
    }
    ++at_;
    return true;
}

bool Scanner::not_empty(char bracket) noexcept {
    space();
    const bool empty = next_is(bracket);
    at_ += empty ? 1 : 0;
    return !empty;
}

bool Scanner::key(std::string_view& literal) noexcept {
    const std::size_t begin = at_;
    if (!next_is('"')) {
        return fail("expected a key in double quotes");
    }
    if (!string()) {
        return false;
    }
    literal = text_.substr(begin, at_ - begin);
    return true;
}

bool Scanner::colon() noexcept {
    space();
    if (!next_is(':')) {
        return fail("expected a colon and a value");
    }
    ++at_;
    return true;
}

bool Scanner::string() noexcept {
    ++at_;
    while (true) {
        at_ = skip_plain(text_, at_);
        if (at_ == text_.size()) {
            return fail(open_string);
        }
        const char c = text_[at_];
        if (c == '"') {
            ++at_;
            return true;
        }
        if (c == '\\') {
            if (!escape()) {
                return false;
            }
            continue;
        }
        if (static_cast<unsigned char>(c) < 0x20U) {
            return fail("expected an escape such as \\n in place of the control character");
        }
        const auto [code_point, bytes] = first_character(text_.substr(at_));
        if (!code_point) {
            return fail("the string is not UTF-8");
        }
        at_ += bytes;
    }
}

bool Scanner::escape() noexcept {
    const std::size_t begin = at_;
    ++at_;
    if (at_ == text_.size()) {
        return fail(open_string);
    }
    constexpr std::string_view letters = "\"\\/bfnrt";
    if (letters.find(text_[at_]) != std::string_view::npos) {
        ++at_;
        return true;
    }
    unsigned unit = 0;
    if (!hexadecimal(unit)) {
        return fail(begin, fault_);
    }
    if (is_high_surrogate(unit)) {
        ++at_;  // The second backslash, if this is a pair.
        const bool pair = text_.substr(at_ - 1).starts_with("\\u") && hexadecimal(unit);
        return (pair && is_low_surrogate(unit)) || fail(begin, half_of_pair);
    }
    return !is_low_surrogate(unit) || fail(begin, half_of_pair);
}

bool Scanner::hexadecimal(unsigned& unit) noexcept {
    if (!next_is('u')) {
        return fail("expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    }
    ++at_;
    const std::string_view digits = text_.substr(at_, 4);
    const char* const begin = digits.data();
    const char* const end = begin + digits.size();
    const auto [stop, error] = std::from_chars(begin, end, unit, 16);
    if (digits.size() < 4 || error != std::errc{} || stop != end) {
        return fail("expected four hexadecimal digits after \\u");
    }
    at_ += 4;
    return true;
}

bool Scanner::digits() noexcept {
    if (at_ == text_.size() || !is_digit(text_[at_])) {
        return fail("expected a digit");
    }
    while (at_ < text_.size() && is_digit(text_[at_])) {
        ++at_;
    }
    return true;
}

bool Scanner::number() noexcept {
    if (!next_is('-') && (at_ == text_.size() || !is_digit(text_[at_]))) {
        return fail(no_value);
    }
    if (next_is('-')) {
        ++at_;
    }
    if (next_is('0')) {
        ++at_;
    } else if (!digits()) {
        return false;
    }
    if (next_is('.')) {
        ++at_;
        if (!digits()) {
            return false;
        }
    }
    if (next_is('e') || next_is('E')) {
        ++at_;
        if (next_is('+') || next_is('-')) {
            ++at_;
        }
        return digits();
    }
    return true;
}

bool Scanner::word(std::string_view word) noexcept {
    if (text_.substr(at_, word.size()) != word) {
        return fail(no_value);
    }
    at_ += word.size();
    return true;
}

}  // namespace holdfast::json

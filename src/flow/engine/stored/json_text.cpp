#include "stored/json_text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <holdfast/base/error.hpp>

namespace holdfast::flow::json {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";
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

bool between(char c, unsigned char low, unsigned char high) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= low && byte <= high;
}

// The bytes of the UTF-8 sequence that `text` begins with; 0 if it begins with none.
// Requires: `text` is not empty.
std::size_t utf8_sequence(std::string_view text) noexcept {
    const auto first = static_cast<unsigned char>(text.front());
    if (first < 0x80U) {
        return 1;
    }
    // The second byte alone decides about overlong forms, surrogates and the end of Unicode.
    std::size_t bytes = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    if (first >= 0xc2U && first <= 0xdfU) {
        bytes = 2;
    } else if (first >= 0xe0U && first <= 0xefU) {
        bytes = 3;
        low = first == 0xe0U ? 0xa0 : 0x80;
        high = first == 0xedU ? 0x9f : 0xbf;
    } else if (first >= 0xf0U && first <= 0xf4U) {
        bytes = 4;
        low = first == 0xf0U ? 0x90 : 0x80;
        high = first == 0xf4U ? 0x8f : 0xbf;
    }
    if (bytes == 0 || bytes > text.size() || !between(text[1], low, high)) {
        return 0;
    }
    for (std::size_t i = 2; i < bytes; ++i) {
        if (!between(text[i], 0x80, 0xbf)) {
            return 0;
        }
    }
    return bytes;
}

// The letter that follows the backslash; 0 if the character has none.
char short_escape(char c) noexcept {
    switch (c) {
        case '"':
        case '\\':
            return c;
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

void append_escaped(std::string& out, char c) {
    out += '\\';
    if (const char letter = short_escape(c)) {
        out += letter;
        return;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += "u00";
    out += hexadecimal_digits[byte >> 4U];
    out += hexadecimal_digits[byte & 0xfU];
}

void append_utf8(std::string& out, std::uint32_t code_point) {
    const auto tail = [&](unsigned shift) {
        out += static_cast<char>(0x80U | ((code_point >> shift) & 0x3fU));
    };
    if (code_point < 0x80U) {
        out += static_cast<char>(code_point);
    } else if (code_point < 0x800U) {
        out += static_cast<char>(0xc0U | (code_point >> 6U));
        tail(0);
    } else if (code_point < 0x10000U) {
        out += static_cast<char>(0xe0U | (code_point >> 12U));
        tail(6);
        tail(0);
    } else {
        out += static_cast<char>(0xf0U | (code_point >> 18U));
        tail(12);
        tail(6);
        tail(0);
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
        const std::size_t bytes = utf8_sequence(text.substr(at));
        if (bytes == 0) {
            throw InvalidArgument("the text is not UTF-8 at byte " + std::to_string(at) +
                                  "; encode binary data, for example as base64");
        }
        if (bytes == 1) {
            append_escaped(out, text[at]);
        } else {
            out.append(text, at, bytes);
        }
        at += bytes;
    }
    out += '"';
}

void append_integer(std::string& out, std::int64_t value) {
    append_digits(out, value);
}
void append_integer(std::string& out, std::uint64_t value) {
    append_digits(out, value);
}

bool is_storable(std::string_view text) noexcept {
    while (!text.empty()) {
        const std::size_t bytes = utf8_sequence(text);
        if (bytes == 0 || text.front() == '\0') {
            return false;
        }
        text.remove_prefix(bytes);
    }
    return true;
}

std::string valid_utf8(std::string_view text) {
    std::string valid;
    valid.reserve(text.size());
    while (!text.empty()) {
        const std::size_t bytes = utf8_sequence(text);
        valid += bytes == 0 ? replacement : text.substr(0, bytes);
        text.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    return valid;
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
    space();
    if (at_ == text_.size()) {
        return fail("a value is missing");
    }
    constexpr auto any_member = [](std::string_view, std::string_view) -> const char* {
        return nullptr;
    };
    constexpr auto any_element = [](std::string_view) -> const char* { return nullptr; };
    bool good = false;
    switch (text_[at_]) {
        case '{':
            good = object(any_member);
            break;
        case '[':
            good = array(any_element);
            break;
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
        return fail("too deep");
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

bool Scanner::key(std::string_view& key) noexcept {
    const std::size_t begin = at_;
    if (!next_is('"')) {
        return fail("no name of a field");
    }
    if (!string()) {
        return false;
    }
    key = text_.substr(begin + 1, at_ - begin - 2);
    space();
    if (!next_is(':')) {
        return fail("no colon after the name of a field");
    }
    ++at_;
    return true;
}

bool Scanner::string() noexcept {
    ++at_;
    while (true) {
        at_ = skip_plain(text_, at_);
        if (at_ == text_.size()) {
            return fail("a string without an end");
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
            return fail("a control character inside a string");
        }
        const std::size_t bytes = utf8_sequence(text_.substr(at_));
        if (bytes == 0) {
            return fail("no UTF-8");
        }
        at_ += bytes;
    }
}

bool Scanner::escape() noexcept {
    ++at_;
    if (at_ == text_.size()) {
        return fail("a string without an end");
    }
    constexpr std::string_view letters = "\"\\/bfnrt";
    if (letters.find(text_[at_]) != std::string_view::npos) {
        ++at_;
        return true;
    }
    unsigned unit = 0;
    if (!hexadecimal(unit)) {
        return false;
    }
    if (is_low_surrogate(unit)) {
        return fail("half of a surrogate pair");
    }
    if (!is_high_surrogate(unit)) {
        return true;
    }
    if (!next_is('\\')) {
        return fail("half of a surrogate pair");
    }
    ++at_;
    if (!hexadecimal(unit)) {
        return false;
    }
    return is_low_surrogate(unit) || fail("half of a surrogate pair");
}

bool Scanner::hexadecimal(unsigned& unit) noexcept {
    if (!next_is('u')) {
        return fail("an unknown escape");
    }
    ++at_;
    const std::string_view digits = text_.substr(at_, 4);
    const char* const begin = digits.data();
    const char* const end = begin + digits.size();
    const auto [stop, error] = std::from_chars(begin, end, unit, 16);
    if (digits.size() < 4 || error != std::errc{} || stop != end) {
        return fail("an escape without four hexadecimal digits");
    }
    at_ += 4;
    return true;
}

bool Scanner::digits() noexcept {
    if (at_ == text_.size() || !is_digit(text_[at_])) {
        return fail("a digit is missing");
    }
    while (at_ < text_.size() && is_digit(text_[at_])) {
        ++at_;
    }
    return true;
}

bool Scanner::number() noexcept {
    if (!next_is('-') && !is_digit(text_[at_])) {
        return fail("no value");
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
        return fail("no value");
    }
    at_ += word.size();
    return true;
}

namespace {

std::vector<std::string_view> elements_of(std::string_view array) {
    std::vector<std::string_view> found;
    (void)Scanner(array).array([&](std::string_view element) -> const char* {
        found.push_back(element);
        return nullptr;
    });
    return found;
}

using Members = std::map<std::string_view, std::string_view>;

Members members_of(std::string_view object) {
    Members found;
    (void)Scanner(object).object([&](std::string_view key, std::string_view value) -> const char* {
        found.emplace(key, value);
        return nullptr;
    });
    return found;
}

}  // namespace

bool agree(std::string_view one, std::string_view other) {
    one = trim(one);
    other = trim(other);
    if (one == other) {
        return true;
    }
    if (one.empty() || other.empty() || one.front() != other.front()) {
        return false;
    }
    if (one.front() == '[') {
        return std::ranges::equal(elements_of(one), elements_of(other), agree);
    }
    if (one.front() != '{') {
        return false;
    }
    const Members mine = members_of(one);
    const Members theirs = members_of(other);
    std::size_t shared = 0;
    for (const auto& [key, value] : mine) {
        const auto found = theirs.find(key);
        if (found != theirs.end()) {
            ++shared;
            if (!agree(value, found->second)) {
                return false;
            }
        }
    }
    return shared == std::min(mine.size(), theirs.size());
}

}  // namespace holdfast::flow::json

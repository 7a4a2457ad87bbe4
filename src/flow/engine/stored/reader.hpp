// Reads values by their layout. The members of an object are found in one pass over its text, and
// only what the layout names is looked at further.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "stored/layout.hpp"
#include "stored/writer.hpp"
#include <fmt/format.h>

#include <holdfast/base/json_text.hpp>
#include <holdfast/base/utf8.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow::stored {

// Of one object. Ours have 11 at most; the rest is room for what a newer version adds.
inline constexpr std::size_t members_max = 32;
// Of an unknown kind, in a message.
inline constexpr std::size_t quoted_kind_max = 64;

// The whole text, to say where in it something is wrong.
class Text {
public:
    explicit Text(std::string_view all) : all_(all) {}

    // Requires: `where` lies in it.
    [[noreturn]] void refuse(std::string_view where, std::string_view why) const {
        throw Undecodable(fmt::format("byte {}: {}", where.data() - all_.data(), why));
    }

private:
    std::string_view all_;
};

// The value of a field. Its text is one JSON value, perhaps with whitespace around it.
struct Value {
    const Text& all;
    std::string_view name;
    std::string_view text;

    [[noreturn]] void refuse(std::string_view expected) const {
        all.refuse(
            text,
            fmt::format("field '{}': expected {}, found {}", name, expected, json::describe(text)));
    }
    // Of a string, as it is written.
    [[nodiscard]] std::string_view literal() const {
        const std::string_view trimmed = json::trim(text);
        if (!trimmed.starts_with('"')) {
            refuse("a string");
        }
        return trimmed;
    }
    // Of a string, what is between its quotes. No word of ours has an escape in it.
    [[nodiscard]] std::string_view word() const {
        const std::string_view quoted = literal();
        return quoted.substr(1, quoted.size() - 2);
    }
};

// The members of one object. Names are compared as they are written: one with an escape is foreign.
// A name that comes twice is refused, because either value would be a guess.
class Members {
public:
    // Takes the next object of `scanner`, whose text is `text`.
    Members(const Text& all, json::Scanner& scanner, std::string_view text)
        : all_(all), rest_(text.substr(scanner.at())) {
        const bool good = scanner.object(
            [&](std::string_view name, std::string_view value) { return add(name, value); });
        if (!good) {
            all.refuse(text.substr(scanner.at()), scanner.fault());
        }
    }

    // Empty if there is none. Fast when asked in the order of the text.
    [[nodiscard]] std::optional<Value> find(std::string_view name) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            const std::size_t at = next_ + i < count_ ? next_ + i : next_ + i - count_;
            if (members_[at].first == name) {
                next_ = at + 1 < count_ ? at + 1 : 0;
                return Value{all_, name, members_[at].second};
            }
        }
        return std::nullopt;
    }
    [[nodiscard]] Value need(std::string_view name) {
        const std::optional<Value> value = find(name);
        if (!value) {
            refuse(fmt::format("field '{}' is missing", name));
        }
        return *value;
    }
    [[noreturn]] void refuse(std::string_view why) const { all_.refuse(rest_, why); }

private:
    const char* add(std::string_view name, std::string_view value) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            if (members_[i].first == name) {
                return "a field that was there before";
            }
        }
        if (count_ == members_max) {
            return "too many fields";
        }
        members_[count_++] = {name, value};
        return nullptr;
    }

    const Text& all_;
    std::string_view rest_;  // Begins with the object.
    std::array<std::pair<std::string_view, std::string_view>, members_max> members_;
    std::size_t count_ = 0;
    std::size_t next_ = 0;
};

template <Described T>
void read_fields(Members& members, T& value);

inline void read(const Value& from, std::string& value) {
    value.clear();  // Some fields have a default.
    json::append_unescaped(value, from.literal());
}
inline void read(const Value& from, Payload& value) {
    value.json = from.text;
}
inline void read(const Value& from, bool& value) {
    const std::string_view text = json::trim(from.text);
    if (text != "true" && text != "false") {
        from.refuse("a boolean");
    }
    value = text == "true";
}
inline void read(const Value& from, double& value) {
    const std::string_view text = json::trim(from.text);
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || stop != end || !std::isfinite(value)) {
        from.refuse("a number in range");
    }
}
template <std::integral T>
void read(const Value& from, T& value) {
    const std::string_view text = json::trim(from.text);
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || stop != end) {
        from.refuse("an integer in range");
    }
}
inline void read(const Value& from, FailureKind& value) {
    const std::optional<FailureKind> kind = failure_kind(from.word());
    if (!kind) {
        from.refuse("the name of a kind of failure");
    }
    value = *kind;
}
inline void read(const Value& from, Dropped& value) {
    const std::string_view word = from.word();
    for (const Dropped operation :
         {Dropped::activity, Dropped::timer, Dropped::child, Dropped::message, Dropped::signal}) {
        if (to_string(operation) == word) {
            value = operation;
            return;
        }
    }
    from.refuse("the name of an operation");
}
template <Described T>
void read(const Value& from, T& value) {
    json::Scanner scanner(from.text);
    Members members(from.all, scanner, from.text);
    read_fields(members, value);
}

template <class T>
void read_field(Members& members, std::string_view name, T& value) {
    read(members.need(name), value);
}
template <class T>
void read_field(Members& members, std::string_view name, std::optional<T>& value) {
    if (const std::optional<Value> from = members.find(name)) {
        read(*from, value.emplace());
    }
}
template <class T>
void read_field(Members& members, std::string_view name, std::vector<T>& values) {
    const std::optional<Value> from = members.find(name);
    if (!from) {
        return;
    }
    json::Scanner scanner(from->text);
    const bool good = scanner.array([&](std::string_view element) -> const char* {
        read(Value{from->all, name, element}, values.emplace_back());
        return nullptr;
    });
    if (!good) {
        from->refuse("an array");
    }
}
template <class Owner, class T>
void read_member(Members& members, const Field<Owner, T>& field, Owner& owner) {
    read_field(members, field.name, owner.*field.member);
}
template <class Owner>
void read_member(Members& members, const AnswerField<Owner>& field, Owner& owner) {
    const std::optional<Value> result = members.find(field.result);
    const std::optional<Value> failure = members.find(field.failure);
    if (result.has_value() == failure.has_value()) {
        members.refuse(fmt::format("either '{}' or '{}' is needed", field.result, field.failure));
    }
    Answer& answer = owner.*field.member;
    if (result) {
        read(*result, answer.template emplace<Payload>());
    } else {
        read(*failure, answer.template emplace<FailureInfo>());
    }
}

template <Described T>
void read_fields(Members& members, T& value) {
    std::apply([&](const auto&... fields) { (read_member(members, fields, value), ...); },
               Layout<T>::fields);
    if constexpr (Faultable<T>) {
        if (const char* why = Layout<T>::fault(value)) {
            members.refuse(why);
        }
    }
}

template <class Body>
struct BodyReader;
template <class... Bodies>
struct BodyReader<std::variant<Bodies...>> {
    using Body = std::variant<Bodies...>;

    template <class T>
    static Body read_as(Members& members) {
        Body body(std::in_place_type<T>);
        read_fields(members, *std::get_if<T>(&body));
        return body;
    }

    // The alternative that the field `kind` names.
    static Body read(Members& members) {
        using Read = Body (*)(Members&);
        constexpr std::array<Read, sizeof...(Bodies)> readers{&read_as<Bodies>...};
        const Value value = members.need("kind");
        const std::string_view kind = value.word();
        for (std::size_t i = 0; i < readers.size(); ++i) {
            if (Kinds<Body>::names[i] == kind) {
                return readers[i](members);
            }
        }
        value.all.refuse(
            value.text,
            fmt::format("unknown kind '{}'", valid_utf8(kind.substr(0, quoted_kind_max))));
    }
};

}  // namespace holdfast::flow::stored

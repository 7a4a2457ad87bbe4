// Words that a scenario chooses from, and what else its readers have in common.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "scenario/fields.hpp"
#include <fmt/core.h>

namespace holdfast::sim {

template <class Enum>
struct Word {
    std::string_view word;
    Enum value;
};

inline constexpr std::array fault_words{
    Word{"cold_start", FaultKind::cold_start},
    Word{"rolling_restart", FaultKind::rolling_restart},
    Word{"mass_drop", FaultKind::mass_drop},
    Word{"crash", FaultKind::crash},
    Word{"outage", FaultKind::outage},
    Word{"rejects", FaultKind::rejects},
    Word{"slow", FaultKind::slow},
    Word{"credentials", FaultKind::credentials},
    Word{"partition", FaultKind::partition},
    Word{"limit", FaultKind::limit},
    Word{"scale", FaultKind::scale},
    Word{"load", FaultKind::load},
    Word{"dynamodb_outage", FaultKind::table_outage},
    Word{"clock_jump", FaultKind::clock_jump},
};

template <class Enum, std::size_t N>
std::string_view word_of(const std::array<Word<Enum>, N>& words, Enum value) noexcept {
    const auto found = std::ranges::find(words, value, &Word<Enum>::value);
    return found == words.end() ? "" : found->word;
}

template <class Enum, std::size_t N>
void read_word(Fields& fields,
               std::string_view key,
               const std::array<Word<Enum>, N>& words,
               Enum& to) {
    std::string known;
    for (const Word<Enum>& word : words) {
        known += fmt::format("{}{}", known.empty() ? "" : ", ", word.word);
    }
    std::string text{fields.has(key) ? "" : word_of(words, to)};
    fields.read(key, text, known);
    if (!fields.has(key)) {
        return;
    }
    const auto found = std::ranges::find(words, text, &Word<Enum>::word);
    if (found == words.end()) {
        fields.refuse(key, "choose from " + known);
    }
    to = found->value;
}

// Refuses keys that the kind does not read. `heard` has the keys it reads, with spaces between
// them.
inline void refuse_unheard(const Fields& fields,
                           std::string_view kind,
                           std::string_view heard,
                           std::initializer_list<std::string_view> keys) {
    const std::string among = fmt::format(" {} ", heard);
    for (const std::string_view key : keys) {
        fields.require(
            !fields.has(key) || among.find(fmt::format(" {} ", key)) != std::string::npos,
            key,
            fmt::format("{} does not use it; {}",
                        kind,
                        heard.empty() ? "leave it out" : fmt::format("it takes: {}", heard)));
    }
}

// Each entry of a list, in file order.
template <class Read>
void read_list(Fields& fields, std::string_view key, Read read) {
    const Node& list = fields.below(key);
    fields.require(
        list.kind == Node::Kind::list || list.kind == Node::Kind::null, key, "expected a list");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
        read(Fields(list.items[i], fmt::format("{}[{}]", fields.path_of(key), i), fields.rules()));
    }
}

}  // namespace holdfast::sim

#include "rpc/semantic_version.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::server::rpc {

namespace {

bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

bool is_number(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, is_digit);
}

bool has_leading_zero(std::string_view number) {
    return number.size() > 1 && number.front() == '0';
}

// Letters, digits and hyphens.
bool is_identifier(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char letter) {
        return is_digit(letter) || letter == '-' || (letter >= 'a' && letter <= 'z') ||
               (letter >= 'A' && letter <= 'Z');
    });
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
    std::vector<std::string_view> parts;
    for (std::size_t at = text.find(separator); at != text.npos; at = text.find(separator)) {
        parts.push_back(text.substr(0, at));
        text.remove_prefix(at + separator.size());
    }
    parts.push_back(text);
    return parts;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!is_number(text) || has_leading_zero(text) || error != std::errc() ||
        end != text.data() + text.size()) {
        return std::nullopt;
    }
    return number;
}

// Numbers come before words, and shorter numbers, which have no leading zeros, before longer ones.
std::strong_ordering compare_identifiers(const std::string& left, const std::string& right) {
    const bool left_number = is_number(left);
    if (left_number != is_number(right)) {
        return left_number ? std::strong_ordering::less : std::strong_ordering::greater;
    }
    if (left_number && left.size() != right.size()) {
        return left.size() <=> right.size();
    }
    return left <=> right;
}

}  // namespace

std::optional<SemanticVersion> SemanticVersion::parse(std::string_view text) {
    SemanticVersion version;
    const std::size_t plus = text.find('+');
    if (plus != text.npos) {
        if (!std::ranges::all_of(split(text.substr(plus + 1), "."), is_identifier)) {
            return std::nullopt;
        }
        text = text.substr(0, plus);
    }
    const std::size_t hyphen = text.find('-');
    if (hyphen != text.npos) {
        for (const std::string_view part : split(text.substr(hyphen + 1), ".")) {
            if (!is_identifier(part) || (is_number(part) && has_leading_zero(part))) {
                return std::nullopt;
            }
            version.prerelease.emplace_back(part);
        }
        text = text.substr(0, hyphen);
    }
    const auto parts = split(text, ".");
    if (parts.size() != version.numbers.size()) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto number = number_in(parts[i]);
        if (!number) {
            return std::nullopt;
        }
        version.numbers.at(i) = *number;
    }
    return version;
}

std::strong_ordering operator<=>(const SemanticVersion& left, const SemanticVersion& right) {
    if (const auto order = left.numbers <=> right.numbers; order != 0) {
        return order;
    }
    if (left.prerelease.empty() || right.prerelease.empty()) {
        return left.prerelease.empty() <=> right.prerelease.empty();
    }
    return std::lexicographical_compare_three_way(left.prerelease.begin(),
                                                  left.prerelease.end(),
                                                  right.prerelease.begin(),
                                                  right.prerelease.end(),
                                                  compare_identifiers);
}

std::optional<VersionRange> VersionRange::parse(std::string_view text) {
    VersionRange range;
    for (const std::string_view part : split(text, "||")) {
        auto bounds = parse_bounds(part);
        if (!bounds) {
            return std::nullopt;
        }
        range.alternatives_.push_back(std::move(*bounds));
    }
    return range;
}

// One or more; blanks may follow an operator.
std::optional<std::vector<VersionRange::Bound>> VersionRange::parse_bounds(std::string_view text) {
    using enum Comparison;
    static constexpr std::array<std::pair<std::string_view, Comparison>, 8> operators{{
        {">=", at_least},
        {"<=", at_most},
        {"==", equal},
        {"!=", not_equal},
        {">", greater},
        {"<", less},
        {"=", equal},
        {"!", not_equal},
    }};
    const auto skip_blanks = [&] {
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    };

    std::vector<Bound> bounds;
    for (skip_blanks(); !text.empty(); skip_blanks()) {
        Comparison comparison = equal;
        for (const auto& [sign, meaning] : operators) {
            if (text.starts_with(sign)) {
                comparison = meaning;
                text.remove_prefix(sign.size());
                break;
            }
        }
        skip_blanks();
        const std::size_t end = std::min(text.find_first_of(" <>=!"), text.size());
        auto version = SemanticVersion::parse(text.substr(0, end));
        if (!version) {
            return std::nullopt;
        }
        bounds.push_back({.comparison = comparison, .version = std::move(*version)});
        text.remove_prefix(end);
    }
    if (bounds.empty()) {
        return std::nullopt;
    }
    return bounds;
}

bool VersionRange::holds(const Bound& bound, const SemanticVersion& version) {
    const auto order = version <=> bound.version;
    switch (bound.comparison) {
        case Comparison::equal:
            return order == 0;
        case Comparison::not_equal:
            return order != 0;
        case Comparison::less:
            return order < 0;
        case Comparison::at_most:
            return order <= 0;
        case Comparison::greater:
            return order > 0;
        case Comparison::at_least:
            return order >= 0;
    }
    return false;
}

bool VersionRange::contains(const SemanticVersion& version) const {
    return std::ranges::any_of(alternatives_, [&](const auto& bounds) {
        return std::ranges::all_of(bounds,
                                   [&](const Bound& bound) { return holds(bound, version); });
    });
}

}  // namespace holdfast::server::rpc

// Semantic versions and ranges of them, such as ">=1.0.0 <2.0.0 || 3.1.4".
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::server::rpc {

// Ordered by precedence: a pre-release comes before its release. Build metadata is dropped.
struct SemanticVersion {
    std::array<std::uint64_t, 3> numbers{};  // Major, minor, patch.
    std::vector<std::string> prerelease;     // Its identifiers; empty for a release.

    // Nothing if `text` is not a version: three numbers without leading zeros are needed.
    [[nodiscard]] static std::optional<SemanticVersion> parse(std::string_view text);

    friend bool operator==(const SemanticVersion&, const SemanticVersion&) = default;
    friend std::strong_ordering operator<=>(const SemanticVersion& left,
                                            const SemanticVersion& right);
};

// Alternatives between "||", each a list of comparisons that must all hold.
class VersionRange {
public:
    // Nothing if `text` is not a range. Wildcards are not understood.
    [[nodiscard]] static std::optional<VersionRange> parse(std::string_view text);

    [[nodiscard]] bool contains(const SemanticVersion& version) const;

private:
    enum class Comparison : std::uint8_t { equal, not_equal, less, at_most, greater, at_least };
    struct Bound {
        Comparison comparison;
        SemanticVersion version;
    };

    [[nodiscard]] static std::optional<std::vector<Bound>> parse_bounds(std::string_view text);
    [[nodiscard]] static bool holds(const Bound& bound, const SemanticVersion& version);

    std::vector<std::vector<Bound>> alternatives_;
};

}  // namespace holdfast::server::rpc

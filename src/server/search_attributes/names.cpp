#include "search_attributes/names.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <server/namespaces/namespace.pb.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::search_attributes {

namespace {

namespace enums = temporal::api::enums::v1;

constexpr Type text = enums::INDEXED_VALUE_TYPE_TEXT;
constexpr Type keyword = enums::INDEXED_VALUE_TYPE_KEYWORD;
constexpr Type integer = enums::INDEXED_VALUE_TYPE_INT;
constexpr Type real = enums::INDEXED_VALUE_TYPE_DOUBLE;
constexpr Type boolean = enums::INDEXED_VALUE_TYPE_BOOL;
constexpr Type datetime = enums::INDEXED_VALUE_TYPE_DATETIME;
constexpr Type keyword_list = enums::INDEXED_VALUE_TYPE_KEYWORD_LIST;

// By length of the name, so that KeywordList01 is not taken for a Keyword.
constexpr std::array<std::pair<std::string_view, Type>, 7> types{
    std::pair{"KeywordList", keyword_list},
    std::pair{"Datetime", datetime},
    std::pair{"Keyword", keyword},
    std::pair{"Double", real},
    std::pair{"Text", text},
    std::pair{"Bool", boolean},
    std::pair{"Int", integer}};

constexpr std::array<Known, 33> all_known{
    Known{"WorkflowId", keyword, Origin::system},
    Known{"RunId", keyword, Origin::system},
    Known{"WorkflowType", keyword, Origin::system},
    Known{"StartTime", datetime, Origin::system},
    Known{"ExecutionTime", datetime, Origin::system},
    Known{"CloseTime", datetime, Origin::system},
    Known{"ExecutionStatus", keyword, Origin::system},
    Known{"TaskQueue", keyword, Origin::system},
    Known{"HistoryLength", integer, Origin::system},
    Known{"HistorySizeBytes", integer, Origin::system},
    Known{"ExecutionDuration", integer, Origin::system},
    Known{"StateTransitionCount", integer, Origin::system},
    Known{"ParentWorkflowId", keyword, Origin::system},
    Known{"ParentRunId", keyword, Origin::system},
    Known{"RootWorkflowId", keyword, Origin::system},
    Known{"RootRunId", keyword, Origin::system},
    Known{"TemporalChangeVersion", keyword_list, Origin::settable},
    Known{"BinaryChecksums", keyword_list, Origin::settable},
    Known{"BuildIds", keyword_list, Origin::settable},
    Known{"BatcherNamespace", keyword, Origin::settable},
    Known{"BatcherUser", keyword, Origin::settable},
    Known{"TemporalScheduledStartTime", datetime, Origin::settable},
    Known{"TemporalScheduledById", keyword, Origin::settable},
    Known{"TemporalSchedulePaused", boolean, Origin::settable},
    Known{"TemporalNamespaceDivision", keyword, Origin::settable},
    Known{"TemporalPauseInfo", keyword_list, Origin::settable},
    Known{"TemporalReportedProblems", keyword_list, Origin::settable},
    Known{"TemporalWorkerDeploymentVersion", keyword, Origin::predefined},
    Known{"TemporalWorkerDeployment", keyword, Origin::predefined},
    Known{"TemporalWorkflowVersioningBehavior", keyword, Origin::predefined},
    Known{"TemporalUsedWorkerDeploymentVersions", keyword_list, Origin::predefined},
    Known{"TemporalExternalPayloadCount", integer, Origin::predefined},
    Known{"TemporalExternalPayloadSizeBytes", integer, Origin::predefined}};

constexpr std::array<std::string_view, 4> reserved_words{
    "NamespaceId", "Memo", "MemoEncoding", "VisibilityTaskKey"};

constexpr int columns_max = 9999;

struct Column {
    Type type{};
    int number = 0;
};

std::optional<Column> parse_column(std::string_view name) {
    for (const auto& [prefix, type] : types) {
        if (!name.starts_with(prefix)) {
            continue;
        }
        const std::string_view digits = name.substr(prefix.size());
        int number = 0;
        const auto [stop, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), number);
        const bool whole = error == std::errc{} && stop == digits.data() + digits.size();
        if (whole && number > 0 && number <= columns_max &&
            digits == fmt::format("{:02}", number)) {
            return Column{.type = type, .number = number};
        }
        return std::nullopt;
    }
    return std::nullopt;
}

void use_column(Info& info, const Column& column) {
    int& used = (*info.mutable_columns_used())[column.type];
    used = std::max(used, column.number);
}

}  // namespace

std::string_view short_name(Type type) {
    const auto* const found = std::ranges::find(types, type, &decltype(types)::value_type::second);
    return found == types.end() ? "Unspecified" : found->first;
}

std::span<const Known> known_attributes() {
    return all_known;
}

const Known* find_known(std::string_view name) {
    const auto* const found = std::ranges::find(all_known, name, &Known::name);
    return found == all_known.end() ? nullptr : found;
}

bool is_reserved(std::string_view name) {
    return name.starts_with("Temporal") || find_known(name) != nullptr ||
           std::ranges::find(reserved_words, name) != reserved_words.end();
}

std::optional<Type> column_type(std::string_view column) {
    const std::optional<Column> parsed = parse_column(column);
    return parsed ? std::optional(parsed->type) : std::nullopt;
}

std::optional<Type> stored_type(std::string_view name) {
    const Known* const known = find_known(name);
    if (known != nullptr && known->origin != Origin::system) {
        return known->type;
    }
    return column_type(name);
}

std::optional<std::string> column_of(const Info& info, std::string_view alias) {
    for (const auto& [column, given] : info.aliases()) {
        if (given == alias) {
            return column;
        }
    }
    return std::nullopt;
}

std::optional<std::string> alias_of(const Info& info, const std::string& column) {
    const auto found = info.aliases().find(column);
    return found == info.aliases().end() ? std::nullopt : std::optional(found->second);
}

bool add(Info& info, const std::string& alias, Type type) {
    HOLDFAST_ASSERT(short_name(type) != "Unspecified");
    if (column_of(info, alias)) {
        return false;
    }
    const int number = (*info.mutable_columns_used())[type] + 1;
    (*info.mutable_aliases())[fmt::format("{}{:02}", short_name(type), number)] = alias;
    use_column(info, {.type = type, .number = number});
    return true;
}

bool remove(Info& info, const std::string& alias) {
    const std::optional<std::string> column = column_of(info, alias);
    return column && info.mutable_aliases()->erase(*column) > 0;
}

std::optional<std::string> merge(Info& info, const Aliases& aliases) {
    Info merged = info;
    for (const auto& [column, alias] : aliases) {
        const std::optional<Column> parsed = parse_column(column);
        if (!parsed) {
            return fmt::format("Unknown search attribute field name: {}.", column);
        }
        if (alias.empty()) {
            merged.mutable_aliases()->erase(column);
            continue;
        }
        if (is_reserved(alias)) {
            return fmt::format("Search attribute {} is reserved by system.", alias);
        }
        const std::optional<std::string> held = alias_of(merged, column);
        if (held == alias || column_of(merged, alias)) {
            continue;  // It is there.
        }
        if (held) {
            return "Custom search attribute field name already allocated.";
        }
        (*merged.mutable_aliases())[column] = alias;
        use_column(merged, *parsed);
    }
    info = std::move(merged);
    return std::nullopt;
}

}  // namespace holdfast::server::search_attributes

#include <holdfast/flow/provider.hpp>

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::flow {
namespace {

constexpr std::size_t tags_max = 5;

constexpr std::array all_statuses{Status::pending,
                                  Status::running,
                                  Status::completed,
                                  Status::failed,
                                  Status::cancelled,
                                  Status::continued,
                                  Status::reset};

std::vector<std::string> checked(std::vector<std::string> tags) {
    if (tags.empty() || tags.size() > tags_max) {
        throw InvalidArgument(
            fmt::format("a worker's filter has {} tags; give it 1 to {}", tags.size(), tags_max));
    }
    return tags;
}

}  // namespace

std::string_view to_string(Status status) noexcept {
    switch (status) {
        case Status::pending:
            return "pending";
        case Status::running:
            return "running";
        case Status::completed:
            return "completed";
        case Status::failed:
            return "failed";
        case Status::cancelled:
            return "cancelled";
        case Status::continued:
            return "continued";
        case Status::reset:
            return "reset";
    }
    return "";
}

std::string_view to_string(BlockKind kind) noexcept {
    switch (kind) {
        case BlockKind::unregistered:
            return "unregistered";
        case BlockKind::unreadable:
            return "unreadable";
        case BlockKind::nondeterminism:
            return "nondeterminism";
    }
    return "";
}

std::optional<BlockKind> block_kind_named(std::string_view name) noexcept {
    for (const BlockKind kind :
         {BlockKind::unregistered, BlockKind::unreadable, BlockKind::nondeterminism}) {
        if (to_string(kind) == name) {
            return kind;
        }
    }
    return std::nullopt;
}

std::optional<Status> status_named(std::string_view name) noexcept {
    for (const Status status : all_statuses) {
        if (to_string(status) == name) {
            return status;
        }
    }
    return std::nullopt;
}

TagFilter TagFilter::only(std::vector<std::string> tags) {
    return {.untagged = false, .any = false, .tags = checked(std::move(tags))};
}

TagFilter TagFilter::default_and(std::vector<std::string> tags) {
    return {.untagged = true, .any = false, .tags = checked(std::move(tags))};
}

bool TagFilter::admits(const std::optional<std::string>& tag) const {
    if (any) {
        return true;
    }
    if (!tag || tag->empty()) {
        return untagged;
    }
    return std::find(tags.begin(), tags.end(), *tag) != tags.end();
}

}  // namespace holdfast::flow

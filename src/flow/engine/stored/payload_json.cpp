#include "stored/payload_json.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <holdfast/base/utf8.hpp>

namespace holdfast::flow {
namespace {

std::vector<std::string_view> elements_of(std::string_view array) {
    std::vector<std::string_view> found;
    (void)json::Scanner(array).array([&](std::string_view element) -> const char* {
        found.push_back(element);
        return nullptr;
    });
    return found;
}

using Members = std::map<std::string_view, std::string_view>;

Members members_of(std::string_view object) {
    Members found;
    (void)json::Scanner(object).object(
        [&](std::string_view key, std::string_view value) -> const char* {
            found.emplace(key, value);
            return nullptr;
        });
    return found;
}

}  // namespace

bool is_storable(std::string_view text) noexcept {
    return is_utf8(text) && text.find('\0') == std::string_view::npos;
}

bool agree(std::string_view one, std::string_view other) {
    one = json::trim(one);
    other = json::trim(other);
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

}  // namespace holdfast::flow

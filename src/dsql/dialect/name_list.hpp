// Lists of names in the tables of rules.
#pragma once

#include <algorithm>
#include <string_view>

namespace holdfast::dsql {

template <class List>
[[nodiscard]] bool lists(const List& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace holdfast::dsql

// The times that the store keeps.
#pragma once

#include <chrono>

#include <holdfast/sql/value.hpp>

namespace holdfast::store {

// They lie between these two, which every database keeps and puts in the same order. A run that has
// not closed is sorted as if it closed last of all.
inline constexpr sql::Timestamp earliest{std::chrono::sys_days{std::chrono::year{1} / 1 / 1}};
inline constexpr sql::Timestamp latest{std::chrono::sys_days{std::chrono::year{9999} / 12 / 31}};

}  // namespace holdfast::store

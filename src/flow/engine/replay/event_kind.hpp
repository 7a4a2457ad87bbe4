// Kinds of events as numbers.
#pragma once

#include <cstddef>
#include <utility>

#include <holdfast/flow_engine/event.hpp>

namespace holdfast::flow {

// The index of an event's type, as EventBody::index() gives it.
template <class T>
[[nodiscard]] constexpr std::size_t kind_of() {
    return EventBody(std::in_place_type<T>).index();
}

}  // namespace holdfast::flow

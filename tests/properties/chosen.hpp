// Choices of a random test.
#pragma once

#include <rapidcheck.h>

namespace holdfast::test {

// From `first` on, and before `end`, all equally likely. A range of rapidcheck's own is narrow in
// the first cases, and where a generator was resized; here every case may meet everything.
template <class T>
[[nodiscard]] T chosen(T first, T end) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(first, end));
}

}  // namespace holdfast::test

// How a replay treats an input that differs from the history.
//
// The kind and the name of a request are always compared. The input is too: code that asks for the
// same with another input is most often not deterministic. But a newer build may compute or
// write an input differently, and that must not end running instances.
//
//                     fields came or went        another value
//   by_build          a warning                  the build that wrote it is another one: a warning;
//                                                the same, or not known: nondeterminism
//   strict            nondeterminism             nondeterminism
//   warn              a warning                  a warning
//   ignore            nothing                    nothing
//
// If a difference is accepted, the history holds: the activity or the child has the recorded input.
#pragma once

#include <cstdint>

namespace holdfast::flow {

enum class InputCheck : std::uint8_t { by_build, strict, warn, ignore };

}  // namespace holdfast::flow

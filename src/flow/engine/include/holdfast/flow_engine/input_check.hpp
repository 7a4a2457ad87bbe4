// What a replay makes of an input that is not the one in the history.
//
// The kind and the name of a request are always compared. The input is too: code that asks for the
// same with another input is most often not deterministic. But a newer build may well compute or
// write an input otherwise, and that must not end what is running.
//
//                     fields came or went        another value
//   by_build          a warning                  the build that wrote it is another one: a warning;
//                                                the same, or not known: nondeterminism
//   strict            nondeterminism             nondeterminism
//   warn              a warning                  a warning
//   ignore            nothing                    nothing
//
// Whatever is let pass, the history holds: the activity or the child has the recorded input.
#pragma once

#include <cstdint>

namespace holdfast::flow {

enum class InputCheck : std::uint8_t { by_build, strict, warn, ignore };

}  // namespace holdfast::flow

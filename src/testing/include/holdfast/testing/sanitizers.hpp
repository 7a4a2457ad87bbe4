// What a sanitizer needs for itself.
#pragma once

namespace holdfast::test {

// UBSan opens a pipe to look at an object whose type it has not met before. In a process without
// free descriptors it takes every such object for a damaged one.
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
inline constexpr bool sanitizer_needs_descriptors = true;
#else
inline constexpr bool sanitizer_needs_descriptors = false;
#endif
#else
inline constexpr bool sanitizer_needs_descriptors = false;
#endif

}  // namespace holdfast::test

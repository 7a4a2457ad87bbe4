// Broken invariants stop the process, in every build: continuing with damaged state is worse.
#pragma once

#include <source_location>

namespace holdfast {

[[noreturn]] void assertion_failed(const char* belief, std::source_location where) noexcept;

}  // namespace holdfast

// One condition per assert.
#define HOLDFAST_ASSERT(belief) \
    (static_cast<bool>(belief)  \
         ? static_cast<void>(0) \
         : ::holdfast::assertion_failed(#belief, std::source_location::current()))

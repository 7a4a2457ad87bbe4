// Broken beliefs stop the process, in every build: carrying on with damaged state is worse.
#pragma once

#include <source_location>

namespace holdfast {

[[noreturn]] void assertion_failed(const char* belief, std::source_location where) noexcept;

}  // namespace holdfast

// One belief per assert.
#define HOLDFAST_ASSERT(belief) \
    (static_cast<bool>(belief)  \
         ? static_cast<void>(0) \
         : ::holdfast::assertion_failed(#belief, std::source_location::current()))

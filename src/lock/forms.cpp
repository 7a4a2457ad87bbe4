#include "forms.hpp"

#include <algorithm>

#include <holdfast/lock/error.hpp>

namespace holdfast::lock {

Missing why_missing(std::optional<std::int64_t> expires_at_ms) {
    return expires_at_ms ? Missing::expired : Missing::not_found;
}

std::chrono::milliseconds until_free(std::int64_t held_until_ms,
                                     std::int64_t now_ms,
                                     std::chrono::milliseconds tolerance) {
    const std::chrono::milliseconds left{held_until_ms - now_ms};
    return std::max(left + tolerance, std::chrono::milliseconds{0});
}

void throw_overflow() {
    throw LockError(LockCode::internal,
                    "fence overflow: the key's counter is at its end and can never be used again; "
                    "use another key");
}

}  // namespace holdfast::lock

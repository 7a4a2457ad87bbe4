#include "subscriber.hpp"

#include <exception>

#include <holdfast/base/error.hpp>

namespace holdfast::sql {

void call_subscriber(const Wake& wake,
                     std::string_view channel,
                     std::string_view payload,
                     Logger& logger) noexcept {
    try {
        wake(payload);
    } catch (...) {
        logger.error("a callback of a subscription threw",
                     {{"channel", channel}, {"error", describe(std::current_exception())}});
    }
}

}  // namespace holdfast::sql

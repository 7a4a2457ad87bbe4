// Why a request changes nothing: a normal answer, which the frontend turns into a status.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace holdfast::server::history {

enum class Refused : std::uint8_t {
    not_found,
    invalid_argument,
    failed_precondition,
    busy,              // The run is closing; the same request may succeed later.
    not_ready,         // Its workflow task fails again and again.
    concurrent_limit,  // Too many requests of this kind are under way.
    unavailable,       // Lost with what was in memory; the same request may succeed at once.
};

struct Refusal {
    Refused kind{};
    std::string message;
};

template <class T>
using Or = std::variant<T, Refusal>;

[[nodiscard]] inline Refusal already_completed() {
    return {Refused::not_found, "workflow execution already completed"};
}

}  // namespace holdfast::server::history

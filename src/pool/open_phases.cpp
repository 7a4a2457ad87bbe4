#include <holdfast/pool/open_phases.hpp>

namespace holdfast::pool {

std::string_view to_string(OpenPhase phase) noexcept {
    switch (phase) {
        case OpenPhase::slot:
            return "slot";
        case OpenPhase::permit:
            return "permit";
        case OpenPhase::token:
            return "token";
        case OpenPhase::resolve:
            return "resolve";
        case OpenPhase::tcp:
            return "tcp";
        case OpenPhase::tls:
            return "tls";
        case OpenPhase::auth:
            return "auth";
        case OpenPhase::init:
            return "init";
    }
    return "init";
}

}  // namespace holdfast::pool

#include <holdfast/pool/stages.hpp>

namespace holdfast::pool {

std::string_view to_string(Stage stage) noexcept {
    switch (stage) {
        case Stage::slot:
            return "slot";
        case Stage::permit:
            return "permit";
        case Stage::token:
            return "token";
        case Stage::resolve:
            return "resolve";
        case Stage::tcp:
            return "tcp";
        case Stage::tls:
            return "tls";
        case Stage::auth:
            return "auth";
        case Stage::init:
            return "init";
    }
    return "init";
}

}  // namespace holdfast::pool

#include "history/payloads.hpp"

#include <string_view>

namespace holdfast::server::history {

bool is_null(const temporal::api::common::v1::Payload& payload) {
    const auto encoding = payload.metadata().find("encoding");
    if (encoding == payload.metadata().end()) {
        return false;
    }
    const std::string_view data = payload.data();
    return encoding->second == "binary/null" ||
           (encoding->second == "json/plain" && (data == "null" || data == "[]"));
}

void merge(PayloadMap& to, const PayloadMap& from) {
    for (const auto& [key, payload] : from) {
        if (is_null(payload)) {
            to.erase(key);
        } else {
            to[key] = payload;
        }
    }
}

void drop_nulls(PayloadMap& map) {
    for (auto entry = map.begin(); entry != map.end();) {
        entry = is_null(entry->second) ? map.erase(entry) : ++entry;
    }
}

}  // namespace holdfast::server::history

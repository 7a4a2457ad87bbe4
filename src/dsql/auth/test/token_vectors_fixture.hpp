// The signature vectors, made with the vendor's own signer.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <holdfast/base/units.hpp>
#include <holdfast/dsql/token.hpp>

namespace holdfast::dsql::tests {

struct Vector {
    std::string name;
    TokenRequest request;
    Credentials credentials;
    Wall now;
    nlohmann::json expected;  // A rejection has none.

    [[nodiscard]] std::string text(const char* field) const { return expected.at(field); }
};

inline Vector read_vector(const nlohmann::json& entry) {
    const auto& input = entry.at("input");
    const auto text_or_empty = [&](const char* field) {
        return input.at(field).is_null() ? std::string() : input.at(field).get<std::string>();
    };
    Vector vector{
        .name = entry.value("name", "rejection"),
        .request = {.host = input.at("hostname"),
                    .region = input.at("region"),
                    .action = input.at("action") == "DbConnectAdmin" ? Action::connect_admin
                                                                     : Action::connect},
        .credentials = {.access_key_id = input.at("access_key_id"),
                        .secret_access_key = input.at("secret_access_key"),
                        .session_token = text_or_empty("session_token")},
        .now = parse_moment(input.at("signing_time").get<std::string>()),
        .expected = entry.value("expected", nlohmann::json::object()),
    };
    if (!input.at("expires_in_seconds").is_null()) {
        vector.request.life =
            std::chrono::seconds{input.at("expires_in_seconds").get<std::int64_t>()};
    }
    return vector;
}

// `kind` is "vectors" or "rejections".
inline std::vector<Vector> token_vectors(const char* kind = "vectors") {
    std::ifstream file(HOLDFAST_VECTORS "/dsql_tokens.json");
    const auto all = nlohmann::json::parse(file);
    std::vector<Vector> vectors;
    for (const auto& entry : all.at(kind)) {
        vectors.push_back(read_vector(entry));
    }
    return vectors;
}

}  // namespace holdfast::dsql::tests

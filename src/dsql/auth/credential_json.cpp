#include "auth/credential_sources.hpp"
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast::dsql {
namespace {

std::string text_of(const nlohmann::json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Error refuse(std::string_view place, std::string_view what) {
    return {
        Code::unavailable, Outcome::not_applied, fmt::format("the answer of {} {}", place, what)};
}

}  // namespace

Credentials checked_keys(const AnsweredKeys& answer, std::string_view place) {
    if (answer.access_key_id.empty() || answer.secret_access_key.empty()) {
        throw refuse(place, "has no AccessKeyId or no SecretAccessKey");
    }
    Credentials credentials{.access_key_id = answer.access_key_id,
                            .secret_access_key = answer.secret_access_key,
                            .session_token = answer.session_token};
    if (!answer.expiration.empty()) {
        try {
            credentials.expires = parse_moment(answer.expiration);
        } catch (const InvalidArgument&) {
            throw refuse(place, "has an Expiration that is not a timestamp");
        }
    }
    return credentials;
}

Credentials credentials_from_json(std::string_view json, std::string_view place) {
    const auto object = nlohmann::json::parse(json, nullptr, false);
    if (!object.is_object()) {
        throw refuse(place, "is not a JSON object");
    }
    const std::string token = text_of(object, "Token");
    return checked_keys({.access_key_id = text_of(object, "AccessKeyId"),
                         .secret_access_key = text_of(object, "SecretAccessKey"),
                         .session_token = token.empty() ? text_of(object, "SessionToken") : token,
                         .expiration = text_of(object, "Expiration")},
                        place);
}

}  // namespace holdfast::dsql

#include <holdfast/dsql/token.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "auth/sigv4.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/percent.hpp>
#include <holdfast/dsql/endpoint.hpp>

namespace holdfast::dsql {
namespace {

constexpr std::string_view service = "dsql";
constexpr std::string_view algorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view terminator = "aws4_request";
constexpr std::string_view after_host = "/?";
constexpr std::size_t token_bytes_max = 16384;
constexpr std::size_t token_params_max = 32;

// ---- Making
// --------------------------------------------------------------------------------------

void check_request(const TokenRequest& request, const Credentials& credentials) {
    if (request.life < token_life_min) {
        throw InvalidArgument("a token must live for one second at least");
    }
    if (request.life > token_life_max) {
        throw InvalidArgument(
            "Signature version 4 presigned URLs must have an expiration date less than one week in "
            "the future");
    }
    if (request.host.empty()) {
        throw InvalidArgument("a token needs the name of the cluster's endpoint");
    }
    if (request.region.empty()) {
        throw InvalidArgument("a token needs a region; the endpoint's name does not say it");
    }
    if (credentials.access_key_id.empty() || credentials.secret_access_key.empty()) {
        throw InvalidArgument("a token needs an access key id and its secret");
    }
}

std::chrono::seconds effective_life(const TokenRequest& request,
                                    const Credentials& credentials,
                                    Wall now) {
    if (!credentials.expires) {
        return request.life;
    }
    const auto left = std::chrono::floor<std::chrono::seconds>(*credentials.expires - now);
    if (left < token_life_min) {
        throw Error(Code::unauthorized,
                    Outcome::not_applied,
                    "the AWS credentials have expired; renew them and try again");
    }
    return std::min(request.life, left);
}

// ---- Reading
// -------------------------------------------------------------------------------------

struct Parsed {
    std::string host;
    QueryParams params;  // Decoded, without the signature.
    std::string signature;

    [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const {
        const auto found = std::find_if(params.begin(), params.end(), [name](const auto& param) {
            return param.first == name;
        });
        return found == params.end() ? std::nullopt
                                     : std::optional<std::string_view>(found->second);
    }
    [[nodiscard]] std::string_view get(std::string_view name) const {
        return find(name).value_or("");
    }
};

// False if the parameter is malformed, or there already.
bool add_param(Parsed& parsed, std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || parsed.params.size() >= token_params_max) {
        return false;
    }
    auto name = percent_decoded(text.substr(0, equals));
    auto value = percent_decoded(text.substr(equals + 1));
    if (!name || !value || parsed.find(*name)) {
        return false;
    }
    if (*name == "X-Amz-Signature") {
        const bool first = parsed.signature.empty() && !value->empty();
        parsed.signature = std::move(*value);
        return first;
    }
    parsed.params.emplace_back(std::move(*name), std::move(*value));
    return true;
}

// The path is "/" or empty, as the SDK for Go writes it. Both are signed as "/".
std::optional<Parsed> parse(std::string_view token) {
    const std::size_t question = token.find('?');
    if (token.size() > token_bytes_max || question == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view before = token.substr(0, question);
    Parsed parsed;
    parsed.host = before.substr(0, before.size() - (before.ends_with('/') ? 1 : 0));
    if (parsed.host.find('/') != std::string::npos) {
        return std::nullopt;
    }
    token.remove_prefix(question + 1);
    for (;;) {
        const std::size_t end = token.find('&');
        if (!add_param(parsed, token.substr(0, end))) {
            return std::nullopt;
        }
        if (end == std::string_view::npos) {
            return parsed;
        }
        token.remove_prefix(end + 1);
    }
}

std::optional<TokenLife> life_of(const Parsed& parsed) {
    const auto birth = parse_amz_date(parsed.get("X-Amz-Date"));
    const std::string_view text = parsed.get("X-Amz-Expires");
    std::int64_t seconds = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (!birth || fault != std::errc{} || end != text.data() + text.size() ||
        seconds < token_life_min.count() || seconds > token_life_max.count()) {
        return std::nullopt;
    }
    return TokenLife{.birth = *birth, .expiry = *birth + std::chrono::seconds{seconds}};
}

struct CredentialField {
    std::string access_key_id;
    Scope scope;
    std::string terminator;
};

// "<key id>/<day>/<region>/<service>/aws4_request". A key id may hold slashes, the rest may not.
std::optional<CredentialField> parse_credential(std::string_view text) {
    std::array<std::string, 4> parts;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        const std::size_t slash = text.rfind('/');
        if (slash == std::string_view::npos) {
            return std::nullopt;
        }
        *part = text.substr(slash + 1);
        text = text.substr(0, slash);
    }
    return CredentialField{
        .access_key_id = std::string(text),
        .scope = {.day = parts[0], .region = parts[1], .service = parts[2]},
        .terminator = parts[3],
    };
}

// ---- Checking
// -------------------------------------------------------------------------------------

using Verdict = std::variant<TokenGrant, TokenRefusal>;

TokenRefusal malformed() {
    return {"The token is malformed: it is not a presigned URL of Signature Version 4"};
}

TokenRefusal mismatch() {
    return {
        "The request signature we calculated does not match the signature you provided. Check "
        "your AWS Secret Access Key and signing method. Consult the service documentation for "
        "details."};
}

TokenRefusal invalid_security_token() {
    return {"The security token included in the request is invalid."};
}

std::optional<TokenRefusal> refuse_scope(const CredentialField& credential,
                                         std::string_view date,
                                         const TokenDemand& demand) {
    if (credential.terminator != terminator) {
        return TokenRefusal{"Credential should be scoped with a valid terminator: 'aws4_request'."};
    }
    if (credential.scope.service != service) {
        return TokenRefusal{"Credential should be scoped to correct service: 'dsql'."};
    }
    if (credential.scope.region != demand.region) {
        return TokenRefusal{fmt::format(
            "Credential should be scoped to a valid region. Expected: '{}'.", demand.region)};
    }
    if (credential.scope.day != date.substr(0, credential.scope.day.size()) ||
        credential.scope.day.size() != 8) {
        return TokenRefusal{
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date."};
    }
    return std::nullopt;
}

std::optional<TokenRefusal> refuse_signature(const Parsed& parsed,
                                             const CredentialField& credential,
                                             const Credentials& keys) {
    if (!equal_in_constant_time(parsed.get("X-Amz-Security-Token"), keys.session_token)) {
        return invalid_security_token();
    }
    const std::string expected = signature(keys.secret_access_key,
                                           parsed.get("X-Amz-Date"),
                                           credential.scope,
                                           canonical_get(parsed.host, parsed.params));
    return equal_in_constant_time(expected, parsed.signature) ? std::nullopt
                                                              : std::optional(mismatch());
}

std::optional<TokenRefusal> refuse_time(const TokenLife& life, const Credentials& keys, Wall now) {
    if (life.birth > now + clock_skew_max) {
        return TokenRefusal{
            fmt::format("Signature not yet current: {} is still later than {} ({} + 5 min.)",
                        amz_date(life.birth),
                        amz_date(now + clock_skew_max),
                        amz_date(now))};
    }
    if (now >= life.expiry) {
        return TokenRefusal{fmt::format(
            "Signature expired: {} is now earlier than {}", amz_date(life.expiry), amz_date(now))};
    }
    if (keys.expires && now >= *keys.expires) {
        return TokenRefusal{"The security token included in the request is expired"};
    }
    return std::nullopt;
}

}  // namespace

std::string_view to_string(Action action) noexcept {
    return action == Action::connect_admin ? "DbConnectAdmin" : "DbConnect";
}

Action action_of(std::string_view user) noexcept {
    return user == admin_user ? Action::connect_admin : Action::connect;
}

std::string make_token(const TokenRequest& request, const Credentials& credentials, Wall now) {
    check_request(request, credentials);
    const std::string date = amz_date(now);
    const Scope scope{
        .day = date.substr(0, 8), .region = request.region, .service = std::string(service)};
    QueryParams params{
        {"Action", std::string(to_string(request.action))},
        {"X-Amz-Algorithm", std::string(algorithm)},
        {"X-Amz-Credential", fmt::format("{}/{}", credentials.access_key_id, scope.text())},
        {"X-Amz-Date", date},
        {"X-Amz-Expires", std::to_string(effective_life(request, credentials, now).count())},
        {"X-Amz-SignedHeaders", "host"},
    };
    if (!credentials.session_token.empty()) {
        params.emplace_back("X-Amz-Security-Token", credentials.session_token);
    }
    params.emplace_back(
        "X-Amz-Signature",
        signature(credentials.secret_access_key, date, scope, canonical_get(request.host, params)));
    return fmt::format("{}{}{}", request.host, after_host, canonical_query(params));
}

std::optional<TokenLife> life_of_token(std::string_view token) {
    const auto parsed = parse(token);
    return parsed ? life_of(*parsed) : std::nullopt;
}

Verdict verify_token(std::string_view token,
                     const TokenDemand& demand,
                     const KeysOf& keys_of,
                     Wall now) {
    const auto parsed = parse(token);
    if (!parsed) {
        return malformed();
    }
    const auto credential = parse_credential(parsed->get("X-Amz-Credential"));
    const auto life = life_of(*parsed);
    const std::string_view action = parsed->get("Action");
    const bool known_action =
        action == to_string(Action::connect) || action == to_string(Action::connect_admin);
    if (!credential || !life || !known_action || parsed->get("X-Amz-Algorithm") != algorithm ||
        parsed->get("X-Amz-SignedHeaders") != "host") {
        return malformed();
    }
    const auto keys = keys_of(credential->access_key_id);
    if (!keys) {
        return invalid_security_token();
    }
    if (auto refusal = refuse_scope(*credential, parsed->get("X-Amz-Date"), demand)) {
        return *refusal;
    }
    if (auto refusal = refuse_signature(*parsed, *credential, *keys)) {
        return *refusal;
    }
    // Signed for another cluster, or with a port, which is not part of the name.
    const bool has_port = parsed->host.find(':') != std::string::npos;
    if (has_port || normal_endpoint(parsed->host) != normal_endpoint(demand.host)) {
        return mismatch();
    }
    if (auto refusal = refuse_time(*life, *keys, now)) {
        return *refusal;
    }
    if (action != to_string(action_of(demand.user))) {
        return TokenRefusal{
            fmt::format("Wrong user to action mapping. user: {}, action: {}", demand.user, action)};
    }
    return TokenGrant{.access_key_id = credential->access_key_id,
                      .action = action_of(demand.user),
                      .expiry = life->expiry};
}

}  // namespace holdfast::dsql

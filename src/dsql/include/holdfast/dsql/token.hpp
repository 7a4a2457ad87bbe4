// The passwords of Aurora DSQL.
//
// A password is a token: the URL of a GET, signed with AWS keys and valid for a limited time
// (Signature Version 4, presigned, without its scheme). Making and checking one is arithmetic:
// nothing here blocks or reads a clock. A token is a secret and never logged.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <holdfast/base/clock.hpp>

namespace holdfast::dsql {

// AWS keys.
struct Credentials {
    std::string access_key_id;
    std::string secret_access_key{};  // Never logged.
    std::string session_token{};      // With temporary keys only; empty means none. Never logged.
    std::optional<Wall> expires{};    // Temporary keys expire, and their tokens with them.
};

// What a token permits: `admin` needs DbConnectAdmin, every other role DbConnect.
enum class Action { connect, connect_admin };

[[nodiscard]] std::string_view to_string(Action action) noexcept;  // "DbConnectAdmin"
[[nodiscard]] Action action_of(std::string_view user) noexcept;

inline constexpr std::string_view admin_user = "admin";
inline constexpr std::chrono::seconds token_life_default{900};
inline constexpr std::chrono::seconds token_life_min{1};
inline constexpr std::chrono::seconds token_life_max{604'800};

struct TokenRequest {
    std::string host;    // The endpoint's name, without a port.
    std::string region;  // "us-east-1"
    Action action = Action::connect_admin;
    std::chrono::seconds life = token_life_default;
};

// A token that is valid from `now` (cut to whole seconds) for `life`, or until the keys expire if
// that is earlier. Invalid_argument for a life out of its bounds or an empty part; unauthorized if
// the keys have expired by `now`.
[[nodiscard]] std::string make_token(const TokenRequest& request,
                                     const Credentials& credentials,
                                     Wall now);

// From when to when a token is valid, by its own parameters; empty if the text is not a token.
struct TokenLife {
    Wall birth;
    Wall expiry;
};
[[nodiscard]] std::optional<TokenLife> life_of_token(std::string_view token);

// How far the clocks of signer and server may differ.
inline constexpr std::chrono::minutes clock_skew_max{5};

// What a server expects of a token.
struct TokenDemand {
    std::string host;  // As the client named it; its case does not matter.
    std::string region;
    std::string user;
};

struct TokenGrant {
    std::string access_key_id;
    Action action{};
    Wall expiry;
};

// Why a token is refused, as the service words it in its HINT. Contains no secret.
struct TokenRefusal {
    std::string hint;
};

// The keys with this id; empty if there are none.
using KeysOf = std::function<std::optional<Credentials>(std::string_view access_key_id)>;

// Accepts any text, with its parameters in any order. The signature is checked before date and
// action, so that guesses without the keys reveal nothing.
[[nodiscard]] std::variant<TokenGrant, TokenRefusal> verify_token(std::string_view token,
                                                                  const TokenDemand& demand,
                                                                  const KeysOf& keys_of,
                                                                  Wall now);

}  // namespace holdfast::dsql

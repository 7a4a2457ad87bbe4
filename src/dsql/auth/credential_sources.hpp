// One function for each place where AWS keys can be.
#pragma once

#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <variant>

#include <holdfast/base/clock.hpp>
#include <holdfast/dsql/credentials.hpp>

namespace holdfast::dsql {

// This place is not set up here; the next one may be.
struct Absent {
    std::string why;
};
using Found = std::variant<Credentials, Absent>;

// The input of every place.
struct Search {
    const CredentialOptions& options;
    const Clock& clock;
    Deadline deadline;
    const std::stop_token& stop;

    [[nodiscard]] std::optional<std::string> variable(const char* name) const {
        return options.variables(name);
    }
};

[[nodiscard]] Found from_environment(const Search& search);
[[nodiscard]] Found from_profile(const Search& search);
[[nodiscard]] Found from_web_identity(const Search& search);
[[nodiscard]] Found from_container(const Search& search);
[[nodiscard]] Found from_instance(const Search& search);

// The role that a signed web identity token permits to assume.
struct WebIdentity {
    std::string role_arn;
    std::filesystem::path token_file;
    std::string session_name;
};
[[nodiscard]] Credentials assume_role(const Search& search, const WebIdentity& identity);

// The keys that a command prints as JSON.
[[nodiscard]] Credentials run_credential_process(const Search& search, const std::string& command);

// The fields of an answer, as text; messages name its `place` and quote nothing of it.
struct AnsweredKeys {
    std::string access_key_id;
    std::string secret_access_key;
    std::string session_token;
    std::string expiration;  // Empty: they do not expire.
};
[[nodiscard]] Credentials checked_keys(const AnsweredKeys& answer, std::string_view place);
// {"AccessKeyId": …, "SecretAccessKey": …, "Token" or "SessionToken": …, "Expiration": …}
[[nodiscard]] Credentials credentials_from_json(std::string_view json, std::string_view place);

// A file of profiles: [name] or, in the config file, [profile name], with name = value below.
using Profile = std::map<std::string, std::string, std::less<>>;
using Profiles = std::map<std::string, Profile, std::less<>>;
[[nodiscard]] Profiles parse_profiles(std::string_view text);

// The whole file; invalid_argument if it cannot be read or is absurdly large.
[[nodiscard]] std::string read_small_file(const std::filesystem::path& path);

}  // namespace holdfast::dsql

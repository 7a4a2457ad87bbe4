// Connections to Aurora DSQL, for sql::Database.
//
//   dsql://[user@]<endpoint>[:port][/database]?options
//
// The user is `admin` and the database `postgres` unless the URL says otherwise. There is no
// password: every physical connection gets a token, signed with AWS credentials. TLS is verified in
// full. Options: region (else from the endpoint's name), profile (of the AWS files), hostaddr,
// port, sslrootcert, sslmode (verify-full, verify-ca or require), connect_timeout,
// application_name, pool, and reservoir (on or off; else as the fleet says).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <holdfast/base/clock.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/dsql/fleet.hpp>
#include <holdfast/dsql/token_cache.hpp>
#include <holdfast/sql/source.hpp>

namespace holdfast {
class Logger;
class Metrics;
}  // namespace holdfast

namespace holdfast::dsql {

// The scheme of URLs of clusters: dsql://ENDPOINT.
inline constexpr std::string_view url_scheme = "dsql";

struct SourceOptions {
    std::string application = "holdfast";
    // Null: the places where the AWS SDKs look.
    std::shared_ptr<CredentialProvider> credentials{};
    FleetConfig fleet{};  // How fast connections are opened, and how many.
    const Clock* clock = nullptr;
    Metrics* metrics = nullptr;
    Logger* logger = nullptr;
};

// What a URL says, with all defaults filled in.
struct Target {
    TokenKey key;               // The endpoint, in its one spelling, its region, and the user.
    std::string profile;        // Of the AWS files; empty: as the environment says.
    sql::ConnectParams params;  // For libpq; without the password.
    int connections = 16;       // The most that are requested from the fleet.
};

// Invalid_argument, naming the cure, for a URL that cannot work: no endpoint, a password, an option
// that is not known, no region, or a mode that does not encrypt.
// `region` applies if neither the URL nor the endpoint's name contains one.
[[nodiscard]] Target parse_target(const sql::Url& url,
                                  const std::string& application,
                                  const std::string& region = {});

// `configured`, else AWS_REGION or AWS_DEFAULT_REGION of the environment; empty if there is none.
[[nodiscard]] std::string usual_region(const std::string& configured);

// The longest wait for a token within one opening.
inline constexpr std::chrono::seconds token_patience{5};

// For DatabaseOptions::sources["dsql"]. All databases that are opened through one factory share
// their credentials and tokens, and those at one endpoint the limiter and the slots of their fleet;
// all of which live until the last of them is gone.
[[nodiscard]] sql::SourceFactory dsql_source(SourceOptions options = {});

}  // namespace holdfast::dsql

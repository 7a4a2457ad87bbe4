#include "gateway/upstream.hpp"

#include <algorithm>

#include "auth/sigv4.hpp"
#include "gateway/system_schema.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/dsql/token.hpp>
#include <holdfast/sql/error.hpp>

namespace holdfast::dsql {

namespace {

// Snapshot isolation for everything, independent of the settings of a server or a role.
constexpr std::string_view session_settings =
    R"(-c default_transaction_isolation=repeatable\ read -c timezone=UTC)"
    R"( -c standard_conforming_strings=on -c statement_timeout=0 -c lock_timeout=0)"
    R"( -c idle_in_transaction_session_timeout=0 -c client_min_messages=notice)"
    R"( -c dsql.disable_sync_create_index=on -c dsql.enable_batched_nestloop=on)";

// A function or an operator of a client's must not be found in the place of PostgreSQL's own.
constexpr std::string_view own_path = " -c search_path=pg_catalog,pg_temp";

bool has_database(std::string_view upstream) {
    // With an empty path libpq would take the user's name; so does our "no database".
    const std::size_t authority = upstream.find("://");
    if (authority == std::string_view::npos) {
        return upstream.find("dbname") != std::string_view::npos;
    }
    const std::size_t path = upstream.find('/', authority + 3);
    const std::size_t query = upstream.find('?', authority);
    return path < query && path + 1 < std::min(query, upstream.size());
}

Backend::Params params_in(const std::string& database, std::string_view path) {
    Backend::Params params{{"options", fmt::format("{}{}", session_settings, path)},
                           {"client_encoding", "UTF8"}};
    if (!database.empty()) {
        params.emplace("dbname", database);
    }
    return params;
}

std::string random_secret() {
    constexpr int words = 4;
    std::string secret;
    for (int i = 0; i < words; ++i) {
        secret += fmt::format("{:016x}", secure_seed());
    }
    return secret;
}

}  // namespace

Upstream::Upstream(std::string conninfo)
    : conninfo_(std::move(conninfo)), names_a_database_(has_database(conninfo_)) {
    const std::string database = names_a_database_ ? std::string{} : "postgres";
    const auto owner = as_owner(database);
    check(*owner);
    // Gateways with the same user and server set the same passwords: neither changes the other's.
    secret_ = owner->password().empty() ? random_secret() : owner->password();
    owner->script(server_script());
    for (const std::string_view role : {gateway_role, admin_user}) {
        (void)as_role(role, database);
    }
}

void Upstream::check(Backend& owner) const {
    constexpr int oldest = 150000;
    const auto facts = owner.query(fmt::format(
        "SELECT rolname, rolsuper, current_setting('server_version'),"
        " current_setting('server_version_num')::int,"
        " EXISTS (SELECT FROM pg_roles r WHERE r.rolname = '{}' AND (r.rolsuper OR r.rolreplication"
        "  OR r.rolbypassrls)) FROM pg_roles WHERE rolname = current_user",
        admin_user));
    const auto& row = facts.at(0);
    if (text_of(row, 1) != "t") {
        throw InvalidArgument(fmt::format(
            "'{}' is not a superuser of the PostgreSQL below; the gateway needs one to prepare "
            "databases; name one in the upstream",
            text_of(row, 0)));
    }
    if (std::stoi(text_of(row, 3)) < oldest) {
        throw InvalidArgument(fmt::format(
            "the PostgreSQL below is {}; the gateway needs 15 or newer", text_of(row, 2)));
    }
    if (text_of(row, 4) == "t") {
        throw InvalidArgument(fmt::format(
            "the role '{}' of the PostgreSQL below is not an ordinary role, and the gateway "
            "serves clients as that role; rename it there",
            admin_user));
    }
}

std::unique_ptr<Backend> Upstream::as_owner(const std::string& database) const {
    return std::make_unique<Backend>(conninfo_, params_in(database, own_path));
}

// Only the gateway logs in with it. The server keeps what SCRAM makes of it.
std::string Upstream::password_of(std::string_view role) const {
    return hex(hmac_sha256(secret_, fmt::format("gateway role {}", role)));
}

std::unique_ptr<Backend> Upstream::as_role(std::string_view role,
                                           const std::string& database) const {
    const std::string password = password_of(role);
    Backend::Params params = params_in(database, role == gateway_role ? own_path : "");
    params["user"] = role;
    params["password"] = password;
    try {
        return std::make_unique<Backend>(conninfo_, params);
    } catch (const PasswordRefused&) {
        const std::lock_guard lock(password_mutex_);  // Concurrent changes of one role fail.
        const auto owner = as_owner(database);
        owner->script(fmt::format("ALTER ROLE {} PASSWORD {}",
                                  quoted_name(role),
                                  quoted_text(owner->verifier_of(role, password))));
    }
    try {
        return std::make_unique<Backend>(conninfo_, params);
    } catch (const PasswordRefused& refused) {
        throw sql::ConnectionLost(
            Outcome::not_applied,
            fmt::format("{}; let the gateway's roles log in by scram-sha-256 in pg_hba.conf",
                        refused.what()));
    }
}

}  // namespace holdfast::dsql

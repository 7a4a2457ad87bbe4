// The PostgreSQL below, and the three ways in which the gateway logs in there.
//
// A client's statements run in a session that has logged in as the client's own role. Such a role
// is never a superuser and has no membership in a powerful role, so no SQL can lead out of it: SET
// ROLE, SET SESSION AUTHORIZATION and their kind reach only as far as the login does. The gateway's
// own questions and changes of roles go through a session of the role `holdfast_gateway`, which is
// not a superuser either and which no client's text reaches. The user of the upstream, a superuser,
// only prepares databases and sets passwords; it runs fixed scripts and closes.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gateway/backend.hpp"

namespace holdfast::dsql {

// Owns the gateway's schemas and asks its questions.
inline constexpr std::string_view gateway_role = "holdfast_gateway";

// A condition on a row `r` of pg_roles: it could do more than an ordinary role, by itself or by a
// membership. The gateway neither serves such a role nor passes it on.
inline constexpr std::string_view powerful_role =
    "EXISTS (SELECT FROM pg_catalog.pg_roles p WHERE pg_catalog.pg_has_role(r.oid, p.oid, 'MEMBER')"
    " AND (p.rolsuper OR p.rolcreaterole OR p.rolcreatedb OR p.rolreplication OR p.rolbypassrls"
    " OR p.rolname = 'holdfast_gateway'"
    " OR (p.rolname ~ '^pg_' AND p.rolname <> 'pg_database_owner')))";

// Safe to share between threads.
class Upstream {
public:
    // Makes the roles that the gateway needs and tries them. Unavailable if the server cannot be
    // reached or does not let roles in; invalid_argument if its user is not a superuser or it is
    // too old.
    explicit Upstream(std::string conninfo);

    // Whether it names the database of every cluster.
    [[nodiscard]] bool names_a_database() const noexcept { return names_a_database_; }

    // An empty database is the upstream's own.
    [[nodiscard]] std::unique_ptr<Backend> as_owner(const std::string& database) const;
    // Sets the role's password if the server wants one and does not take ours.
    [[nodiscard]] std::unique_ptr<Backend> as_role(std::string_view role,
                                                   const std::string& database) const;

private:
    [[nodiscard]] std::string password_of(std::string_view role) const;
    void check(Backend& owner) const;

    std::string conninfo_;
    bool names_a_database_;
    std::string secret_;  // From which the passwords of roles are made.
    mutable std::mutex password_mutex_;
};

}  // namespace holdfast::dsql
